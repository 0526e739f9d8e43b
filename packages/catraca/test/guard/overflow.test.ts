import { createGuard, type GuardOptions, memoryCache, memoryJobs, type Verdict, type Work } from 'catraca/http'
import type { PolicyEntry } from 'catraca/policy'
import { expect, test, vi } from 'vitest'
import { type Asked, identityOf, request } from './requests.ts'

const t0 = Date.UTC(2026, 9, 17, 12)
const rule = { algorithm: 'token-bucket', limit: 1, window: '1h', burst: 1 }
const identity = { client: 'acme' }

type Overflow = NonNullable<PolicyEntry['overflow']>

function guardOf(policies: Record<string, PolicyEntry>, options: Partial<GuardOptions<Asked>> = {}) {
  return createGuard<Asked>({ policies: { version: 1, policies }, identify: identityOf, random: () => 0, ...options })
}

function listing(overflow: Overflow, more: Partial<PolicyEntry> = {}): Record<string, PolicyEntry> {
  return { client: { per: 'client', rule, overflow, ...more } }
}

const text = new TextEncoder()

function answerWith(verdict: Verdict, body: string, fields: [string, string][] = []): void {
  verdict.keep?.({ status: 200, fields: [['Content-Type', 'text/plain'], ...fields], body: text.encode(body) })
}

/** Names and values by lower-case name. */
function fieldsOf(fields: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {}
  for (let at = 0; at < fields.length; at += 2) found[String(fields[at]).toLowerCase()] = String(fields[at + 1])
  return found
}

test('a copy 5 s old is given to the same caller where 10 s are allowed, one 11 s old is not', async () => {
  const guard = guardOf(listing([{ stale: { maxAge: '10s' } }, 'reject']))
  const first = await guard.ask(request({ identity, now: t0 }))
  expect([first.answer, first.keepBytes]).toEqual(['pass', 1_048_576])
  answerWith(first, 'events')

  const stale = await guard.ask(request({ identity, now: t0 + 5_000 }))
  expect([stale.allowed, stale.answer]).toEqual([false, 'stale'])
  const { status, fields, body } = guard.answerOf(stale)
  expect([status, new TextDecoder().decode(body as Uint8Array)]).toEqual([200, 'events'])
  expect(fieldsOf(fields)).toMatchObject({ 'content-type': 'text/plain', age: '5', ratelimit: '"client";r=0;t=3595' })

  expect((await guard.ask(request({ identity, now: t0 + 10_000 }))).answer).toBe('stale')
  expect((await guard.ask(request({ identity, now: t0 + 10_001 }))).answer).toBe('reject')
  expect(guard.counts.answers).toMatchObject({ pass: 1, stale: 2, reject: 1 })
  expect(guard.counts.policies['client']).toMatchObject({ refused: 3, answers: { stale: 2, reject: 1 } })
})

test('a copy is for nobody but its caller, its target and its form', async () => {
  const policies = listing([{ stale: { maxAge: '1h' } }], { per: 'service' })
  const guard = guardOf(policies)
  const headers = { accept: 'text/plain' }
  answerWith(await guard.ask(request({ identity, headers, now: t0 })), 'mine')
  const answers = async (asked: Asked): Promise<string> => (await guard.ask(request({ now: t0 + 1, ...asked }))).answer
  expect(await answers({ identity, headers })).toBe('stale')
  expect(await answers({ identity, headers, method: 'HEAD' })).toBe('stale')
  expect(await answers({ identity: { client: 'other' }, headers })).toBe('reject')
  expect(await answers({ identity: { ...identity, user: 'ana' }, headers })).toBe('reject')
  expect(await answers({ headers })).toBe('reject')
  expect(await answers({ identity, headers, target: '/events?page=2' })).toBe('reject')
  expect(await answers({ identity, headers: { accept: 'text/html' } })).toBe('reject')
  expect(await answers({ identity, headers: { ...headers, range: 'bytes=0-1' } })).toBe('reject')
  expect(await answers({ identity, headers, method: 'POST' })).toBe('reject')
})

