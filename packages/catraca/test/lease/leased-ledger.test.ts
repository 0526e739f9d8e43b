import { type Decision, fixedWindow, slidingLog } from 'catraca'
import { describe, expect, test, vi } from 'vitest'
import { mostHeld } from '../../src/stores/lease/terms.ts'
import { times } from '../redis/support.ts'
import { frozen, hundred, noon, Process, settle } from './setup.ts'

frozen()

/** Uses three units, so that more are in hand. */
async function warm(limiter: Process['limiter']): Promise<void> {
  for (let request = 0; request < 3; request++) await limiter.take('k')
  await settle()
}

const allowed = (decisions: readonly Decision[]): boolean[] => decisions.map((one) => one.allowed)

describe('callers who wait', () => {
  test('travel together: fifty of one turn take two trips, and strand nothing', async () => {
    const { limiter, store } = new Process(hundred, { block: 4 })
    const answers = await Promise.all(times(50, () => limiter.take('k')))
    expect(allowed(answers)).toEqual(times(50, () => true))
    // The first goes at once; the others wait for its answer, and ask for more than a block.
    expect(store.asked).toEqual([
      { key: 'k', least: 1, most: 1 },
      { key: 'k', least: 1, most: 49 },
    ])
    expect((await limiter.peek('k')).remaining).toBe(50)
  })

  test('are served in the order in which they came as far as the units go; the others are refused', async () => {
    const { limiter, store } = new Process(slidingLog({ limit: 30, window: '1h' }), { block: 4 })
    const answers = await Promise.all(times(50, () => limiter.take('k')))
    expect(allowed(answers)).toEqual(times(50, (index) => index < 30))
    expect(store.sent.length).toBeLessThanOrEqual(4)
    const refused = answers[49] as Decision
    expect(refused).toMatchObject({ reason: 'limited', remaining: 0, cost: 1, charged: 0, degraded: false })
    expect(refused.retryAfterMs).toBe(3_600_000)
  })

  test('one who asks for too much does not hold up those behind, who need less', async () => {
    const one = new Process(slidingLog({ limit: 10, window: '1h' }), { block: 10 })
    await one.beside().limiter.take('k', { cost: 8 })
    const answers = await Promise.all([3, 1, 2, 1].map((cost) => one.limiter.take('k', { cost })))
    expect(allowed(answers)).toEqual([false, true, false, true])
    expect(answers.map(({ cost }) => cost)).toEqual([3, 1, 2, 1])
  })

  test('of several keys are asked for apart', async () => {
    const { limiter, store } = new Process(hundred, { block: 10 })
    const answers = await Promise.all(times(9, (index) => limiter.take(`k${index % 3}`)))
    expect(answers.map(({ key }) => key)).toEqual(times(9, (index) => `k${index % 3}`))
    expect(store.asked.map(({ key }) => key)).toEqual(['k0', 'k1', 'k2', 'k0', 'k1', 'k2'])
  })
})

