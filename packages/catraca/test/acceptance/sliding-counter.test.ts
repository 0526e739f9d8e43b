import { createLimiter, slidingCounter, slidingLog } from 'catraca'
import { expect, test } from 'vitest'
import { atOnce, every } from './inputs.ts'
import { admitted, countIn, mostWithin, run } from './run.ts'

const microsecond = 0.001
const hundredPerMinute = slidingCounter({ limit: 100, window: '60s' })
const log = slidingLog({ limit: 100, window: '60s' })

test('acceptance 17: previous 80, current 30, 15 s elapsed: weight 0.75, estimate exactly 90, admitted', () => {
  const limiter = createLimiter(hundredPerMinute)
  for (const now of [...atOnce(80, 30_000), ...atOnce(30, 75_000)]) {
    expect(limiter.take('key', { now }).allowed).toBe(true)
  }
  expect(limiter.peek('key', { now: 75_000 }).remaining).toBe(10)
  // Cost c passes when 90 + c − 1 < 100: 11 is refused while the estimate is 90, and passes as soon as it is less.
  expect(limiter.peek('key', { now: 75_000, cost: 11 }).retryAfterMs).toBe(microsecond)
  expect(limiter.peek('key', { now: 75_000 + microsecond, cost: 11 }).allowed).toBe(true)
  expect(limiter.peek('key', { now: 75_000, cost: 10 }).allowed).toBe(true)
  expect(limiter.take('key', { now: 75_000 }).allowed).toBe(true)
})

test('acceptance 18: of 100 more at 60.2 s after 100 at 59.6 s exactly 1 is admitted, 101 within 0.6 s', () => {
  const times = [...atOnce(100, 59_600), ...atOnce(100, 60_200)]
  const decisions = run(hundredPerMinute, times)
  expect(decisions.slice(0, 100).every(({ allowed }) => allowed)).toBe(true)
  expect(decisions.slice(100).map(({ allowed }) => allowed)).toEqual([true, ...Array(99).fill(false)])
  // 100 × share + 1 < 100 from share < 0.99 on, that is after 60.6 s.
  expect(decisions[101]?.retryAfterMs).toBe(400 + microsecond)
})

test('acceptance 18: at 60.2 s the remaining share is 0.99667 and the demand would count 199.67', () => {
  const limiter = createLimiter(slidingCounter({ limit: 1_000_000, window: '60s' }))
  limiter.take('key', { now: 59_600, cost: 1_000_000 })
  const { limit, remaining } = limiter.peek('key', { now: 60_200 })
  const share = (limit - remaining) / limit
  expect(share).toBeCloseTo(0.99667, 5)
  expect(Math.abs(share - 0.997)).toBeLessThanOrEqual(0.0005)
  expect(Math.abs(100 + 100 * share - 199.67)).toBeLessThanOrEqual(0.05)
})

test('acceptance 19: 100 at 59 s and 100 at 61 s: 2 of the second hundred, 102 in all', () => {
  const times = admitted(hundredPerMinute, [...atOnce(100, 59_000), ...atOnce(100, 61_000)])
  expect(countIn(times, 61_000, 61_001)).toBe(2)
  expect(times.length).toBe(102)
})

test('acceptance 20: a spent limit comes back one place per 0.6 s from 60.01 s; in the log at 60.00 to 60.99 s', () => {
  const arrivals = [...atOnce(100, 0), ...every(10, 60_000, 120_000)]
  const later = admitted(hundredPerMinute, arrivals).slice(100)
  expect(later).toEqual(Array.from({ length: 100 }, (_, place) => 60_010 + 600 * place))
  const logged = admitted(log, arrivals).slice(100)
  expect(logged).toEqual(every(10, 60_000, 61_000))
})

test('acceptance 21: after 100 at 59.999 s the worst case is 200 in one half-open window; the log has 100', () => {
  const arrivals = [...atOnce(100, 59_999), ...every(100, 60_000, 119_999)]
  expect(mostWithin(admitted(hundredPerMinute, arrivals), 60_000)).toBe(200)
  expect(admitted(hundredPerMinute, arrivals).length).toBe(200)
  expect(mostWithin(admitted(log, arrivals), 60_000)).toBe(100)
})

test('acceptance 22: after 100 at 0 s it over-estimates: 2 in [60, 61) s, the log 10', () => {
  const arrivals = [...atOnce(100, 0), ...every(100, 60_000, 61_000)]
  expect(countIn(admitted(hundredPerMinute, arrivals), 60_000, 61_000)).toBe(2)
  expect(countIn(admitted(log, arrivals), 60_000, 61_000)).toBe(10)
})

test('acceptance 23: after a full window at most floor(100 × e) + 1 pass in the first share e of the next', () => {
  const arrivals = [...atOnce(100, 59_600), ...every(1, 60_000, 120_000)]
  const later = admitted(hundredPerMinute, arrivals).slice(100)
  let tight = 0
  for (let thousandth = 1; thousandth <= 999; thousandth++) {
    const passed = countIn(later, 60_000, 60_000 + 60 * thousandth)
    const bound = Math.floor(thousandth / 10) + 1
    expect(passed, `share ${thousandth / 1_000}`).toBeLessThanOrEqual(bound)
    if (passed === bound) tight++
  }
  // Reached at every share that is not a whole number of places.
  expect(tight).toBe(900)
})
