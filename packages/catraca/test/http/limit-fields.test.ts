import {
  concurrency,
  createLimiter,
  type Decision,
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
import * as fc from 'fast-check'
import { type BareItem, parseList } from 'structured-headers'
import { describe, expect, test } from 'vitest'
import type * as LimitFields from '../../src/http/limit-fields.ts'

/** A literal path into another project is an error of the compiler. */
const fieldsFile = new URL('../../src/http/limit-fields.ts', import.meta.url).href
const { legacyFields, PolicyFields } = (await import(fieldsFile)) as typeof LimitFields

/** Noon of a Tuesday in UTC: 12 h before the end of the day, 5.5 days before that of the week. */
const noon = Date.UTC(2026, 11, 1, 12)

/** The decision on `cost` after `used` units were taken. */
function decisionOf(rule: Rule, used: number, cost = 1, now = noon): Decision {
  const limiter = createLimiter(rule, { name: 'per-user' })
  if (used > 0) limiter.take('key', { cost: used, now })
  return limiter.take('key', { cost, now })
}

/** The one item of a field as another parser reads it. */
function read(field: string): Record<string, BareItem> {
  const items = parseList(field)
  expect(items).toHaveLength(1)
  const [name, parameters] = items[0] as [BareItem, Map<string, BareItem>]
  return { name, ...Object.fromEntries(parameters) }
}

describe('acceptance 121: structured fields', () => {
  const rule = slidingCounter({ limit: 20, window: '1s' })
  const fields = new PolicyFields('per-user', rule)

  test('acceptance 121: 20 at once in 1 s, none left, 2 s to wait', () => {
    const decision = decisionOf(rule, 20, 20)
    expect([decision.allowed, decision.retryAfterMs > 1_000, decision.retryAfterMs < 2_000]).toEqual([
      false,
      true,
      true,
    ])
    expect(fields.policy).toBe('"per-user";q=20;w=1')
    expect(fields.state(decision)).toBe('"per-user";r=0;t=2')
    expect(read(fields.policy)).toEqual({ name: 'per-user', q: 20, w: 1 })
    expect(read(fields.state(decision))).toEqual({ name: 'per-user', r: 0, t: 2 })
  })

  test('acceptance 121: a bucket of 20 that fills in 2 s says so, admitted and refused', () => {
    const bucket = tokenBucket({ limit: 10, window: '1s', burst: 20 })
    const ofBucket = new PolicyFields('per-user', bucket)
    expect(read(ofBucket.policy)).toEqual({ name: 'per-user', q: 20, w: 2 })
    expect(read(ofBucket.state(decisionOf(bucket, 0)))).toEqual({ name: 'per-user', r: 19, t: 2 })
    expect(read(ofBucket.state(decisionOf(bucket, 20)))).toEqual({ name: 'per-user', r: 0, t: 1 })
    expect(read(ofBucket.state(decisionOf(bucket, 20, 11)))).toEqual({ name: 'per-user', r: 0, t: 2 })
    expect(read(ofBucket.state(decisionOf(bucket, 15, 7)))).toEqual({ name: 'per-user', r: 0, t: 1 })
  })
})

const day = 86_400
const rules: [title: string, rule: Rule, policy: Record<string, BareItem>, first: Record<string, BareItem>][] = [
  ['token bucket', tokenBucket({ limit: 600, window: '1m', burst: 90 }), { q: 90, w: 9 }, { r: 89, t: 9 }],
  ['token bucket, rounded up', gcra({ limit: 7, window: '1s', burst: 8 }), { q: 8, w: 2 }, { r: 7, t: 2 }],
  [
    'token bucket that fills within a second',
    leakyMeter({ limit: 10, window: '1s', burst: 1 }),
    { q: 1, w: 1 },
    { r: 0, t: 1 },
  ],
  [
    'token bucket of a short window',
    tokenBucket({ limit: 1, window: '100ms', burst: 50 }),
    { q: 50, w: 5 },
    { r: 49, t: 5 },
  ],
  ['leaky queue', leakyQueue({ limit: 2, window: '1s', capacity: 7 }), { q: 7, w: 4 }, { r: 6, t: 4 }],
  ['fixed window', fixedWindow({ limit: 100, window: '1m' }), { q: 100, w: 60 }, { r: 99, t: 60 }],
  ['sliding log', slidingLog({ limit: 4, window: '1.5s' }), { q: 4, w: 2 }, { r: 3, t: 2 }],
  ['window of one second', slidingCounter({ limit: 4, window: '1s' }), { q: 4, w: 1 }, { r: 3, t: 1 }],
  ['window under one second', slidingCounter({ limit: 4, window: '999ms' }), { q: 4 }, { r: 3 }],
  ['quota of a day', quota({ limit: 9, period: 'day' }), { q: 9, w: day }, { r: 8, t: day / 2 }],
  ['quota of a week', quota({ limit: 9, period: 'week' }), { q: 9, w: 7 * day }, { r: 8, t: 5.5 * day }],
  ['quota of a month', quota({ limit: 9, period: 'month' }), { q: 9 }, { r: 8, t: 30.5 * day }],
  ['quota of a year', quota({ limit: 9, period: 'year' }), { q: 9 }, { r: 8, t: 30.5 * day }],
  ['concurrency', concurrency({ limit: 30 }), { q: 30, qu: 'concurrent-requests' }, { r: 29 }],
]

describe('every rule, read back by another parser', () => {
  test.each(rules)('%s', (_, rule, policy, first) => {
    const fields = new PolicyFields('p', rule)
    expect(read(fields.policy)).toEqual({ name: 'p', ...policy })
    expect(read(fields.state(decisionOf(rule, 0)))).toEqual({ name: 'p', ...first })
    const refused = decisionOf(rule, rule.limit)
    expect(read(fields.state(refused))).toEqual({ name: 'p', r: 0, t: Math.ceil(refused.retryAfterMs / 1_000) })
    expect(refused.allowed).toBe(false)
  })

  test('a quota that nobody used yet ends when its period does', () => {
    const rule = quota({ limit: 9, period: 'day' })
    const peeked = createLimiter(rule).peek('key', { now: noon + 0.5 })
    expect(read(new PolicyFields('p', rule).state(peeked))).toEqual({ name: 'p', r: 9, t: day / 2 })
  })

  test('a cost that can never pass shows what smaller ones would find', () => {
    const rule = tokenBucket({ limit: 10, window: '1s', burst: 20 })
    expect(read(new PolicyFields('p', rule).state(decisionOf(rule, 5, 21)))).toEqual({ name: 'p', r: 15, t: 2 })
  })

  test('a blocked key has nothing left until its block ends', () => {
    const rule = tokenBucket({ limit: 10, window: '1s', burst: 20 })
    const limiter = createLimiter(rule, { name: 'per-user' })
    limiter.take('key', { now: noon })
    limiter.block('key', 2_500)
    const blocked = limiter.take('key', { now: noon })
    expect(blocked.reason).toBe('blocked')
    expect(read(new PolicyFields('p', rule).state(blocked))).toEqual({ name: 'p', r: 0, t: 3 })
    expect(legacyFields(blocked)).toEqual(['20', '0', '3'])
  })

  test('figures of more than 15 digits are cut to the largest that fields can carry', () => {
    const rule = fixedWindow({ limit: 1e15, window: '36500d' })
    const fields = new PolicyFields('p', rule)
    expect(read(fields.policy)).toEqual({ name: 'p', q: 999_999_999_999_999, w: 36_500 * day })
    const peeked = createLimiter(rule).peek('key', { now: noon })
    expect(read(fields.state(peeked))).toMatchObject({ r: 999_999_999_999_999 })
    expect(legacyFields(peeked).slice(0, 2)).toEqual(['999999999999999', '999999999999999'])
    const slow = tokenBucket({ limit: 1, window: '36500d', burst: 1_000 })
    expect(read(new PolicyFields('p', slow).policy)).toEqual({ name: 'p', q: 1_000, w: 36_500 * day * 1_000 })
  })

  test('a name that headers cannot carry is found at start', () => {
    const rule = fixedWindow({ limit: 1, window: '1s' })
    expect(() => new PolicyFields('é', rule)).toThrow(expect.objectContaining({ code: 'CATRACA_OPTION_INVALID' }))
  })

  test('the seconds to fill are exact where limit × window passes 2^53', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 1, max: 86_400 }),
        fc.integer({ min: 1, max: 1_000_000_000 }),
        (k, s, burst) => {
          // k per s seconds, in a form whose tick is a second.
          const rule = tokenBucket({ limit: k, window: s * 1_000, burst })
          const exact = (BigInt(burst) * BigInt(s) + BigInt(k) - 1n) / BigInt(k)
          expect(read(new PolicyFields('p', rule).policy)).toEqual({ name: 'p', q: burst, w: Number(exact) })
        },
      ),
      { numRuns: 500 },
    )
  })
})

describe('legacy fields in seconds from now', () => {
  test('admitted: what is left, and when nothing is used any more', () => {
    const rule = tokenBucket({ limit: 600, window: '1m', burst: 900 })
    expect(legacyFields(decisionOf(rule, 0))).toEqual(['900', '899', '1'])
    expect(legacyFields(decisionOf(rule, 499, 1))).toEqual(['900', '400', '50'])
  })

  test('refused: none, and the wait', () => {
    const rule = fixedWindow({ limit: 100, window: '1m' })
    expect(legacyFields(decisionOf(rule, 100, 1, noon + 30_000))).toEqual(['100', '0', '30'])
    expect(legacyFields(decisionOf(rule, 98, 5, noon + 30_001))).toEqual(['100', '0', '30'])
  })

  test('never fits: what smaller costs would find', () => {
    const rule = fixedWindow({ limit: 100, window: '1m' })
    expect(legacyFields(decisionOf(rule, 40, 101, noon + 30_000))).toEqual(['100', '60', '30'])
    expect(legacyFields(createLimiter(rule).peek('key', { now: noon }))).toEqual(['100', '100', '0'])
  })
})