describe('what is asked for', () => {
  test('grows with use from one unit to a block', async () => {
    const { limiter, store } = new Process(slidingLog({ limit: 1_000, window: '1h' }), { block: 20, ttl: '10s' })
    let units = 0
    for (let used = 1; used <= 500; used++) {
      const before = store.asked.length
      expect((await limiter.take('k')).allowed).toBe(true)
      await settle()
      for (const { most } of store.asked.slice(before)) {
        expect(most).toBeLessThanOrEqual(Math.min(20, used))
        units += most
      }
      // In hand and charged are the same unit: what would pass is what was not used.
      expect((await limiter.peek('k')).remaining).toBe(1_000 - used)
      expect(units - used).toBeLessThanOrEqual(mostHeld(Math.min(20, used)))
    }
    const sizes = store.asked.map(({ most }) => most)
    expect(sizes.slice(0, 2)).toEqual([1, 2])
    expect(sizes.indexOf(20)).toBeLessThan(10)
    expect(sizes.length).toBeLessThan(500 / 20 + 10)
  })

  test('is one unit again for a key that was not used for two lease times', async () => {
    const { limiter, store } = new Process(hundred, { block: 20, ttl: '1s' })
    for (let request = 0; request < 40; request++) await limiter.take('k')
    await vi.advanceTimersByTimeAsync(3_000)
    store.asked.length = 0
    await limiter.take('k')
    expect(store.asked).toEqual([{ key: 'k', least: 1, most: 1 }])
  })

  test('is the exact cost where that is more than a block, beside what is held', async () => {
    const one = new Process(hundred, { block: 4 })
    const big = await one.limiter.take('k', { cost: 6 })
    expect(big).toMatchObject({ allowed: true, charged: 6, remaining: 94 })
    expect(one.store.asked).toEqual([{ key: 'k', least: 6, most: 6 }])
    expect(await one.limiter.take('k', { cost: 95 })).toMatchObject({ allowed: false, reason: 'limited' })
    expect(await one.limiter.take('k', { cost: 101 })).toMatchObject({ allowed: false, reason: 'impossible' })
    expect(await one.limiter.refund(big)).toBe(6)
    expect(await one.limiter.refund(big)).toBe(0)
    expect((await one.beside().limiter.peek('k')).remaining).toBe(100)
  })

  test('above what is in hand is only the rest', async () => {
    const one = new Process(hundred, { block: 8 })
    for (let request = 0; request < 3; request++) await one.limiter.take('k')
    const held = 100 - 3 - (await one.beside().limiter.peek('k')).remaining
    expect(held).toBeGreaterThan(0)
    one.store.asked.length = 0
    expect((await one.limiter.take('k', { cost: held + 2 })).allowed).toBe(true)
    expect(one.store.asked[0]).toMatchObject({ least: 2 })
  })
})

describe('units run low', () => {
  /** A key of which a whole block was just asked for. */
  async function busy(): Promise<Process> {
    const one = new Process(slidingLog({ limit: 10_000, window: '1h' }), { block: 20, ttl: '1m' })
    for (let request = 0; request < 100; request++) await one.limiter.take('k')
    await settle()
    return one
  }

  test('three tenths of a block are left when the next one is asked for, and callers go on meanwhile', async () => {
    const { limiter, store } = await busy()
    let answer = (): void => {}
    store.until = new Promise<void>((resolve) => {
      answer = resolve
    })
    store.asked.length = 0
    let left = 0
    while (store.asked.length === 0) expect(limiter.tryTake('k')?.allowed).toBe(true)
    while (limiter.tryTake('k') !== undefined) left++
    expect(left).toBe(6)
    expect(store.asked).toEqual([{ key: 'k', least: 1, most: 20 }])
    // Who comes now waits for that answer and causes no other question.
    const late = times(20, () => limiter.take('k'))
    expect(store.asked.length).toBe(1)
    answer()
    expect(allowed(await Promise.all(late))).toEqual(times(20, () => true))
  })

  test('no instance holds more than 13 tenths of a block', async () => {
    const one = await busy()
    const plain = one.beside()
    let most = 0
    for (let request = 100; request < 300; request++) {
      await one.limiter.take('k')
      await settle()
      most = Math.max(most, 10_000 - request - 1 - (await plain.limiter.peek('k')).remaining)
    }
    expect(most).toBeLessThanOrEqual(mostHeld(20))
    expect(most).toBeGreaterThan(20)
  })

  test('a refusal is not asked for again by nobody, until a pause has passed', async () => {
    const one = await busy()
    const plain = one.beside()
    await plain.limiter.take('k', { cost: (await plain.limiter.peek('k')).remaining })
    one.store.asked.length = 0
    while (one.limiter.tryTake('k') !== undefined) await settle()
    expect(one.store.asked.length).toBe(1)
  })
})

