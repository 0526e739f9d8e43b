import { concurrency, createLimiter, type Decision, fixedWindow, quota, slidingLog, tokenBucket } from 'catraca'
import { describe, expect, test } from 'vitest'
import { atOnce, every } from './inputs.ts'
import { admitted } from './run.ts'
import { flow, inFlightAt } from './service.ts'

describe('quota', () => {
  test('acceptance 202: 500 000 per day at a constant 10 per second is gone after 50 000 s', () => {
    const limiter = createLimiter(quota({ limit: 500_000, period: 'day' }))
    let passed = 0
    while (limiter.take('key', { now: passed * 100 }).allowed) passed++
    expect(passed).toBe(500_000)
    expect(passed * 100).toBe(50_000_000)
    const refused = limiter.take('key', { now: 50_000_000 })
    expect(refused).toMatchObject({ allowed: false, reason: 'quota', retryAfterMs: 86_400_000 - 50_000_000 })
    expect((50_000 / 3_600).toFixed(1)).toBe('13.9')
  })

  test('acceptance 203: rate, quota and concurrency must all pass; the refusal names the one that is exhausted', () => {
    const stack = (rate: number, daily: number, permits: number) =>
      createLimiter({
        rate: tokenBucket({ limit: rate, window: '1s' }),
        daily: quota({ limit: daily, period: 'day' }),
        inFlight: concurrency({ limit: permits }),
      })
    const keys = { rate: 'k', daily: 'k', inFlight: 'k' }
    const cases = [
      { limiter: stack(1, 5, 5), policy: 'rate', reason: 'limited' },
      { limiter: stack(5, 1, 5), policy: 'daily', reason: 'quota' },
      { limiter: stack(5, 5, 1), policy: 'inFlight', reason: 'concurrency' },
    ]
    for (const { limiter, policy, reason } of cases) {
      expect(limiter.take(keys, { now: 0 }).allowed).toBe(true)
      const refused = limiter.take(keys, { now: 0 })
      expect(refused).toMatchObject({ allowed: false, policy, reason })
      expect(refused.policies.filter(({ allowed }) => !allowed).map((one) => one.policy)).toEqual([policy])
    }
  })

  test('acceptance 210: of 1000 per hour the 1001st in the hour is refused, for at most 3600 s', () => {
    for (const rule of [fixedWindow({ limit: 1_000, window: '1h' }), slidingLog({ limit: 1_000, window: '1h' })]) {
      const limiter = createLimiter(rule)
      const times = every(3_000, 0, 3_000_000)
      for (const now of times) expect(limiter.take('key', { now }).allowed).toBe(true)
      const refused = limiter.take('key', { now: 3_000_000 })
      expect(refused.allowed).toBe(false)
      expect(refused.retryAfterMs).toBeLessThanOrEqual(3_600_000)
    }
    expect(admitted(tokenBucket({ limit: 1_000, window: '1h' }), atOnce(1_001, 0)).length).toBe(1_000)
  })
})

describe('what is under way at once', () => {
  test('acceptance 206: 120 per second × 0.5 s are 60 in flight, twice as slow 120; the rate is the same', () => {
    const fast = flow({ limit: 1_000, perSecond: 120, serviceUs: 500_000, seconds: 10 })
    const slow = flow({ limit: 1_000, perSecond: 120, serviceUs: 1_000_000, seconds: 10 })
    for (let second = 2; second <= 9; second++) {
      expect(Math.abs(inFlightAt(fast, second) - 60)).toBeLessThanOrEqual(1)
      expect(Math.abs(inFlightAt(slow, second) - 120)).toBeLessThanOrEqual(1)
    }
    expect(fast.map(({ admittedUs }) => admittedUs)).toEqual(slow.map(({ admittedUs }) => admittedUs))
    expect(fast.length).toBe(1_200)
  })

  test.each([
    { serviceUs: 250_000, passed: 120 },
    { serviceUs: 500_000, passed: 60 },
  ])('acceptance 207: 30 permits with service of $serviceUs µs pass $passed per second', ({ serviceUs, passed }) => {
    const calls = flow({ limit: 30, perSecond: 1_000, serviceUs, seconds: 10 })
    for (let second = 1; second < 10; second++) {
      const starts = calls.filter(({ admittedUs }) => Math.floor(admittedUs / 1e6) === second).length
      expect(Math.abs(starts - passed)).toBeLessThanOrEqual(1)
    }
    expect(Math.max(...calls.map(({ inFlight }) => inFlight))).toBe(30)
  })

  test('acceptance 208: a rate limit of 120 per second before a service for 60 piles up 60 more per second', () => {
    const calls = flow({ limit: 10_000, perSecond: 120, serviceUs: 500_000, seconds: 10, servers: 30 })
    for (let second = 2; second <= 9; second++) {
      const growth = inFlightAt(calls, second) - inFlightAt(calls, second - 1)
      expect(Math.abs(growth - 60)).toBeLessThanOrEqual(1)
    }
  })
})

describe('permits come back', () => {
  const one = () => createLimiter(concurrency({ limit: 1, permitTtl: '30s' }))
  const free = (limiter: ReturnType<typeof one>) => limiter.peek('key').remaining

  test('acceptance 209: on finish, by release() and by using', () => {
    const limiter = one()
    const decision = limiter.take('key')
    expect(free(limiter)).toBe(0)
    decision.release()
    expect(free(limiter)).toBe(1)
    {
      using held = limiter.take('key')
      expect([held.allowed, free(limiter)]).toEqual([true, 0])
    }
    expect(free(limiter)).toBe(1)
  })

  test('acceptance 209: on error, by using and by try/finally, also across await', async () => {
    const limiter = one()
    const failing = () => {
      using _held = limiter.take('key')
      throw new Error('handler failed')
    }
    expect(failing).toThrow('handler failed')
    expect(free(limiter)).toBe(1)
    const later = async (): Promise<void> => {
      await using _held = limiter.take('key')
      await Promise.resolve()
      throw new Error('handler failed later')
    }
    await expect(later()).rejects.toThrow('handler failed later')
    expect(free(limiter)).toBe(1)
    const plain = (decision: Decision) => {
      try {
        throw new Error('failed')
      } finally {
        decision.release()
      }
    }
    expect(() => plain(limiter.take('key'))).toThrow('failed')
    expect(free(limiter)).toBe(1)
  })

  test('acceptance 209: on abort, at once', () => {
    const limiter = one()
    const client = new AbortController()
    const decision = limiter.take('key')
    client.signal.addEventListener('abort', () => decision.release(), { once: true })
    expect(free(limiter)).toBe(0)
    client.abort()
    expect(free(limiter)).toBe(1)
  })

  test('acceptance 209: after a crash, when permitTtl has passed and not before', () => {
    const limiter = one()
    expect(limiter.take('key', { now: 0 }).allowed).toBe(true)
    expect(limiter.take('key', { now: 29_999.999 })).toMatchObject({ allowed: false, retryAfterMs: 0.001 })
    expect(limiter.take('key', { now: 30_000 }).allowed).toBe(true)
  })
})
