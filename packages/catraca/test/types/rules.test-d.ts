import {
  concurrency,
  type Duration,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  quota,
  type ReservingRule,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expectTypeOf, test } from 'vitest'

describe('durations', () => {
  test('are milliseconds or a number with a unit', () => {
    expectTypeOf<'250ms' | '30s' | '15m' | '1h' | '1d' | '1.5s' | 250>().toExtend<Duration>()
    expectTypeOf<'1 minute'>().not.toExtend<Duration>()
    expectTypeOf<'1w'>().not.toExtend<Duration>()
    expectTypeOf<'s'>().not.toExtend<Duration>()
    expectTypeOf<'1'>().not.toExtend<Duration>()
    expectTypeOf<string>().not.toExtend<Duration>()
  })

  test('are checked where they are written', () => {
    // @ts-expect-error a unit, not a word
    fixedWindow({ limit: 1, window: '1 minute' })
    // @ts-expect-error weeks are not a unit
    slidingLog({ limit: 1, window: '1w' })
    // @ts-expect-error a number needs its unit
    concurrency({ limit: 1, permitTtl: '30' })
  })
})

describe('options of rules', () => {
  test('every factory gives a rule', () => {
    expectTypeOf(fixedWindow).returns.toEqualTypeOf<Rule>()
    expectTypeOf(slidingLog).returns.toEqualTypeOf<Rule>()
    expectTypeOf(slidingCounter).returns.toEqualTypeOf<Rule>()
    expectTypeOf(tokenBucket).returns.toEqualTypeOf<ReservingRule>()
    expectTypeOf(gcra).returns.toEqualTypeOf<ReservingRule>()
    expectTypeOf(leakyMeter).returns.toEqualTypeOf<ReservingRule>()
    expectTypeOf(leakyQueue).returns.toEqualTypeOf<ReservingRule>()
    expectTypeOf(quota).returns.toEqualTypeOf<Rule>()
    expectTypeOf(concurrency).returns.toEqualTypeOf<Rule>()
  })

  test('misspelt and missing names are errors', () => {
    // @ts-expect-error windw is misspelt
    tokenBucket({ limit: 1, windw: '1s' })
    // @ts-expect-error the window is missing
    tokenBucket({ limit: 1 })
    // @ts-expect-error the limit is missing
    fixedWindow({ window: '1s' })
    // @ts-expect-error a queue has a capacity, not a burst
    leakyQueue({ limit: 1, window: '1s', burst: 5 })
    // @ts-expect-error the capacity is missing
    leakyQueue({ limit: 1, window: '1s' })
    // @ts-expect-error a log has no burst
    slidingLog({ limit: 1, window: '1s', burst: 5 })
    // @ts-expect-error a quota has a period, not a window
    quota({ limit: 1, window: '1d' })
    // @ts-expect-error ttl is not the name
    concurrency({ limit: 1, ttl: '30s' })
  })

  test('values are checked where types can', () => {
    // @ts-expect-error limits are numbers
    tokenBucket({ limit: '10', window: '1s' })
    // @ts-expect-error an anchor is clock or first
    fixedWindow({ limit: 1, window: '1s', anchor: 'last' })
    // @ts-expect-error a period is day, week, month or year
    quota({ limit: 1, period: 'fortnight' })
    // @ts-expect-error undefined is not a burst
    gcra({ limit: 1, window: '1s', burst: undefined })
    // @ts-expect-error null is not a window
    leakyMeter({ limit: 1, window: null })
    // @ts-expect-error counts are numbers
    slidingCounter({ limit: 1n, window: '1s' })
  })
})