test('no copy is kept of what must not be given again', async () => {
  for (const [status, name, value] of [
    [200, 'Cache-Control', 'max-age=60, no-store'],
    [200, 'Set-Cookie', 'session=1'],
    [200, 'Vary', 'accept, x-user'],
    [200, 'Vary', '*'],
    [404, 'X-Other', 'a'],
    [206, 'X-Other', 'a'],
  ] as const) {
    const guard = guardOf(listing([{ stale: { maxAge: '1h' } }]))
    const first = await guard.ask(request({ identity, now: t0 }))
    first.keep?.({ status, fields: [[name, value]], body: text.encode('x') })
    expect((await guard.ask(request({ identity, now: t0 }))).answer, `${status} ${name}: ${value}`).toBe('reject')
  }
  // Who shows a cookie, or a credential that the guard does not know, gets no copies and leaves none.
  for (const headers of [{ cookie: 'session=1' }, { authorization: 'Bearer x' }, { 'x-api-key': 'k' }]) {
    const guard = guardOf(listing([{ stale: { maxAge: '1h' } }], { per: 'address' }))
    expect((await guard.ask(request({ headers, now: t0 }))).keep).toBeUndefined()
  }
  const vary = guardOf(listing([{ stale: { maxAge: '1h' } }]))
  answerWith(await vary.ask(request({ identity, now: t0 })), 'x', [
    ['Vary', 'Accept-Encoding, Origin'],
    ['Age', '30'],
  ])
  const copy = vary.answerOf(await vary.ask(request({ identity, now: t0 + 1_000 })))
  expect(fieldsOf(copy.fields)).toMatchObject({ age: '31', vary: 'Accept-Encoding, Origin' })
})

test('a cache that fails is one without a copy', async () => {
  const cache = {
    maxBodyBytes: 10,
    get: () => Promise.reject(new Error('gone')),
    set: () => Promise.reject(new Error('gone')),
  }
  const guard = guardOf(listing([{ stale: { maxAge: '1h' } }]), { cache })
  answerWith(await guard.ask(request({ identity, now: t0 })), 'x')
  expect((await guard.ask(request({ identity, now: t0 }))).answer).toBe('reject')
  const throwing = {
    maxBodyBytes: 10,
    get: () => {
      throw new Error('gone')
    },
    set: () => {
      throw new Error('gone')
    },
  }
  const other = guardOf(listing([{ stale: { maxAge: '1h' } }]), { cache: throwing })
  answerWith(await other.ask(request({ identity, now: t0 })), 'x')
  expect((await other.ask(request({ identity, now: t0 }))).answer).toBe('reject')
})

test('a cache that does not answer is one without a copy after 250 ms', async () => {
  vi.useFakeTimers({ now: t0 })
  try {
    const cache = { maxBodyBytes: 10, get: () => new Promise<undefined>(() => {}), set: () => {} }
    const guard = guardOf(listing([{ stale: { maxAge: '1h' } }]), { cache })
    await guard.ask(request({ identity }))
    let answer: string | undefined
    void Promise.resolve(guard.ask(request({ identity }))).then((verdict) => {
      answer = verdict.answer
    })
    await vi.advanceTimersByTimeAsync(249)
    expect(answer).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    expect(answer).toBe('reject')
  } finally {
    vi.useRealTimers()
  }
})

test('the cache is bounded, and forgets what was used longest ago', () => {
  const cache = memoryCache({ maxBytes: 2_048, maxBodyBytes: 500 })
  const copy = (bytes: number) => ({ status: 200, fields: [], body: new Uint8Array(bytes), madeAtMs: 0 })
  for (const key of ['a', 'b']) cache.set(key, copy(500))
  expect([cache.size, cache.bytes]).toEqual([2, 2 * (256 + 2 + 500)])
  expect(cache.get('a')).toBeDefined()
  cache.set('c', copy(500))
  expect(['a', 'b', 'c'].map((key) => cache.get(key) !== undefined)).toEqual([true, false, true])
  cache.set('a', copy(100))
  expect(cache.bytes).toBe(2 * 258 + 600)
  cache.set('a', copy(501))
  expect([cache.get('a'), cache.size]).toEqual([undefined, 1])
  expect(() => memoryCache({ maxBytes: 1 })).toThrow(
    'memoryCache.maxBytes is 1; allowed: a whole number of bytes from 1024',
  )
  expect(() => memoryCache({ maxBodyBytes: 2 ** 40 })).toThrow('memoryCache.maxBodyBytes')
})

