import { createLimiter, fixedWindow } from 'catraca'
import { createGuard } from 'catraca/http'
import { fakeClock, seededRandom } from 'catraca/testing'
import { expect, test } from 'vitest'

test('a limit lives by it', () => {
  const clock = fakeClock()
  expect(new Date(clock.now).toISOString()).toBe('2026-01-01T00:00:00.000Z')
  const limiter = createLimiter(fixedWindow({ limit: 2, window: '1m' }))
  expect([limiter.take('a', clock).allowed, limiter.take('a', { ...clock, cost: 2 }).allowed]).toEqual([true, false])
  expect(clock.advance(59_999)).toBe(Date.UTC(2026, 0, 1, 0, 0, 59, 999))
  expect(limiter.peek('a', clock).remaining).toBe(1)
  clock.advance('1ms')
  expect(limiter.take('a', { ...clock, cost: 2 }).allowed).toBe(true)
})

test('a guard lives by it', () => {
  const clock = fakeClock(0)
  const guard = createGuard({
    policies: {
      version: 1,
      policies: { one: { per: 'address', rule: { algorithm: 'fixed-window', limit: 1, window: '1s' } } },
    },
  })
  const request = { method: 'GET', target: '/', peer: '192.0.2.1', raw: undefined, header: () => undefined }
  const asks = () => (guard.ask({ ...request, ...clock }) as { allowed: boolean }).allowed
  expect([asks(), asks(), clock.advance('1s'), asks()]).toEqual([true, false, 1_000, true])
})

test.each([-1, Number.NaN, Infinity, 'x' as never])('%s is no time to begin at', (now) => {
  expect(() => fakeClock(now)).toThrow(expect.objectContaining({ code: 'CATRACA_NOW_INVALID' }))
})

test('chance comes back with its seed', () => {
  const draw = (seed: number) => Array.from({ length: 3 }, seededRandom(seed))
  expect(draw(7)).toEqual(draw(7))
  expect(draw(7)).not.toEqual(draw(8))
  for (const value of draw(7)) expect(value >= 0 && value < 1).toBe(true)
})
