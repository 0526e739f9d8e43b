import {
  concurrency,
  createLimiter,
  fixedWindow,
  leakyQueue,
  memoryStore,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

const ten = { limit: 10, window: '10s' } as const
const charging: [string, Rule][] = [
  ['fixedWindow', fixedWindow(ten)],
  ['fixedWindow first', fixedWindow({ ...ten, anchor: 'first' })],
  ['slidingLog', slidingLog(ten)],
  ['slidingCounter', slidingCounter(ten)],
  ['slidingCounter in parts', slidingCounter({ ...ten, subWindows: 5 })],
  ['tokenBucket', tokenBucket(ten)],
  ['leakyQueue', leakyQueue({ ...ten, capacity: 10 })],
  ['quota', quota({ limit: 10, period: 'day' })],
]
const left = (limiter: ReturnType<typeof createLimiter<Rule>>, now: number) => limiter.peek('k', { now }).remaining

describe.each(charging)('settle under %s', (_, rule) => {
  test('gives back what a request did not cost, all of it for 0, once per decision', () => {
    const limiter = createLimiter(rule)
    const decision = limiter.take('k', { now: 0, cost: 8 })
    expect(limiter.settle(decision, 3)).toBe(5)
    expect(left(limiter, 0)).toBe(7)
    expect(limiter.settle(decision, 0)).toBe(0)
    expect(limiter.refund(decision)).toBe(0)
    expect(left(limiter, 0)).toBe(7)
    expect(limiter.settle(limiter.take('k', { now: 0, cost: 7 }), 0)).toBe(7)
    expect(left(limiter, 0)).toBe(7)
  })

  test('charges what a request cost more, unasked, up to twice the limit in use', () => {
    const limiter = createLimiter(rule)
    const decision = limiter.take('k', { now: 0, cost: 6 })
    expect(limiter.settle(decision, 9)).toBe(-3)
    expect(left(limiter, 0)).toBe(1)
    expect(limiter.settle(limiter.take('k', { now: 0 }), Number.MAX_SAFE_INTEGER)).toBe(-10)
    expect(limiter.take('k', { now: 0 })).toMatchObject({ allowed: false, remaining: 0 })
    limiter.reset('k')
    expect(left(limiter, 0)).toBe(10)
  })

  test('of what was as expected changes nothing and is the one time', () => {
    const limiter = createLimiter(rule)
    const decision = limiter.take('k', { now: 0, cost: 4 })
    expect(limiter.settle(decision, 4)).toBe(0)
    expect(limiter.settle(decision, 0)).toBe(0)
    expect(left(limiter, 0)).toBe(6)
  })

  test('of a refusal and of a refunded decision does nothing', () => {
    const limiter = createLimiter(rule)
    const taken = limiter.take('k', { now: 0, cost: 10 })
    expect(limiter.settle(limiter.take('k', { now: 0 }), 5)).toBe(0)
    limiter.refund(taken, 2)
    expect(limiter.settle(taken, 100)).toBe(0)
    expect(left(limiter, 0)).toBe(2)
  })

  test('gives nothing back once the charge no longer counts; what it cost more counts now', () => {
    const limiter = createLimiter(rule)
    const [less, more] = [limiter.take('k', { now: 0, cost: 4 }), limiter.take('k', { now: 0, cost: 4 })]
    const { resetAfterMs } = more
    limiter.peek('k', { now: resetAfterMs })
    expect(limiter.settle(less, 1)).toBe(0)
    expect(left(limiter, resetAfterMs)).toBe(10)
    expect(limiter.settle(more, 7)).toBe(-3)
    expect(left(limiter, resetAfterMs)).toBe(7)
  })

  test('never leaves more in use than twice the limit, nor less than what others used', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 10 }), fc.nat(60)), { maxLength: 12 }), (list) => {
        const limiter = createLimiter(rule)
        let used = 0
        for (const [cost, actual] of list) {
          const decision = limiter.take('k', { now: 0, cost })
          if (!decision.allowed) continue
          const changed = limiter.settle(decision, actual)
          used += cost - changed
          expect(changed).toBeLessThanOrEqual(cost)
          expect(cost - changed).toBeLessThanOrEqual(Math.max(cost, actual))
        }
        expect(used).toBeLessThanOrEqual(20)
        expect(left(limiter, 0)).toBe(Math.max(0, 10 - used))
      }),
      { numRuns: 100 },
    )
  })
})

test('a debt is paid before anything passes', () => {
  const limiter = createLimiter(tokenBucket(ten))
  limiter.settle(limiter.take('k', { now: 0 }), 20)
  expect(limiter.take('k', { now: 0 }).retryAfterMs).toBe(11_000)
  expect(limiter.take('k', { now: 10_999 }).allowed).toBe(false)
  expect(limiter.take('k', { now: 11_000 }).allowed).toBe(true)
})

test('a key in debt is not forgotten at the bound of the store', () => {
  const store = memoryStore({ maxKeys: 4, seed: 1 })
  const limiter = createLimiter(tokenBucket(ten), { store })
  const longer = createLimiter(tokenBucket({ limit: 10, window: '1h' }), { name: 'longer', store })
  limiter.settle(limiter.take('k', { now: 0 }), 20)
  // All of them end later, so that the debt would be the first to go.
  for (let key = 0; key < 200; key++) longer.take(`other${key}`, { now: 0, cost: 10 })
  expect(limiter.take('k', { now: 0 }).allowed).toBe(false)
})