test('degraded: the cheaper cost is charged, and the handler is told', async () => {
  const bucket = { algorithm: 'token-bucket', limit: 1, window: '1h', burst: 30 }
  const guard = guardOf(listing([{ degrade: { cost: 2 } }], { rule: bucket, cost: 25 }))
  const asked = { identity, now: t0 }
  const first = await guard.ask(request(asked))
  expect([first.decision?.answer, first.decision?.remaining, first.told]).toEqual(['pass', 5, undefined])
  const second = await guard.ask(request(asked))
  expect([second.allowed, second.answer, second.told]).toEqual([true, 'degrade', 'degrade'])
  expect([second.decision?.answer, second.decision?.remaining, second.decision?.cost]).toEqual(['degrade', 3, 2])
  expect((await guard.ask(request(asked))).decision?.remaining).toBe(1)
  const none = await guard.ask(request(asked))
  expect([none.answer, none.decision?.answer, none.told]).toEqual(['reject', 'reject', undefined])
  expect(guard.counts.answers).toMatchObject({ pass: 1, degrade: 2, reject: 1 })
  // In the units of the mount: a request of two costs twice the cheaper cost.
  const other = { identity: { client: 'other' }, now: t0 }
  await guard.ask(request({ ...other, units: 1 }))
  expect((await guard.ask(request({ ...other, units: 2 }))).decision?.remaining).toBe(1)
})

test('marked: passes over the limit, uncounted there and counted everywhere else, and the service is told', async () => {
  const policies: Record<string, PolicyEntry> = {
    ...listing(['mark']),
    daily: { per: 'client', rule: { algorithm: 'quota', limit: 3, period: 'day' } },
  }
  const guard = guardOf(policies)
  const asked = { identity, now: t0 }
  const all: Verdict[] = []
  for (let count = 0; count < 4; count++) all.push(await guard.ask(request(asked)))
  expect(all.map(({ answer, allowed, told }) => [answer, allowed, told])).toEqual([
    ['pass', true, undefined],
    ['mark', true, 'mark'],
    ['mark', true, 'mark'],
    // The quota does not list it.
    ['reject', false, undefined],
  ])
  expect(all[1]?.decision).toMatchObject({ policy: 'client', allowed: false, answer: 'mark' })
  expect(all[1]?.admitted.map(({ policy }) => policy.name)).toEqual(['daily'])
  expect(fieldsOf(guard.fieldsOf(all[1] as Verdict))['ratelimit']).toContain('"daily";r=1')
})

test('the first answer that applies is taken, in the order of the list', async () => {
  const jobs = memoryJobs<Asked>({ run: () => undefined, maxQueued: 1 })
  const overflow: Overflow = [{ stale: { maxAge: '10s' } }, 'accept', 'mark']
  const guard = guardOf(listing(overflow), { jobs })
  const asked = { identity, now: t0 }
  expect((await guard.ask(request(asked))).answer).toBe('pass')
  // Nothing was kept, and a GET is not accepted.
  expect((await guard.ask(request(asked))).answer).toBe('mark')
  expect((await guard.ask(request({ ...asked, method: 'POST' }))).answer).toBe('accept')
  // One job may wait.
  expect((await guard.ask(request({ ...asked, method: 'POST' }))).answer).toBe('mark')
  guard.close()
})

