import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expect, test } from 'vitest'

/** Every rule with a given limit and nothing coming back within a second. */
const kinds: Record<string, (limit: number) => Rule> = {
  fixedWindow: (limit) => fixedWindow({ limit, window: '1h' }),
  'fixedWindow first': (limit) => fixedWindow({ limit, window: '1h', anchor: 'first' }),
  slidingLog: (limit) => slidingLog({ limit, window: '1h' }),
  slidingCounter: (limit) => slidingCounter({ limit, window: '1h' }),
  tokenBucket: (limit) => tokenBucket({ limit, window: '1h' }),
  gcra: (limit) => gcra({ limit, window: '1h' }),
  leakyMeter: (limit) => leakyMeter({ limit, window: '1h' }),
  leakyQueue: (limit) => leakyQueue({ limit, window: '1h', capacity: limit }),
  quota: (limit) => quota({ limit, period: 'day' }),
  concurrency: (limit) => concurrency({ limit, permitTtl: '1h' }),
  'bucket in ms': (limit) => tokenBucket({ limit, window: '1h', burst: limit }),
}
const pairs = Object.keys(kinds).flatMap((first) => Object.keys(kinds).map((second) => [first, second] as const))
const make = (kind: string, limit: number) => (kinds[kind] as (limit: number) => Rule)(limit)

describe.each(pairs)('%s over %s', (outer, inner) => {
  const stack = () => createLimiter({ outer: make(outer, 10), inner: make(inner, 4) })
  const keys = { outer: 'k', inner: 'k' }
  const remaining = (limiter: ReturnType<typeof stack>) =>
    limiter.peek(keys, { now: 0 }).policies.map((one) => one.remaining)

  test('both are charged or none', () => {
    const limiter = stack()
    expect(limiter.take(keys, { now: 0, cost: 3 })).toMatchObject({ allowed: true, charged: 3 })
    expect(remaining(limiter)).toEqual([7, 1])
    const refused = limiter.take(keys, { now: 0, cost: 2 })
    expect(refused).toMatchObject({ allowed: false, policy: 'inner', charged: 0, remaining: 1 })
    expect(refused.policies.map((one) => [one.allowed, one.remaining])).toEqual([
      [true, 7],
      [false, 1],
    ])
    expect(remaining(limiter)).toEqual([7, 1])
    expect(limiter.take({ outer: 'k', inner: 'other' }, { now: 0, cost: 4 }).allowed).toBe(true)
    expect(limiter.take({ outer: 'k', inner: 'third' }, { now: 0, cost: 4 })).toMatchObject({
      policy: 'outer',
      charged: 0,
    })
    expect(limiter.peek({ outer: 'k', inner: 'third' }, { now: 0 }).policies.map((one) => one.remaining)).toEqual([
      3, 4,
    ])
  })

  test('a refund goes to both', () => {
    const limiter = stack()
    const decision = limiter.take(keys, { now: 0, cost: 3 })
    expect(limiter.refund(decision, 2)).toBe(2)
    expect(remaining(limiter)).toEqual([9, 3])
    expect(limiter.refund(decision)).toBe(0)
  })

  test('the same key text under both names is two counts', () => {
    const limiter = stack()
    limiter.take({ outer: 'a', inner: 'b' }, { now: 0 })
    expect(limiter.peek({ outer: 'b', inner: 'a' }, { now: 0 }).policies.map((one) => one.remaining)).toEqual([10, 4])
  })
})

test('limiters that share a store under different names share no counts', () => {
  const limiter = createLimiter({ a: make('fixedWindow', 4) })
  const single = createLimiter(make('fixedWindow', 4), { name: 'a' })
  limiter.take({ a: 'k' }, { now: 0 })
  expect(single.take('k', { now: 0 }).remaining).toBe(3)
})

test('one rule object may serve several policies and limiters: rules keep no counts', () => {
  const rule = make('tokenBucket', 4)
  const limiter = createLimiter({ a: rule, b: rule })
  expect(limiter.take({ a: 'k', b: 'k' }, { now: 0 }).policies.map((one) => one.remaining)).toEqual([3, 3])
  expect(limiter.take({ a: 'k', b: 'other' }, { now: 0 }).policies.map((one) => one.remaining)).toEqual([2, 3])
  expect(createLimiter(rule).take('k', { now: 0 }).remaining).toBe(3)
})