test('permits can be given back by it, and are never added', () => {
  const limiter = createLimiter(concurrency({ limit: 10 }))
  const decision = limiter.take('k', { now: 0, cost: 6 })
  expect(limiter.settle(decision, 2)).toBe(4)
  expect(left(limiter, 0)).toBe(8)
  decision.release()
  expect(left(limiter, 0)).toBe(10)
  expect(limiter.settle(limiter.take('k', { now: 0 }), 5)).toBe(0)
  expect(left(limiter, 0)).toBe(9)
})

test('of a stack it settles every policy and says what is nearest to nothing', () => {
  const limiter = createLimiter({
    rate: tokenBucket(ten),
    day: quota({ limit: 100, period: 'day' }),
    held: concurrency({ limit: 10 }),
  })
  const keys = { rate: 'k', day: 'k', held: 'k' }
  const at = (now: number) => limiter.peek(keys, { now }).policies.map(({ remaining }) => remaining)
  const less = limiter.take(keys, { now: 0, cost: 5 })
  expect(at(2_000)).toEqual([7, 95, 5])
  expect(limiter.settle(less, 1)).toBe(3)
  expect(at(2_000)).toEqual([10, 99, 9])
  const more = limiter.take(keys, { now: 2_000 })
  expect(limiter.settle(more, 50)).toBe(-19)
  expect(at(2_000)).toEqual([0, 49, 8])
})

test.each([-1, 1.5, Number.NaN, Infinity, '3', 2 ** 53, undefined])(
  'settle of %s throws and settles nothing',
  (actual) => {
    const limiter = createLimiter(fixedWindow(ten))
    const decision = limiter.take('k', { now: 0, cost: 4 })
    expect(() => limiter.settle(decision, actual as number)).toThrow(
      expect.objectContaining({ code: 'CATRACA_COST_INVALID', path: 'actualCost' }),
    )
    expect(limiter.settle(decision, 0)).toBe(4)
  },
)

test('settle of the decision of another limiter throws', () => {
  const [one, other] = [createLimiter(fixedWindow(ten)), createLimiter(fixedWindow(ten))]
  expect(() => one.settle(other.take('k', { now: 0 }), 0)).toThrow(
    expect.objectContaining({ code: 'CATRACA_DECISION_FOREIGN' }),
  )
})

describe.each([...charging, ['concurrency', concurrency({ limit: 10 })] as [string, Rule]])(
  'takeUpTo under %s',
  (_, rule) => {
    test('takes what passes, at least one unit', () => {
      const limiter = createLimiter(rule)
      expect(limiter.takeUpTo('k', 6, { now: 0 })).toMatchObject({ allowed: true, charged: 6, cost: 6, remaining: 4 })
      expect(limiter.takeUpTo('k', 100, { now: 0 })).toMatchObject({ allowed: true, charged: 4, remaining: 0 })
      const refused = limiter.takeUpTo('k', 100, { now: 0 })
      expect(refused).toMatchObject({ allowed: false, charged: 0, cost: 1 })
      expect(refused.retryAfterMs).toBe(limiter.take('k', { now: 0 }).retryAfterMs)
    })
  },
)

test('takeUpTo of a stack takes as many as pass under all, in all', () => {
  const limiter = createLimiter({ rate: tokenBucket(ten), day: quota({ limit: 3, period: 'day' }) })
  const keys = { rate: 'k', day: 'k' }
  expect(limiter.takeUpTo(keys, 8, { now: 0 })).toMatchObject({ charged: 3, policy: 'day' })
  expect(limiter.peek(keys, { now: 0 }).policies.map(({ remaining }) => remaining)).toEqual([7, 0])
  expect(limiter.takeUpTo(keys, 8, { now: 0 })).toMatchObject({ allowed: false, reason: 'quota' })
  expect(limiter.peek(keys, { now: 0 }).policies.map(({ remaining }) => remaining)).toEqual([7, 0])
})

test.each([0, -1, 1.5, '3', undefined])('takeUpTo of %s throws and takes nothing', (units) => {
  const limiter = createLimiter(tokenBucket(ten))
  expect(() => limiter.takeUpTo('k', units as number)).toThrow(
    expect.objectContaining({ code: 'CATRACA_COST_INVALID', path: 'units' }),
  )
  expect(() => limiter.takeUpTo('k', 1, { cost: 2 } as never)).toThrow(
    expect.objectContaining({ code: 'CATRACA_OPTION_UNKNOWN' }),
  )
  expect(limiter.peek('k').remaining).toBe(10)
})

test('takeUpTo of a blocked key is refused, and listeners hear of what it took', () => {
  const heard: number[] = []
  const limiter = createLimiter(tokenBucket(ten), { on: { decision: ({ decision }) => heard.push(decision.charged) } })
  limiter.takeUpTo('k', 4)
  limiter.block('k', '1h')
  expect(limiter.takeUpTo('k', 4)).toMatchObject({ reason: 'blocked', charged: 0 })
  expect(heard).toEqual([4, 0])
})