test('what was charged before the refusal comes back with a copy or a job, and stays charged where the request goes on', async () => {
  const net = { algorithm: 'token-bucket', limit: 1, window: '1h', burst: 10 }
  const left = async (overflow: Overflow, method: string): Promise<number | undefined> => {
    const jobs = memoryJobs<Asked>({ run: () => undefined })
    const policies = { net: { per: 'address', rule: net }, ...listing(overflow, { cost: 1 }) }
    const guard = guardOf(policies, { jobs })
    const first = await guard.ask(request({ identity, now: t0 }))
    answerWith(first, 'x')
    await guard.ask(request({ identity, method, now: t0 }))
    const [explained] = guard.explain({ method: 'GET', path: '/', attributes: { address: '192.0.2.1' }, now: t0 })
    guard.close()
    return explained?.says.remaining
  }
  expect(await left(['reject'], 'GET')).toBe(9)
  expect(await left([{ stale: { maxAge: '1m' } }], 'GET')).toBe(9)
  expect(await left(['accept'], 'POST')).toBe(9)
  expect(await left(['mark'], 'GET')).toBe(8)
})

test('of several that refuse, the list of the one with the longest wait counts, and the others stay asked', async () => {
  const slow = { algorithm: 'token-bucket', limit: 1, window: '1d', burst: 1 }
  const policies: Record<string, PolicyEntry> = {
    short: { per: 'client', rule, overflow: ['reject'] },
    long: { per: 'client', rule: slow, overflow: ['mark'] },
  }
  const guard = guardOf(policies)
  const asked = { identity, now: t0 }
  await guard.ask(request(asked))
  const both = await guard.ask(request(asked))
  expect([both.answer, both.decision?.policy]).toEqual(['reject', 'short'])
  // Once only the long one refuses, its list lets pass.
  const later = await guard.ask(request({ ...asked, now: t0 + 3_600_000 }))
  expect([later.answer, later.decision?.policy]).toEqual(['mark', 'long'])
})

test('lists differ by plan', async () => {
  const guard = createGuard<Asked>({
    policies: {
      version: 1,
      plans: { names: ['free', 'pro'], default: 'free' },
      policies: { client: { per: 'client', rule, plans: { pro: { limit: 1, overflow: ['mark'] } } } },
    },
    identify: identityOf,
  })
  for (const [plan, answer] of [
    ['free', 'reject'],
    ['pro', 'mark'],
  ]) {
    const asked = { identity: { client: `c-${plan}`, plan: String(plan) }, now: t0 }
    await guard.ask(request(asked))
    expect((await guard.ask(request(asked))).answer).toBe(answer)
  }
})

test('accepted work runs when its policies admit it, charged like the request, and its status can be asked for', async () => {
  vi.useFakeTimers({ now: t0 })
  try {
    const done: string[] = []
    const run = vi.fn(async (work: Work<Asked>) => {
      done.push(`${work.method} ${work.target} ${JSON.stringify(work.body)}`)
      return { imported: done.length }
    })
    const guard = guardOf(listing(['accept'], { rule: { ...rule, window: '10s' } }), { jobs: memoryJobs({ run }) })
    const asked = { identity, method: 'POST', target: '/import', body: { items: 2 } }
    expect((await guard.ask(request(asked))).answer).toBe('pass')
    const accepted = await guard.ask(request(asked))
    const { status, fields, body } = guard.answerOf(accepted)
    const { id, state } = JSON.parse(String(body)) as { id: string; state: string }
    const { location = '' } = fieldsOf(fields)
    expect([status, state, location]).toEqual([202, 'queued', `/jobs/${id}`])
    expect(id).toMatch(/^[0-9a-f]{32}$/)

    const statusOf = async (target: string): Promise<Record<string, unknown>> => {
      const told = await guard.ask(request({ target }))
      expect([told.answer, told.allowed]).toEqual(['told', false])
      const answer = guard.answerOf(told)
      return { status: answer.status, ...(JSON.parse(String(answer.body)) as object) }
    }
    await vi.advanceTimersByTimeAsync(9_000)
    expect(await statusOf(location)).toMatchObject({ status: 200, state: 'queued' })
    expect(run).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1_100)
    expect(await statusOf(location)).toMatchObject({ state: 'done', result: { imported: 1 } })
    expect(done).toEqual(['POST /import {"items":2}'])
    // It was charged: nothing is left for a request at once.
    expect((await guard.ask(request(asked))).answer).toBe('accept')
    expect(await statusOf(`/jobs/${'0'.repeat(32)}`)).toMatchObject({ status: 404 })
    guard.close()
  } finally {
    vi.useRealTimers()
  }
})

