import {
  concurrency,
  createLimiter,
  type Decision,
  fixedWindow,
  leakyQueue,
  quota,
  type ReservingRule,
  type Rules,
  type SharedLimiter,
  type SharedLimiterOptions,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expect, test, vi } from 'vitest'
import { FaultyStore } from '../failure/faulty-store.ts'
import { frozen, settle } from '../lease/setup.ts'
import { Watch } from './watch.ts'

frozen()

type Options = Partial<Omit<SharedLimiterOptions, 'name' | 'store'>>

/** Limiters of two instances over one store. */
function two<R extends Rules>(
  rules: R,
  options: Options = {},
): { stores: [FaultyStore, FaultyStore]; limiters: [SharedLimiter<R>, SharedLimiter<R>] } {
  const first = new FaultyStore()
  const stores: [FaultyStore, FaultyStore] = [first, new FaultyStore(first)]
  const make = (store: FaultyStore) =>
    createLimiter<R>(rules, { name: 'api', store, storeFailure: { expectedInstances: 2 }, ...options })
  return { stores, limiters: [make(stores[0]), make(stores[1])] }
}

const pace = tokenBucket({ limit: 10, window: '1s', burst: 5 })

describe('wait over a shared store', () => {
  test('keeps one order over all instances, each with one sleep and two trips', async () => {
    const { stores, limiters } = two(pace)
    await limiters[0].take('k', { cost: 5 })
    stores[0].sent.length = 0
    const watch = new Watch()
    for (let call = 0; call < 6; call++) {
      watch.on(`${call}`, limiters[call % 2 === 0 ? 0 : 1].wait('k'))
      await settle()
    }
    expect(stores[0].sent).toEqual(['apply', 'reserve', 'apply', 'reserve', 'apply', 'reserve'])
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['0@100', '1@200', '2@300', '3@400', '4@500', '5@600'])
    expect(stores[0].sent).toHaveLength(6)
  })

  test('passes at once in one trip where it can', async () => {
    const { stores, limiters } = two(pace)
    expect(await limiters[0].wait('k', { cost: 5 })).toMatchObject({ allowed: true, delayMs: 0, charged: 5 })
    expect(stores[0].sent).toEqual(['apply'])
    expect(await limiters[0].wait('k', { cost: 6 })).toMatchObject({ reason: 'impossible' })
  })

  test('a wait that is too long is refused at once and charges nothing', async () => {
    const { limiters } = two(pace)
    await limiters[0].take('k', { cost: 5 })
    expect(await limiters[1].wait('k', { cost: 3, maxWaitMs: 299 })).toMatchObject({ retryAfterMs: 300, charged: 0 })
    expect((await limiters[0].peek('k')).retryAfterMs).toBe(100)
  })

  test('an aborted one gives its units back, and nobody else starts later or earlier', async () => {
    const { limiters } = two(pace)
    await limiters[0].take('k', { cost: 5 })
    const abort = new AbortController()
    const watch = new Watch()
    watch.on('a', limiters[0].wait('k', { signal: abort.signal }))
    await settle()
    watch.on('b', limiters[1].wait('k', { cost: 2 }))
    await settle()
    abort.abort()
    await settle()
    expect(watch.refused).toEqual(['a@0 aborted'])
    expect((await limiters[1].peek('k')).retryAfterMs).toBe(300)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['b@300'])
  })

  test.each(['take', 'reserve'] as const)(
    'an aborted one whose %s is under way is answered at once, and gives back what comes',
    async (stage) => {
      const { stores, limiters } = two(pace)
      await limiters[0].take('k', { cost: stage === 'take' ? 3 : 5 })
      const gate = (): (() => void) => {
        let open = (): void => {}
        stores[0].until = new Promise<void>((resolve) => {
          open = resolve
        })
        return open
      }
      let open = gate()
      const abort = new AbortController()
      const waiting = limiters[0].wait('k', { signal: abort.signal })
      await settle()
      if (stage === 'reserve') {
        const first = open
        open = gate()
        first()
        await settle()
      }
      expect(stores[0].sent.at(-1)).toBe(stage === 'take' ? 'apply' : 'reserve')
      abort.abort()
      expect(await waiting).toMatchObject({ allowed: false, reason: 'aborted', charged: 0 })
      open()
      await settle()
      const { remaining, retryAfterMs } = await limiters[1].peek('k')
      expect([remaining, retryAfterMs]).toEqual(stage === 'take' ? [2, 0] : [0, 100])
    },
  )

  test('a stack of a bucket and a window: a window that refuses is final, at once and at the end of the wait', async () => {
    const { limiters } = two({ pace, day: fixedWindow({ limit: 7, window: '1d' }) })
    const keys = { pace: 'k', day: 'k' }
    await limiters[0].take(keys, { cost: 5 })
    const watch = new Watch()
    for (const name of ['a', 'b', 'c']) {
      watch.on(name, limiters[0].wait(keys))
      await settle()
    }
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['a@100', 'b@200'])
    expect(watch.refused).toEqual(['c@300 limited'])
    expect(watch.log.at(-1)?.decision).toMatchObject({ policy: 'day', charged: 0 })
    expect((await limiters[1].peek(keys)).policies.map(({ remaining }) => remaining)).toEqual([5, 0])
    watch.on('d', limiters[0].wait(keys, { maxWaitMs: 86_400_000 }))
    await settle()
    expect(watch.refused.at(-1)).toBe('d@1000 limited')
  })

  test('a leaky queue waits for the delay of its place, in one trip', async () => {
    const { stores, limiters } = two(leakyQueue({ limit: 10, window: '1s', capacity: 3 }))
    const watch = new Watch()
    for (let call = 0; call < 4; call++) watch.on(`${call}`, limiters[0].wait('k', { maxWaitMs: 250 }))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['0@100', '1@200'])
    expect(watch.refused).toEqual(['2@0 limited', '3@0 limited'])
    expect(watch.log[0]?.decision.retryAfterMs).toBe(50)
    expect(stores[0].sent).toEqual(['reserve', 'reserve', 'reserve', 'reserve'])
  })

  test.each([
    ['fixedWindow', fixedWindow({ limit: 1, window: '1s' })],
    ['slidingLog', slidingLog({ limit: 1, window: '1s' })],
    ['quota', quota({ limit: 1, period: 'day' })],
    ['concurrency', concurrency({ limit: 1 })],
  ])('%s cannot be waited for', async (_, rule) => {
    const [limiter] = two(rule).limiters
    const { wait } = limiter as unknown as { wait: (key: string) => Promise<Decision> }
    await expect(wait('k')).rejects.toMatchObject({ code: 'CATRACA_WAIT_UNSUPPORTED' })
  })

  test('reset asks those who wait here anew, close ends their waits and gives back what they reserved', async () => {
    const { limiters } = two(pace)
    await limiters[0].take('k', { cost: 5 })
    const watch = new Watch()
    for (let call = 0; call < 7; call++) watch.on(`${call}`, limiters[0].wait('k'))
    await settle()
    await limiters[0].reset('k')
    await settle()
    expect(watch.passed).toEqual(['0@0', '1@0', '2@0', '3@0', '4@0'])
    limiters[0].close()
    await settle()
    expect(watch.refused.toSorted()).toEqual(['5@0 aborted', '6@0 aborted'])
    expect((await limiters[1].peek('k')).retryAfterMs).toBe(100)
    await expect(limiters[0].wait('k')).rejects.toMatchObject({ code: 'CATRACA_LIMITER_CLOSED' })
  })

  test('too many waiters are refused as queue-full', async () => {
    const { limiters } = two(pace, { maxWaiting: 1 })
    await limiters[0].take('k', { cost: 5 })
    const watch = new Watch()
    watch.on('a', limiters[0].wait('k'))
    watch.on('b', limiters[0].wait('k'))
    await vi.advanceTimersByTimeAsync(100)
    expect(watch.passed).toEqual(['a@100'])
    expect(watch.refused).toEqual(['b@0 queue-full'])
  })
})

