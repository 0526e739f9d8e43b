import { createLimiter, gcra, leakyMeter, slidingCounter, tokenBucket } from 'catraca'
import { describe, expect, test } from 'vitest'
import { atOnce, chance, every, randomArrivals, seeds } from './inputs.ts'
import { admitted, countIn, mostWithin, mostWithinClosed } from './run.ts'

const hour = 3_600_000

describe('capacity and refill', () => {
  test('acceptance 26, acceptance 238: after an idle hour 500 at once meet the cap: 20 admitted', () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 20 }))
    for (const now of atOnce(20, 0)) limiter.take('key', { now })
    expect(limiter.peek('key', { now: 0 }).remaining).toBe(0)
    const passed = atOnce(500, hour).filter((now) => limiter.take('key', { now }).allowed)
    expect(passed.length).toBe(20)
    expect(atOnce(500, hour).filter((now) => limiter.take('new', { now }).allowed).length).toBe(20)
  })

  test('acceptance 27: fractions count: 0.5 per second gives one token after 2 s', () => {
    expect(admitted(tokenBucket({ limit: 1, window: '2s', burst: 1 }), [0, 1_000, 2_000])).toEqual([0, 2_000])
  })

  test('acceptance 28: at most burst + rate × T: 99 of 40 + 60 in any half-open 10 s, 100 closed', () => {
    const times = admitted(tokenBucket({ limit: 6, window: '1s', burst: 40 }), every(5, 0, 30_000))
    expect(mostWithin(times, 10_000)).toBe(99)
    expect(mostWithinClosed(times, 10_000)).toBe(100)
  })

  test('acceptance 30: with balance 0.25 and 0.5 per second the wait is 1.5 s', () => {
    const limiter = createLimiter(tokenBucket({ limit: 1, window: '2s', burst: 1 }))
    limiter.take('key', { now: 0 })
    expect(limiter.take('key', { now: 500 })).toMatchObject({ allowed: false, retryAfterMs: 1_500 })
  })

  test('acceptance 31: balance 10: cost 25 waits 1.5 s and takes nothing, cost 1 passes', () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 25 }))
    limiter.take('key', { now: 0, cost: 15 })
    const refused = limiter.take('key', { now: 0, cost: 25 })
    expect(refused).toMatchObject({ allowed: false, retryAfterMs: 1_500, charged: 0, remaining: 10 })
    expect(limiter.peek('key', { now: 0 }).remaining).toBe(10)
    expect(limiter.take('key', { now: 0 })).toMatchObject({ allowed: true, charged: 1, remaining: 9 })
  })

  test('acceptance 33: capacity 100, 10 per second: 100 of 150 at once; 199 in [0, 10) at 100 per second', () => {
    const rule = tokenBucket({ limit: 10, window: '1s', burst: 100 })
    expect(admitted(rule, atOnce(150, 0)).length).toBe(100)
    expect(countIn(admitted(rule, every(10, 0, 10_000)), 0, 10_000)).toBe(199)
  })

  test('acceptance 34: a screen that fires six calls at once passes from capacity 6 on', () => {
    expect(admitted(tokenBucket({ limit: 1, window: '1s', burst: 6 }), atOnce(6, 0)).length).toBe(6)
    expect(admitted(tokenBucket({ limit: 1, window: '1s', burst: 5 }), atOnce(6, 0)).length).toBe(5)
  })

  test('acceptance 35: burst 20 with 100 per minute: 20 at once, then one per 0.6 s, at most 119 in any minute', () => {
    const arrivals = [...atOnce(20, 0), ...every(10, 0, 180_000)]
    const times = admitted(tokenBucket({ limit: 100, window: '1m', burst: 20 }), arrivals)
    expect(times.slice(0, 20)).toEqual(atOnce(20, 0))
    expect(times.slice(20)).toEqual(every(600, 600, 180_000))
    expect(mostWithin(times, 60_000)).toBe(119)
  })

  test('acceptance 36: 90 every five minutes pass whole; a counter of 10 per second passes 50 of 450', () => {
    const batches = [0, 1, 2, 3, 4].flatMap((batch) => every(1, batch * 300_000, batch * 300_000 + 90))
    expect(admitted(tokenBucket({ limit: 10, window: '1s', burst: 90 }), batches).length).toBe(450)
    expect(admitted(slidingCounter({ limit: 10, window: '1s' }), batches).length).toBe(50)
  })

  test('acceptance 43: cost 25 with capacity 20 is impossible: no wait is promised, nothing is charged', () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 20 }))
    const decision = limiter.take('key', { now: 0, cost: 25 })
    expect(decision).toMatchObject({ allowed: false, reason: 'impossible', retryAfterMs: Number.POSITIVE_INFINITY })
    expect(JSON.parse(JSON.stringify(decision))).toMatchObject({ reason: 'impossible', retryAfterMs: null, charged: 0 })
    expect(limiter.peek('key', { now: 0 }).remaining).toBe(20)
  })
})

describe('three names of one rule', () => {
  test('acceptance 42: GCRA and meter admit exactly the lists of the bucket, over 500 random lists', () => {
    for (const seed of seeds(500)) {
      const next = chance(seed + 10_000)
      const options = { burst: 1 + Math.floor(next() * 15), limit: 1 + Math.floor(next() * 20), window: '1s' } as const
      const times = randomArrivals(seed)
      const bucket = admitted(tokenBucket(options), times)
      expect(admitted(gcra(options), times), `gcra, seed ${seed}`).toEqual(bucket)
      expect(admitted(leakyMeter(options), times), `meter, seed ${seed}`).toEqual(bucket)
      expect(bucket, `two fields as written, seed ${seed}`).toEqual(asWritten(options.limit, options.burst, times))
    }
  })
})

/** The bucket of the documents, tokens = min(B, tokens + elapsed × r), in whole thousandths of a token. */
function asWritten(perSecond: number, burst: number, times: readonly number[]): number[] {
  let tokens = burst * 1_000
  let last = times[0] ?? 0
  return times.filter((now) => {
    tokens = Math.min(burst * 1_000, tokens + (now - last) * perSecond)
    last = now
    if (tokens < 1_000) return false
    tokens -= 1_000
    return true
  })
}