test('work that holds a permit gives it back at its end, also where it fails, and nothing runs after the close', async () => {
  vi.useFakeTimers({ now: t0 })
  try {
    let fail: (error: Error) => void = () => {}
    const run = vi.fn(() => new Promise((_, reject) => (fail = reject)))
    const jobs = memoryJobs<Asked>({ run })
    const permits = { algorithm: 'concurrency', limit: 1 }
    const guard = guardOf(listing(['accept'], { rule: permits }), { jobs })
    const asked = { identity, method: 'POST' }
    const held = await guard.ask(request(asked))
    const accepted = await guard.ask(request(asked))
    const again = await guard.ask(request(asked))
    expect([held.answer, accepted.answer, again.answer]).toEqual(['pass', 'accept', 'accept'])
    guard.release(held)
    await vi.advanceTimersByTimeAsync(1_100)
    expect(run).toHaveBeenCalledTimes(1)
    expect((await guard.ask(request({ ...asked, method: 'GET' }))).answer).toBe('reject')
    fail(new Error('no such event'))
    await vi.advanceTimersByTimeAsync(1_100)
    expect(run).toHaveBeenCalledTimes(2)
    const id = String(JSON.parse(String(guard.answerOf(accepted).body)).id)
    expect(jobs.find(id)).toMatchObject({ state: 'failed', error: 'no such event' })
    await guard.ask(request(asked))
    guard.close()
    expect(jobs.queued).toBe(0)
    await vi.advanceTimersByTimeAsync(120_000)
    expect(run).toHaveBeenCalledTimes(2)
  } finally {
    vi.useRealTimers()
  }
})

test('accept without a runner, and options that are none, are errors at the start', () => {
  expect(() => guardOf(listing(['accept']))).toThrow('options.jobs is missing, and a policy lists accept')
  expect(() => guardOf(listing(['reject']), { cache: {} as never })).toThrow('options.cache is an object')
  expect(() => guardOf(listing(['reject']), { jobs: {} as never })).toThrow('options.jobs is an object')
  expect(() => guardOf(listing(['reject']), { statusPath: 'limits' })).toThrow('options.statusPath is "limits"')
  expect(() => memoryJobs({} as never)).toThrow('memoryJobs.run is undefined; allowed: a function')
  expect(() => memoryJobs({ run: () => 0, path: '/jobs/' })).toThrow('memoryJobs.path is "/jobs/"')
  expect(() => memoryJobs({ run: () => 0, maxQueued: 0 })).toThrow('memoryJobs.maxQueued is 0')
  expect(() => memoryJobs({ run: () => 0, maxQueued: 2, maxPerCaller: 3 })).toThrow('memoryJobs.maxPerCaller is 3')
  const guard = guardOf(listing(['reject']))
  expect(() => guard.replace({ version: 1, policies: listing(['accept']) })).toThrow('options.jobs is missing')
})

test('the limits of a caller are told at the path of the status, and asking costs nothing', async () => {
  const guard = guardOf(listing(['reject'], { rule: { ...rule, burst: 3 } }), { statusPath: '/rate-limit' })
  await guard.ask(request({ identity, now: t0 }))
  for (const target of ['/rate-limit', '/rate-limit?x=1', '/rate-limit']) {
    const told = await guard.ask(request({ identity, target, now: t0 }))
    const { status, body } = guard.answerOf(told)
    expect(status).toBe(200)
    expect(JSON.parse(String(body))).toMatchObject({
      policies: [{ policy: 'client', used: 1, remaining: 2, limit: 3 }],
    })
  }
  const other = await guard.ask(request({ identity, target: '/rate-limits', now: t0 }))
  expect(other.answer).toBe('pass')
})