describe('wait without the store', () => {
  const lost = async (rules: ReservingRule, options: Options) => {
    const { stores, limiters } = two(rules, options)
    for (const store of stores) store.fault = 'gone'
    await limiters[0].take('other')
    return { stores, limiter: limiters[0] }
  }

  test('local: reserves in the share of this instance', async () => {
    const { limiter } = await lost(tokenBucket({ limit: 10, window: '1s', burst: 4 }), { onStoreFailure: 'local' })
    const watch = new Watch()
    for (let call = 0; call < 5; call++) watch.on(`${call}`, limiter.wait('k', { maxWaitMs: 400 }))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['0@0', '1@0', '2@200', '3@400'])
    expect(watch.refused).toEqual(['4@0 limited'])
    expect(watch.log.every(({ decision }) => decision.degraded)).toBe(true)
  })

  test('open: passes at once; closed: refuses at once', async () => {
    const open = await lost(pace, { onStoreFailure: 'open' })
    expect(await open.limiter.wait('k', { cost: 5 })).toMatchObject({ allowed: true, degraded: true, delayMs: 0 })
    const closed = await lost(pace, { onStoreFailure: 'closed' })
    expect(await closed.limiter.wait('k')).toMatchObject({ reason: 'store-closed', degraded: true })
  })

  test('a reservation that the store does not answer is decided by the mode', async () => {
    const { stores, limiters } = two(pace, { onStoreFailure: 'local' })
    await limiters[0].take('k', { cost: 5 })
    stores[0].nextFaults.push(undefined as never, 'slow')
    const decision = await limiters[0].wait('k')
    expect(stores[0].sent.slice(-2)).toEqual(['apply', 'reserve'])
    expect(decision).toMatchObject({ allowed: true, degraded: true, charged: 1 })
  })
})

