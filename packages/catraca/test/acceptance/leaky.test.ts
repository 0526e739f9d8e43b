import { createLimiter, leakyMeter, leakyQueue, tokenBucket } from 'catraca'
import { describe, expect, test } from 'vitest'
import { atOnce, chance, randomArrivals, seeds, twentyIn200ms } from './inputs.ts'
import { admitted, departures, mostWithin, run } from './run.ts'

describe('the queue', () => {
  const sixPlaces = leakyQueue({ limit: 2, window: '1s', capacity: 6 })

  test('acceptance 51: of 9 at once 3 find no place; the others leave at 0.5, 1, 1.5, 2, 2.5, 3 s', () => {
    const decisions = run(sixPlaces, atOnce(9, 0))
    expect(decisions.map(({ allowed }) => allowed)).toEqual([...Array(6).fill(true), ...Array(3).fill(false)])
    expect(departures(sixPlaces, atOnce(9, 0))).toEqual([500, 1_000, 1_500, 2_000, 2_500, 3_000])
  })

  test('acceptance 52: with k − 1 ahead the wait is k ÷ rate, at worst capacity ÷ rate', () => {
    const limiter = createLimiter(sixPlaces)
    for (let place = 1; place <= 6; place++) {
      expect(limiter.take('key', { now: 0 }).delayMs).toBe(500 * place)
    }
    expect(limiter.take('key', { now: 499.999 })).toMatchObject({ allowed: false, delayMs: 0, retryAfterMs: 0.001 })
    expect(limiter.take('key', { now: 500 })).toMatchObject({ allowed: true, delayMs: 3_000 })
    const { limit, windowMs } = sixPlaces.options as { limit: number; windowMs: number }
    expect((sixPlaces.limit * windowMs) / limit).toBe(3_000)
  })

  test('acceptance 53: what is behind never gets more than 10 in any half-open second, whatever arrives', () => {
    let most = 0
    for (const seed of seeds(300)) {
      const capacity = 1 + Math.floor(chance(seed)() * 30)
      const out = departures(leakyQueue({ limit: 10, window: '1s', capacity }), randomArrivals(seed))
      most = Math.max(most, mostWithin(out, 1_000))
      expect(most, `seed ${seed}`).toBeLessThanOrEqual(10)
    }
    expect(most).toBe(10)
  })
})

describe('the meter', () => {
  test('acceptance 54: admits at once when level + 1 ≤ capacity; level + tokens = capacity at all times', () => {
    for (const seed of seeds(500)) {
      const next = chance(seed + 20_000)
      const [capacity, perSecond] = [1 + Math.floor(next() * 15), 1 + Math.floor(next() * 20)]
      const options = { limit: perSecond, window: '1s', burst: capacity } as const
      const times = randomArrivals(seed)
      const levels = levelsAsWritten(capacity, perSecond, times)
      const meter = run(leakyMeter(options), times)
      const bucket = run(tokenBucket(options), times)
      expect(meter.map(({ allowed }) => allowed)).toEqual(levels.map(({ fits }) => fits))
      expect(bucket.map(({ allowed }) => allowed)).toEqual(levels.map(({ fits }) => fits))
      const tokens = levels.map(({ thousandths }) => Math.floor((capacity * 1_000 - thousandths) / 1_000))
      expect(bucket.map(({ remaining }) => remaining)).toEqual(tokens)
      expect(meter.every(({ delayMs }) => delayMs === 0)).toBe(true)
    }
  })
})

test('acceptance 55: the shaper delays and, with room, drops nothing; the policer drops and delays nothing', () => {
  const shaper = run(leakyQueue({ limit: 10, window: '1s', capacity: 20 }), twentyIn200ms)
  expect(shaper.filter(({ allowed }) => !allowed).length).toBe(0)
  expect(shaper.every(({ delayMs }) => delayMs > 0)).toBe(true)
  const policer = run(leakyMeter({ limit: 10, window: '1s', burst: 10 }), twentyIn200ms)
  expect(policer.filter(({ allowed }) => !allowed).length).toBe(9)
  expect(policer.every(({ delayMs }) => delayMs === 0)).toBe(true)
  expect(admitted(leakyMeter({ limit: 10, window: '1s', burst: 10 }), twentyIn200ms).length).toBe(11)
})

/** The meter as written: the level leaks evenly, a request pours 1 in when that fits; in thousandths of a request. */
function levelsAsWritten(capacity: number, perSecond: number, times: readonly number[]) {
  let level = 0
  let last = times[0] ?? 0
  return times.map((now) => {
    level = Math.max(0, level - (now - last) * perSecond)
    last = now
    const fits = level + 1_000 <= capacity * 1_000
    if (fits) level += 1_000
    return { fits, thousandths: level }
  })
}