describe('an answer that is known without a trip', () => {
  test('tryTake takes what is in hand and does not ask', async () => {
    const { limiter, store } = new Process(hundred, { block: 10 })
    expect(limiter.tryTake('k')).toBeUndefined()
    expect(store.sent).toEqual([])
    await warm(limiter)
    const trips = store.sent.length
    expect(limiter.tryTake('k')).toMatchObject({ allowed: true, charged: 1, policy: 'api', degraded: false })
    expect(limiter.tryTake('k', { cost: 50 })).toBeUndefined()
    expect(limiter.tryTake('other')).toBeUndefined()
    expect(store.sent.length).toBe(trips)
  })

  test('decisions are told to who listens, each once, however they were made', async () => {
    const told: Decision[] = []
    const { limiter } = new Process(
      slidingLog({ limit: 8, window: '1h' }),
      { block: 4 },
      { on: { decision: ({ decision }) => told.push(decision) } },
    )
    const taken = [...(await Promise.all(times(5, () => limiter.take('k')))), await limiter.take('k')]
    const tried = limiter.tryTake('k')
    taken.push(...(tried === undefined ? [] : [tried]), await limiter.take('k'), await limiter.take('k', { cost: 8 }))
    await limiter.peek('k')
    expect(new Set(told)).toEqual(new Set(taken))
    expect(told.length).toBe(taken.length)
    expect(told.at(-1)?.allowed).toBe(false)
  })

  test('a decision has the figures of the store, with what is in hand', async () => {
    const { limiter } = new Process(hundred, { block: 10 })
    for (let request = 0; request < 10; request++) {
      const decision = await limiter.take('k')
      expect(decision).toMatchObject({ allowed: true, limit: 100, remaining: 99 - request, retryAfterMs: 0 })
      expect(decision.resetAfterMs).toBe(3_600_000)
    }
  })
})

describe('peek', () => {
  test('shows what is in hand beside what the store has', async () => {
    const one = new Process(slidingLog({ limit: 10, window: '1h' }), { block: 10 })
    for (let request = 0; request < 3; request++) await one.limiter.take('k')
    const plain = one.beside()
    const { remaining: left } = await plain.limiter.peek('k')
    expect((await plain.limiter.take('k', { cost: left })).allowed).toBe(true)
    const held = 7 - left
    expect(held).toBeGreaterThan(0)
    expect(await one.limiter.peek('k')).toMatchObject({ allowed: true, remaining: held, charged: 0, retryAfterMs: 0 })
    expect(await one.limiter.peek('k', { cost: held })).toMatchObject({ allowed: true })
    const refused = await one.limiter.peek('k', { cost: held + 1 })
    expect(refused).toMatchObject({ allowed: false, remaining: held })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
    // It took nothing.
    expect((await one.limiter.take('k', { cost: held })).allowed).toBe(true)
    expect((await one.limiter.take('k')).allowed).toBe(false)
  })
})

describe('units of a window', () => {
  test('are not used in the next one', async () => {
    const rule = fixedWindow({ limit: 10, window: '1s' })
    const one = new Process(rule, { block: 10, ttl: '1m' })
    vi.setSystemTime(noon + 900)
    await warm(one.limiter)
    expect(one.limiter.tryTake('k')?.allowed).toBe(true)
    vi.setSystemTime(noon + 1_000)
    expect(one.limiter.tryTake('k')).toBeUndefined()
    const answers = await Promise.all(times(20, () => one.limiter.take('k')))
    expect(answers.filter((answer) => answer.allowed).length).toBe(10)
  })

  test('end a thousandth of what was left before it, for clocks that drift', async () => {
    const { limiter } = new Process(fixedWindow({ limit: 10, window: '100s' }), { block: 10, ttl: '1h' })
    await warm(limiter)
    vi.setSystemTime(noon + 99_899)
    expect(limiter.tryTake('k')?.allowed).toBe(true)
    vi.setSystemTime(noon + 99_900)
    expect(limiter.tryTake('k')).toBeUndefined()
  })
})
