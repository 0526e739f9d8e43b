import { fixedWindow, gcra, leakyMeter, leakyQueue, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { describe, expect, test } from 'vitest'
import { atOnce, every, fiftyPerSecond, patternA, patternB, twentyIn200ms } from './inputs.ts'
import { admitted, departures, mostWithin, mostWithinClosed, tally } from './run.ts'

const perSecond = { limit: 10, window: '1s' } as const
const rules = {
  fixed: fixedWindow(perSecond),
  first: fixedWindow({ ...perSecond, anchor: 'first' }),
  log: slidingLog(perSecond),
  counter: slidingCounter(perSecond),
  bucket: tokenBucket({ ...perSecond, burst: 10 }),
  gcra: gcra({ ...perSecond, burst: 10 }),
  meter: leakyMeter({ ...perSecond, burst: 10 }),
  queue: leakyQueue({ ...perSecond, capacity: 10 }),
}
const mostInASecond = (rule: Rule, times: readonly number[]): number => mostWithin(admitted(rule, times), 1_000)

test('acceptance 37: of 20 within 200 ms windows, log and counter admit 10, bucket, meter and queue 11', () => {
  const counts = Object.entries(rules).map(([name, rule]) => [name, admitted(rule, twentyIn200ms).length])
  expect(Object.fromEntries(counts)).toEqual({
    fixed: 10,
    first: 10,
    log: 10,
    counter: 10,
    bucket: 11,
    gcra: 11,
    meter: 11,
    queue: 11,
  })
})

test('acceptance 38: after idleness the bucket lets 10 out at once, the queue one per second', () => {
  const arrivals = atOnce(10, 3_600_000)
  const options = { limit: 1, window: '1s' } as const
  expect(admitted(tokenBucket({ ...options, burst: 10 }), arrivals)).toEqual(arrivals)
  const out = departures(leakyQueue({ ...options, capacity: 10 }), arrivals)
  expect(out.map((time) => time - 3_600_000)).toEqual(every(1_000, 1_000, 11_000))
})

test('acceptance 41: all keep the same long-run average: 1000 of 50 per second in 100 s, the bucket 1009', () => {
  for (const rule of [rules.fixed, rules.log, rules.counter]) expect(admitted(rule, fiftyPerSecond).length).toBe(1_000)
  expect(admitted(rules.bucket, fiftyPerSecond).length).toBe(1_009)
  const out = departures(rules.queue, fiftyPerSecond)
  expect(out.filter((time) => time <= 100_000).length).toBe(1_000)
  expect(mostWithin(out, 100_000)).toBe(1_000)
  for (const rule of Object.values(rules)) {
    expect(Math.abs(admitted(rule, fiftyPerSecond).length - 1_000)).toBeLessThanOrEqual(10)
  }
})

describe.each([
  { pattern: 'A', times: patternA },
  { pattern: 'B', times: patternB },
])('the 80-request burst, pattern $pattern', ({ times }) => {
  test('acceptance 57: most admitted in any second: fixed 20, log 10, counter 11, bucket 19, queue out 10', () => {
    expect(times.length).toBe(80)
    expect(mostInASecond(rules.fixed, times)).toBe(20)
    expect(mostInASecond(rules.log, times)).toBe(10)
    expect(mostInASecond(rules.counter, times)).toBe(11)
    expect(mostInASecond(rules.bucket, times)).toBe(19)
    expect(mostWithin(departures(rules.queue, times), 1_000)).toBe(10)
  })
})

describe('pattern A in detail', () => {
  test('acceptance 58: who is admitted', () => {
    const counter = { 200: 8, 300: 2, 1100: 1 }
    expect(tally(admitted(rules.fixed, patternA))).toEqual({ 200: 8, 300: 2, 1000: 8, 1100: 2 })
    expect(tally(admitted(rules.log, patternA))).toEqual({ 200: 8, 300: 2 })
    expect(tally(admitted(rules.counter, patternA))).toEqual(counter)
    const bucket = { 200: 8, 300: 3, ...Object.fromEntries(every(100, 400, 1_200).map((time) => [time, 1])) }
    expect(tally(admitted(rules.bucket, patternA))).toEqual(bucket)
    const out = departures(rules.queue, patternA)
    expect(admitted(rules.queue, patternA).length).toBe(19)
    expect(patternA.length - out.length).toBe(61)
    expect(out).toEqual(every(100, 300, 2_101).slice(0, 19))
    expect(out.at(-1)).toBe(2_100)
  })

  test('acceptance 59: meter and GCRA 19 at the same instants as the bucket, the first-request window 10', () => {
    const bucket = admitted(rules.bucket, patternA)
    expect(bucket.length).toBe(19)
    expect(admitted(rules.meter, patternA)).toEqual(bucket)
    expect(admitted(rules.gcra, patternA)).toEqual(bucket)
    expect(admitted(rules.first, patternA).length).toBe(10)
  })

  test('acceptance 60: read in closed seconds the queue would show 11, half-open it shows 10', () => {
    const out = departures(rules.queue, patternA)
    expect(mostWithinClosed(out, 1_000)).toBe(11)
    expect(mostWithin(out, 1_000)).toBe(10)
  })
})

test('acceptance 61: pattern B pins the comparison: estimate < limit gives 11, estimate + 1 ≤ limit 10', () => {
  const other = (times: readonly number[]): number[] => {
    const counts = new Map<number, number>()
    return times.filter((now) => {
      const [window, elapsed] = [Math.floor(now / 1_000), now % 1_000]
      const estimate = (counts.get(window - 1) ?? 0) * (1_000 - elapsed) + (counts.get(window) ?? 0) * 1_000
      if (estimate + 1_000 > 10_000) return false
      counts.set(window, (counts.get(window) ?? 0) + 1)
      return true
    })
  }
  expect(mostInASecond(rules.counter, patternB)).toBe(11)
  expect(mostWithin(other(patternB), 1_000)).toBe(10)
  expect(mostInASecond(rules.counter, patternA)).toBe(11)
  expect(mostWithin(other(patternA), 1_000)).toBe(11)
})
