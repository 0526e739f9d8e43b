import { createLimiter, type Limiter, memoryStore, type Rule, tokenBucket } from 'catraca'
import { describe, expect, test } from 'vitest'
import { expectFailure } from './failure.ts'

const ten = (): Rule => tokenBucket({ limit: 10, window: '1m' })
const single = () => createLimiter(ten())
const stack = () => createLimiter({ user: ten(), tenant: ten() })
const keys = { user: 'u', tenant: 't' }
const wrong = (value: unknown) => value as never

describe('cost', () => {
  const costs = [
    { cost: Number.NaN, shown: 'NaN' },
    { cost: Number.POSITIVE_INFINITY, shown: 'Infinity' },
    { cost: -1, shown: '-1' },
    { cost: 0, shown: '0' },
    { cost: -0, shown: '0' },
    { cost: 0.5, shown: '0.5' },
    { cost: '3', shown: '"3"' },
    { cost: null, shown: 'null' },
    { cost: 3n, shown: '3n' },
    { cost: [3], shown: 'an array' },
    { cost: {}, shown: 'an object' },
    { cost: true, shown: 'true' },
    { cost: 2 ** 53, shown: '9007199254740992' },
  ]

  test.each(costs)('$shown throws and charges nothing', ({ cost, shown }) => {
    const expected = {
      code: 'CATRACA_COST_INVALID',
      path: 'cost',
      says: [`cost is ${shown}`, '1 to 9007199254740991'],
    } as const
    const one = single()
    one.take('k', { now: 0, cost: 4 })
    expectFailure(() => one.take('k', { now: 0, cost: wrong(cost) }), expected)
    expectFailure(() => one.tryTake('k', { now: 0, cost: wrong(cost) }), expected)
    expectFailure(() => one.peek('k', { now: 0, cost: wrong(cost) }), expected)
    expect(one.peek('k', { now: 0 }).remaining).toBe(6)

    const both = stack()
    both.take(keys, { now: 0, cost: 4 })
    expectFailure(() => both.take(keys, { now: 0, cost: wrong(cost) }), expected)
    expect(both.peek(keys, { now: 0 }).policies.map(({ remaining }) => remaining)).toEqual([6, 6])
  })

  test('units of a refund obey the same rule and leave the charge refundable', () => {
    const limiter = single()
    const decision = limiter.take('k', { now: 0, cost: 4 })
    for (const { cost } of costs) {
      expectFailure(() => limiter.refund(decision, wrong(cost)), {
        code: 'CATRACA_COST_INVALID',
        path: 'cost',
        says: [],
      })
    }
    expect(limiter.refund(decision, 4)).toBe(4)
  })

  test('a safe integer above the capacity is impossible, not an error, and charges nothing', () => {
    for (const cost of [11, Number.MAX_SAFE_INTEGER]) {
      const one = single()
      const decision = one.take('k', { now: 0, cost })
      expect(decision).toMatchObject({ allowed: false, reason: 'impossible', retryAfterMs: Infinity, charged: 0 })
      expect(JSON.parse(JSON.stringify(decision))).toMatchObject({
        retryAfterMs: null,
        policies: [{ retryAfterMs: null }],
      })
      expect(one.peek('k', { now: 0 }).remaining).toBe(10)
      const both = createLimiter({ wide: tokenBucket({ limit: 100, window: '1m' }), narrow: ten() })
      const refused = both.take({ wide: 'k', narrow: 'k' }, { now: 0, cost: 11 })
      expect(refused).toMatchObject({ allowed: false, reason: 'impossible', policy: 'narrow', retryAfterMs: Infinity })
      expect(both.peek({ wide: 'k', narrow: 'k' }, { now: 0 }).policies.map(({ remaining }) => remaining)).toEqual([
        100, 10,
      ])
    }
  })
})

describe('keys of a wrong type', () => {
  const values = [
    { key: undefined, shown: 'undefined' },
    { key: null, shown: 'null' },
    { key: 7, shown: '7' },
    { key: {}, shown: 'an object' },
    { key: ['a'], shown: 'an array' },
    { key: Symbol('s'), shown: 'Symbol(s)' },
    { key: () => 'k', shown: 'a function' },
  ]

  test.each(values)('$shown throws in every verb of a limiter of one rule', ({ key, shown }) => {
    const limiter = single()
    const calls: ((limiter: Limiter<Rule>) => unknown)[] = [
      (one) => one.take(wrong(key)),
      (one) => one.tryTake(wrong(key)),
      (one) => one.peek(wrong(key)),
      (one) => one.reset(wrong(key)),
      (one) => one.block(wrong(key), '1s'),
      (one) => one.unblock(wrong(key)),
    ]
    for (const call of calls) {
      const says = [`key is ${shown}`, 'a text']
      expectFailure(() => call(limiter), { code: 'CATRACA_KEY_INVALID', path: 'key', says })
    }
  })

  test.each(values)('$shown throws for one policy of a stack and charges none', ({ key, shown }) => {
    const limiter = stack()
    const says = [`keys.tenant is ${shown}`, 'a text']
    const call = () => limiter.take(wrong({ user: 'u', tenant: key }), { now: 0 })
    expectFailure(call, { code: 'CATRACA_KEY_INVALID', path: 'keys.tenant', says })
    expect(limiter.peek(keys, { now: 0 }).policies.map(({ remaining }) => remaining)).toEqual([10, 10])
  })

  test('a stack asked without one of its names throws', () => {
    const expected = { code: 'CATRACA_KEY_INVALID', path: 'keys.tenant', says: ['keys.tenant is undefined'] } as const
    expectFailure(() => stack().take(wrong({ user: 'u' })), expected)
    expectFailure(() => stack().take(wrong({ user: 'u', tennant: 't' })), expected)
    for (const value of ['u', null, undefined, 5]) {
      expectFailure(() => stack().take(wrong(value)), {
        code: 'CATRACA_KEY_INVALID',
        path: 'keys',
        says: ['an object'],
      })
    }
  })

  test('an unknown name throws where names may be left out', () => {
    const expected = {
      code: 'CATRACA_OPTION_UNKNOWN',
      path: 'keys.tennant',
      says: ['user, tenant', 'did you mean tenant?'],
    } as const
    expectFailure(() => stack().reset(wrong({ tennant: 't' })), expected)
    expectFailure(() => stack().block(wrong({ tennant: 't' }), '1s'), expected)
    expectFailure(() => stack().unblock(wrong({ tennant: 't' })), expected)
  })
})

