import { createLimiter, slidingLog } from 'catraca'
import { expect, test } from 'vitest'
import { every, randomArrivals, seeds } from './inputs.ts'
import { admitted, mostWithin } from './run.ts'

test('acceptance 12: the window is (t − W, t]: an entry of age exactly W is gone', () => {
  const rule = slidingLog({ limit: 1, window: '1s' })
  expect(admitted(rule, [0, 1_000])).toEqual([0, 1_000])
  expect(admitted(rule, [0, 999])).toEqual([0])
  expect(admitted(rule, [0, 999.999])).toEqual([0])
  const limiter = createLimiter(rule)
  limiter.take('key', { now: 0 })
  expect(limiter.take('key', { now: 999 }).retryAfterMs).toBe(1)
})

test('acceptance 13: never more than the limit in any half-open window, over 300 random lists', () => {
  let most = 0
  for (const seed of seeds(300)) {
    const times = admitted(slidingLog({ limit: 10, window: '1s' }), randomArrivals(seed))
    most = Math.max(most, mostWithin(times, 1_000))
    expect(most, `seed ${seed}`).toBeLessThanOrEqual(10)
  }
  expect(most).toBe(10)
})

test('acceptance 14: only admitted requests are noted: 100 of 20 per second in 10 s; if all were, 10', () => {
  const times = every(50, 0, 10_000)
  expect(admitted(slidingLog({ limit: 10, window: '1s' }), times).length).toBe(100)
  const notingAll = times.filter(
    (now, index) => times.slice(0, index).filter((earlier) => earlier > now - 1_000).length < 10,
  )
  expect(notingAll.length).toBe(10)
})
