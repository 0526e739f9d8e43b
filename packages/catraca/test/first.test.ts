import { createLimiter, tokenBucket } from 'catraca'
import { expect, test } from 'vitest'

test('seven per second gives seven', () => {
  const limiter = createLimiter(tokenBucket({ limit: 7, window: '1s' }))
  const passed = Array.from({ length: 10 }, () => limiter.take('a', { now: 1_796_000_000_123 })).filter(
    (d) => d.allowed,
  )
  expect(passed.length).toBe(7)
})
