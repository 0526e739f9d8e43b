import { createGuard, type GuardRequest, type Verdict } from 'catraca/http'
import type { PolicyEntry } from 'catraca/policy'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Asked, identityOf, request } from './requests.ts'

const t0 = Date.UTC(2026, 9, 17, 12)
beforeEach(() => void vi.useFakeTimers({ now: t0 }))
afterEach(() => void vi.useRealTimers())

const identity = { client: 'pro' }
const bucket = (limit: number, burst: number) => ({ algorithm: 'token-bucket', limit, window: '1s', burst })

function guardOf(rule: PolicyEntry['rule'], more: Partial<PolicyEntry> = {}, others: Record<string, PolicyEntry> = {}) {
  const overflow: PolicyEntry['overflow'] = [{ queue: { maxWait: '200ms' } }, 'reject']
  const policies = { client: { per: 'client', rule, overflow, ...more }, ...others }
  return createGuard<Asked>({ policies: { version: 1, policies }, identify: identityOf, random: () => 0 })
}

interface Heard {
  readonly answer: string
  readonly atMs: number
  readonly verdict: Verdict
}

/** Sends requests at once and tells how each was answered, and when. */
function send(guard: ReturnType<typeof guardOf>, count: number, asked: Asked = { identity }): Heard[] {
  const heard: Heard[] = []
  for (let index = 0; index < count; index++) {
    void Promise.resolve(guard.ask(request(asked))).then((verdict) => {
      heard.push({ answer: verdict.answer, atMs: Date.now() - t0, verdict })
    })
  }
  return heard
}

function tallied(heard: readonly Heard[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { answer } of heard) counts[answer] = (counts[answer] ?? 0) + 1
  return counts
}

describe('a short queue', () => {
  test.each([
    ['acceptance 136', 10, 90, 100, { pass: 90, queue: 2, reject: 8 }, [100, 200]],
    ['acceptance 137', 20, 20, 30, { pass: 20, queue: 4, reject: 6 }, [50, 100, 150, 200]],
    [
      'acceptance 137',
      100,
      20,
      60,
      { pass: 20, queue: 20, reject: 20 },
      Array.from({ length: 20 }, (_, n) => 10 * (n + 1)),
    ],
  ] as const)('%s: %d per second, bursts of %d, %d at once', async (_, rate, burst, count, expected, waits) => {
    const guard = guardOf(bucket(rate, burst))
    const heard = send(guard, count)
    await vi.advanceTimersByTimeAsync(0)
    const refused = heard.filter(({ answer }) => answer === 'reject')
    // Nobody sleeps in vain: who would wait too long is told at once.
    expect(refused.every(({ atMs }) => atMs === 0)).toBe(true)
    // The first refused would have waited one place longer than the last who waits.
    expect(refused[0]?.verdict.decision?.retryAfterMs).toBe(((waits.at(-1) ?? 0) * (waits.length + 1)) / waits.length)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(tallied(heard)).toEqual(expected)
    expect(heard.filter(({ answer }) => answer === 'queue').map(({ atMs }) => atMs)).toEqual(waits)
    expect(guard.counts.policies['client']?.answers).toEqual({ queue: expected.queue, reject: expected.reject })
  })

  test('acceptance 138: sustained abuse fills it, and is refused as before', async () => {
    const run = async (overflow: PolicyEntry['overflow']): Promise<{ all: number; late: number }> => {
      const guard = guardOf(bucket(10, 20), overflow === undefined ? {} : { overflow })
      const from = Date.now()
      let all = 0
      let late = 0
      for (let index = 0; index < 400; index++) {
        void Promise.resolve(guard.ask(request({ identity }))).then(({ answer }) => {
          if (answer !== 'reject') return
          all++
          if (index >= 200) late++
        })
        await vi.advanceTimersByTimeAsync(25)
      }
      expect(Date.now() - from).toBe(10_000)
      await vi.advanceTimersByTimeAsync(1_000)
      return { all, late }
    }
    expect(await run(undefined)).toEqual({ all: 279, late: 150 })
    expect(await run(['reject'])).toEqual({ all: 281, late: 150 })
  })

  test('acceptance 145: the burst passes at once, then one per interval until the longest wait', async () => {
    const guard = guardOf(bucket(20, 20), { overflow: [{ queue: { maxWait: '1s' } }, 'reject'] })
    const heard = send(guard, 50)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(tallied(heard)).toEqual({ pass: 20, queue: 20, reject: 10 })
    const waits = heard.filter(({ answer }) => answer === 'queue').map(({ atMs }) => atMs)
    expect(waits).toEqual(Array.from({ length: 20 }, (_, index) => 50 * (index + 1)))
  })

  test('is first come, first served, and each sleeps once on one timer', async () => {
    const guard = guardOf(bucket(10, 1), { overflow: [{ queue: { maxWait: '1s' } }, 'reject'] })
    const order: number[] = []
    guard.explain({ method: 'GET', path: '/' })
    const own = vi.getTimerCount()
    for (let index = 0; index < 8; index++) {
      void Promise.resolve(guard.ask(request({ identity }))).then(() => order.push(index))
    }
    await vi.advanceTimersByTimeAsync(0)
    expect(vi.getTimerCount()).toBeLessThanOrEqual(own + 2)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  })

  test('is bounded in a policy, and the next answer applies to who finds it full', async () => {
    const guard = guardOf(bucket(10, 1), { overflow: [{ queue: { maxWait: '1s', maxWaiting: 3 } }, 'mark'] })
    const heard = send(guard, 10)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(tallied(heard)).toEqual({ pass: 1, mark: 6, queue: 3 })
  })

  test('gives what was reserved back where another policy refuses in the end', async () => {
    const daily = { per: 'client', rule: { algorithm: 'quota', limit: 2, period: 'day' } }
    const guard = guardOf(bucket(10, 1), {}, { daily })
    const heard = send(guard, 3)
    await vi.advanceTimersByTimeAsync(300)
    expect(heard.map(({ answer, atMs }) => [answer, atMs])).toEqual([
      ['pass', 0],
      ['queue', 100],
      ['reject', 200],
    ])
    expect(heard[2]?.verdict.decision?.policy).toBe('daily')
    const left = guard.explain({ method: 'GET', path: '/', attributes: { client: 'pro' } })
    expect(left.map(({ policy, says }) => [policy, says.remaining])).toEqual([
      ['client', 1],
      ['daily', 0],
    ])
  })
})