describe('now', () => {
  test.each([
    { now: Number.NaN, shown: 'NaN' },
    { now: -1, shown: '-1' },
    { now: Number.POSITIVE_INFINITY, shown: 'Infinity' },
    { now: 'x', shown: '"x"' },
    { now: null, shown: 'null' },
    { now: new Date(0), shown: 'an object' },
    { now: 9_000_000_000_001, shown: '9000000000001' },
  ])('$shown throws and charges nothing', ({ now, shown }) => {
    const limiter = single()
    const expected = {
      code: 'CATRACA_NOW_INVALID',
      path: 'now',
      says: [`now is ${shown}`, 'milliseconds since the epoch'],
    } as const
    expectFailure(() => limiter.take('k', { now: wrong(now) }), expected)
    expectFailure(() => limiter.peek('k', { now: wrong(now) }), expected)
    expect(limiter.peek('k', { now: 0 }).remaining).toBe(10)
  })
})

describe('calls at the wrong place', () => {
  test('a closed limiter refuses every verb that asks or changes; releasing and closing again are harmless', () => {
    const limiter = single()
    const decision = limiter.take('k')
    limiter.close()
    const expected = { code: 'CATRACA_LIMITER_CLOSED', says: ['closed'] } as const
    expectFailure(() => limiter.take('k'), expected)
    expectFailure(() => limiter.tryTake('k'), expected)
    expectFailure(() => limiter.peek('k'), expected)
    expectFailure(() => limiter.reset('k'), expected)
    expectFailure(() => limiter.block('k', '1s'), expected)
    expectFailure(() => limiter.unblock('k'), expected)
    expect(() => decision.release()).not.toThrow()
    expect(() => limiter.close()).not.toThrow()
  })

  test('a closed store opens no limiter', () => {
    const store = memoryStore()
    store.close()
    expectFailure(() => createLimiter(ten(), { store }), { code: 'CATRACA_LIMITER_CLOSED', says: ['store'] })
  })

  test('a limiter whose store was closed does not decide; closing it leaves the store at zero keys', () => {
    const store = memoryStore()
    const limiter = createLimiter(ten(), { store })
    limiter.take('k')
    store.close()
    expectFailure(() => limiter.take('k'), { code: 'CATRACA_LIMITER_CLOSED', says: ['closed'] })
    expectFailure(() => limiter.take('new'), { code: 'CATRACA_LIMITER_CLOSED', says: ['closed'] })
    limiter.close()
    expect(store.stats().keys).toBe(0)
  })

  test('a decision of another limiter is neither refunded nor released', () => {
    const [mine, other] = [createLimiter(ten(), { name: 'mine' }), single()]
    const decision = other.take('k', { now: 0 })
    const expected = { code: 'CATRACA_DECISION_FOREIGN', says: ['"mine"'] } as const
    expectFailure(() => mine.refund(decision), expected)
    expectFailure(() => mine.release(decision), expected)
    expect(other.refund(decision)).toBe(1)
  })

  test.each([
    { duration: 0 },
    { duration: -1 },
    { duration: Number.NaN },
    { duration: Number.POSITIVE_INFINITY },
    { duration: '1 minute' },
    { duration: undefined },
  ])('a block for $duration throws and blocks nothing', ({ duration }) => {
    const limiter = single()
    const call = () => limiter.block('k', wrong(duration))
    expectFailure(call, { code: 'CATRACA_DURATION_INVALID', path: 'block.duration', says: ['"30s"'] })
    expect(limiter.take('k').allowed).toBe(true)
  })
})

test.each([{ options: null }, { options: 3 }, { options: 'x' }, { options: [] }])(
  'take refuses $options as options',
  ({ options }) => {
    const limiter = createLimiter(tokenBucket({ limit: 1, window: '1s' }))
    const call = () => limiter.take('k', options as never)
    expect(call).toThrow(expect.objectContaining({ code: 'CATRACA_OPTION_INVALID', path: 'options' }))
    expect(limiter.peek('k').remaining).toBe(1)
  },
)

test('an option of take that is unknown is refused, not ignored', () => {
  const limiter = createLimiter(tokenBucket({ limit: 1, window: '1s' }))
  const call = () => limiter.take('k', { costs: 3 } as never)
  expect(call).toThrow(expect.objectContaining({ code: 'CATRACA_OPTION_UNKNOWN', path: 'options.costs' }))
})

test.each([null, undefined, {}, { source: {} }])('%s is no decision to refund or release', (decision) => {
  const limiter = createLimiter(tokenBucket({ limit: 1, window: '1s' }))
  const foreign = expect.objectContaining({ code: 'CATRACA_DECISION_FOREIGN' })
  expect(() => limiter.refund(decision as never)).toThrow(foreign)
  expect(() => limiter.release(decision as never)).toThrow(foreign)
})
