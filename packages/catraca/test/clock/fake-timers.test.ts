import {
  concurrency,
  createLimiter,
  fixedWindow,
  leakyQueue,
  quota,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

const start = Date.parse('2027-03-01T12:00:00.250Z')
const rules = {
  fixedWindow: fixedWindow({ limit: 2, window: '1s', anchor: 'first' }),
  slidingLog: slidingLog({ limit: 2, window: '1s' }),
  slidingCounter: slidingCounter({ limit: 2, window: '1s' }),
  tokenBucket: tokenBucket({ limit: 2, window: '1s' }),
  leakyQueue: leakyQueue({ limit: 2, window: '1s', capacity: 2 }),
  concurrency: concurrency({ limit: 2, permitTtl: '1s' }),
  quota: quota({ limit: 2, period: 'day' }),
}

describe('under the fake timers of vitest a limiter without a given time follows them', () => {
  beforeEach(() => {
    vi.useFakeTimers()
    vi.setSystemTime(start)
  })
  afterEach(() => vi.useRealTimers())

  test.each(Object.entries(rules))('%s: refused before retryAfterMs, admitted at it', (_, rule) => {
    const limiter = createLimiter(rule)
    limiter.take('k', { cost: 2 })
    const { allowed, retryAfterMs } = limiter.take('k')
    expect(allowed).toBe(false)
    const wait = Math.ceil(retryAfterMs)
    vi.advanceTimersByTime(wait - 1)
    expect(limiter.take('k').allowed).toBe(false)
    vi.advanceTimersByTime(1)
    expect(limiter.take('k').allowed).toBe(true)
  })

  test('setSystemTime alone is enough', () => {
    const limiter = createLimiter(rules.fixedWindow)
    limiter.take('k', { cost: 2 })
    expect(limiter.take('k').retryAfterMs).toBe(1_000)
    vi.setSystemTime(start + 600)
    expect(limiter.take('k').retryAfterMs).toBe(400)
    vi.setSystemTime(start + 1_000)
    expect(limiter.take('k').allowed).toBe(true)
  })

  test('blocks end by it', () => {
    const limiter = createLimiter(rules.tokenBucket)
    limiter.block('k', '1m')
    vi.advanceTimersByTime(59_999)
    expect(limiter.take('k')).toMatchObject({ reason: 'blocked', retryAfterMs: 1 })
    vi.advanceTimersByTime(1)
    expect(limiter.take('k').allowed).toBe(true)
  })

  test('many decisions in one turn all see each change of it', () => {
    const limiter = createLimiter(fixedWindow({ limit: 1_000, window: '1h', anchor: 'first' }))
    limiter.take('k')
    for (let ms = 1; ms <= 200; ms++) {
      vi.advanceTimersByTime(1)
      expect(limiter.take('k').resetAfterMs).toBe(3_600_000 - ms)
    }
  })

  test('a limiter made under real time follows fake time installed later, and real time again', () => {
    vi.useRealTimers()
    const limiter = createLimiter(quota({ limit: 1, period: 'year' }))
    expect(limiter.take('k').allowed).toBe(true)
    vi.useFakeTimers()
    vi.setSystemTime(Date.now() + 400 * 86_400_000)
    expect(limiter.take('k').allowed).toBe(true)
    vi.useRealTimers()
    expect(Math.abs(limiter.take('new').resetAfterMs - nextYear(Date.now()))).toBeLessThan(60_000)
  })
})

function nextYear(now: number): number {
  return Date.UTC(new Date(now).getUTCFullYear() + 1, 0, 1) - now
}