test('who leaves while it waits costs nothing, and who came later keeps its time', async () => {
  const guard = guardOf(bucket(10, 1), { overflow: [{ queue: { maxWait: '1s' } }, 'reject'] })
  await guard.ask(request({ identity }))
  const leaves = new AbortController()
  const waiting: GuardRequest<Asked> = { ...request({ identity }), signal: leaves.signal }
  const left = Promise.resolve(guard.ask(waiting))
  const heard = send(guard, 1)
  await vi.advanceTimersByTimeAsync(50)
  leaves.abort()
  expect((await left).answer).toBe('reject')
  await vi.advanceTimersByTimeAsync(150)
  expect(heard.map(({ answer, atMs }) => [answer, atMs])).toEqual([['queue', 200]])
  // Two were admitted in all: the bucket is full again one interval after the second.
  await vi.advanceTimersByTimeAsync(100)
  const [explained] = guard.explain({ method: 'GET', path: '/', attributes: { client: 'pro' } })
  expect(explained?.says.remaining).toBe(1)
})

test('requests in flight wait for a permit, in their order, and none overtakes them', async () => {
  const guard = guardOf({ algorithm: 'concurrency', limit: 1 }, { overflow: [{ queue: { maxWait: '1s' } }, 'reject'] })
  const first = await guard.ask(request({ identity }))
  const heard = send(guard, 3)
  await vi.advanceTimersByTimeAsync(300)
  expect(heard).toEqual([])
  guard.release(first)
  await vi.advanceTimersByTimeAsync(10)
  expect(heard.map(({ answer, atMs }) => [answer, atMs])).toEqual([['queue', 300]])
  await vi.advanceTimersByTimeAsync(690)
  expect(tallied(heard)).toEqual({ queue: 1, reject: 2 })
})

test('a small request does not overtake a large one that waits, though it would fit', async () => {
  const rule = { algorithm: 'sliding-log', limit: 3, window: '10s' }
  const guard = guardOf(rule, { overflow: [{ queue: { maxWait: '20s' } }, 'reject'] })
  await guard.ask(request({ identity, units: 2 }))
  const large = send(guard, 1, { identity, units: 2 })
  await vi.advanceTimersByTimeAsync(100)
  const small = send(guard, 1)
  await vi.advanceTimersByTimeAsync(5_000)
  expect([...large, ...small]).toEqual([])
  await vi.advanceTimersByTimeAsync(5_000)
  expect([...large, ...small].map(({ answer, atMs }) => [answer, atMs])).toEqual([
    ['queue', 10_000],
    ['queue', 10_000],
  ])
})

test('who waits while another document comes waits by that one', async () => {
  const guard = guardOf(bucket(10, 1), { overflow: [{ queue: { maxWait: '1s' } }, 'reject'] })
  const heard = send(guard, 4)
  await vi.advanceTimersByTimeAsync(100)
  expect(tallied(heard)).toEqual({ pass: 1, queue: 1 })
  const policies = { client: { per: 'client', rule: bucket(1_000, 1), overflow: [{ queue: { maxWait: '1s' } }] } }
  guard.replace({ version: 1, policies: policies as Record<string, PolicyEntry> })
  await vi.advanceTimersByTimeAsync(10)
  expect(tallied(heard)).toEqual({ pass: 1, queue: 3 })
  const others = send(guard, 2)
  guard.replace({ version: 1, policies: { other: { per: 'client', rule: bucket(1, 1) } } })
  await vi.advanceTimersByTimeAsync(10)
  expect(others.length).toBe(2)
  // What they waited for is no more.
  expect(tallied(others)['reject']).toBeUndefined()
})

test('a guard that is closed lets nobody wait', async () => {
  const guard = guardOf(bucket(1, 1), { overflow: [{ queue: { maxWait: '1m' } }, 'reject'] })
  const heard = send(guard, 2)
  await vi.advanceTimersByTimeAsync(0)
  guard.close()
  await vi.advanceTimersByTimeAsync(0)
  expect(tallied(heard)).toEqual({ pass: 1, reject: 1 })
  expect(vi.getTimerCount()).toBe(0)
})

test('what a request really cost is charged in the end', async () => {
  const guard = guardOf(bucket(1, 20), { cost: 2 })
  const left = (): number | undefined =>
    guard.explain({ method: 'GET', path: '/', attributes: { client: 'pro' } })[0]?.says.remaining
  const failed = await guard.ask(request({ identity, units: 3 }))
  expect(left()).toBe(14)
  guard.settle(failed, 0)
  expect(left()).toBe(20)
  const more = await guard.ask(request({ identity, units: 3 }))
  guard.settle(more, 5)
  expect(left()).toBe(10)
  expect(() => guard.settle(more, -1)).toThrow('actualCost is -1')
})