describe('wait for a leased key', () => {
  test('takes what is in hand at once, else reserves in the store', async () => {
    const rule = tokenBucket({ limit: 10, window: '1s', burst: 10 })
    const { stores, limiters } = two(rule, { lease: { block: 4 } })
    await limiters[0].take('k')
    await settle()
    stores[0].sent.length = 0
    expect((await limiters[0].wait('k')).allowed).toBe(true)
    const watch = new Watch()
    for (let call = 0; call < 12; call++) watch.on(`${call}`, limiters[0].wait('k'))
    await settle()
    expect(stores[0].sent).toContain('reserve')
    await vi.advanceTimersByTimeAsync(5_000)
    expect(watch.passed).toHaveLength(12)
    const late = watch.log.filter(({ ms }) => ms > 0).map(({ ms }) => ms)
    expect(late).toEqual(late.toSorted((a, b) => a - b))
    expect(late.at(-1)).toBeLessThanOrEqual(1_300)
  })
})

describe('takeUpTo and settle over a shared store', () => {
  test('takes what passes in one trip, at least one unit', async () => {
    const { stores, limiters } = two({ pace, day: fixedWindow({ limit: 7, window: '1d' }) })
    const keys = { pace: 'k', day: 'k' }
    expect(await limiters[0].takeUpTo(keys, 3)).toMatchObject({ allowed: true, charged: 3 })
    expect(await limiters[1].takeUpTo(keys, 100)).toMatchObject({ allowed: true, charged: 2 })
    expect(await limiters[1].takeUpTo(keys, 100)).toMatchObject({ allowed: false, charged: 0, retryAfterMs: 100 })
    expect(stores[0].sent).toEqual(['upTo'])
    await expect(limiters[0].takeUpTo(keys, 0)).rejects.toMatchObject({ code: 'CATRACA_COST_INVALID', path: 'units' })
  })

  test('settles once, in every policy', async () => {
    const { limiters } = two({ pace, day: fixedWindow({ limit: 7, window: '1d' }) })
    const keys = { pace: 'k', day: 'k' }
    const decision = await limiters[0].take(keys, { cost: 4 })
    expect(await limiters[0].settle(decision, 1)).toBe(3)
    expect(await limiters[0].settle(decision, 0)).toBe(0)
    expect(await limiters[0].refund(decision)).toBe(0)
    expect((await limiters[1].peek(keys)).policies.map(({ remaining }) => remaining)).toEqual([4, 6])
    const more = await limiters[0].take(keys)
    expect(await limiters[0].settle(more, 5)).toBe(-4)
    expect((await limiters[1].peek(keys)).policies.map(({ remaining }) => remaining)).toEqual([0, 1])
  })

  test('without the store the mode decides what passes', async () => {
    const { stores, limiters } = two(tokenBucket({ limit: 10, window: '1s', burst: 4 }))
    stores[0].fault = 'gone'
    const decision = await limiters[0].takeUpTo('k', 10)
    expect(decision).toMatchObject({ allowed: true, charged: 2, degraded: true })
    expect(await limiters[0].settle(decision, 1)).toBe(1)
    expect(await limiters[0].takeUpTo('k', 10)).toMatchObject({ charged: 1 })
  })
})
