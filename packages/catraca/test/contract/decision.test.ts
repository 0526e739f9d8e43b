import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expect, test } from 'vitest'

const minute = { limit: 4, window: '1m' } as const
/** Every rule with 4 units at most; `full` is the time after one admitted unit until nothing of it is used any more. */
const rules: Record<string, { rule: Rule; reason: string; fullMs: number }> = {
  fixedWindow: { rule: fixedWindow(minute), reason: 'limited', fullMs: 60_000 },
  'fixedWindow first': { rule: fixedWindow({ ...minute, anchor: 'first' }), reason: 'limited', fullMs: 60_000 },
  slidingLog: { rule: slidingLog(minute), reason: 'limited', fullMs: 60_000 },
  slidingCounter: { rule: slidingCounter(minute), reason: 'limited', fullMs: 120_000 },
  tokenBucket: { rule: tokenBucket(minute), reason: 'limited', fullMs: 15_000 },
  gcra: { rule: gcra(minute), reason: 'limited', fullMs: 15_000 },
  leakyMeter: { rule: leakyMeter(minute), reason: 'limited', fullMs: 15_000 },
  leakyQueue: { rule: leakyQueue({ ...minute, capacity: 4 }), reason: 'limited', fullMs: 15_000 },
  quota: { rule: quota({ limit: 4, period: 'day' }), reason: 'quota', fullMs: 86_400_000 },
  concurrency: { rule: concurrency({ limit: 4, permitTtl: '1m' }), reason: 'concurrency', fullMs: 60_000 },
}

describe.each(Object.entries(rules))('%s', (name, { rule, reason, fullMs }) => {
  test('an admitted decision tells what was charged and what is left', () => {
    const limiter = createLimiter(rule, { name: 'api' })
    const decision = limiter.take('k', { now: 0 })
    expect(decision).toMatchObject({ allowed: true, reason: 'ok', policy: 'api', limit: 4, remaining: 3, charged: 1 })
    expect(decision).toMatchObject({ retryAfterMs: 0, resetAfterMs: fullMs, degraded: false })
    expect(decision.delayMs).toBe(name === 'leakyQueue' ? 15_000 : 0)
    expect(decision.receipt).not.toBe('')
  })

  test('a refused decision charges nothing and says why and for how long', () => {
    const limiter = createLimiter(rule)
    limiter.take('k', { now: 0, cost: 4 })
    const decision = limiter.take('k', { now: 0 })
    expect(decision).toMatchObject({ allowed: false, reason, remaining: 0, charged: 0, receipt: '', delayMs: 0 })
    expect(decision.retryAfterMs).toBeGreaterThan(0)
    expect(decision.retryAfterMs).toBeLessThanOrEqual(decision.resetAfterMs)
  })

  test('retryAfterMs is exact to the microsecond: refused before it, admitted at it', () => {
    const limiter = createLimiter(rule)
    const now = 17_000.002
    for (const earlier of [0, 10, 17_000.001]) limiter.take('k', { now: earlier })
    while (limiter.take('k', { now }).allowed);
    const at = now + limiter.take('k', { now }).retryAfterMs
    expect(limiter.take('k', { now: at - 0.001 }).allowed).toBe(false)
    expect(limiter.take('k', { now: at }).allowed).toBe(true)
  })

  test('resetAfterMs is the time until nothing is used: then and not before the key is as new', () => {
    const limiter = createLimiter(rule)
    const { resetAfterMs } = limiter.take('k', { now: 0, cost: 3 })
    expect(limiter.peek('k', { now: resetAfterMs - 0.001 }).resetAfterMs).toBe(0.001)
    expect(limiter.peek('k', { now: resetAfterMs })).toMatchObject({ remaining: 4, resetAfterMs: 0 })
  })

  test('remaining is what would pass now: that cost passes, one more does not', () => {
    const limiter = createLimiter(rule)
    for (const now of [0, 5_000, 25_000, 45_000, 65_000, 70_000]) {
      limiter.take('k', { now })
      const { remaining } = limiter.peek('k', { now })
      if (remaining > 0) expect(limiter.peek('k', { now, cost: remaining }).allowed).toBe(true)
      expect(limiter.peek('k', { now, cost: remaining + 1 }).allowed).toBe(false)
    }
  })

  test('toJSON lists every field, for this rule with every kind of answer', () => {
    const limiter = createLimiter(rule, { name: 'api' })
    const admitted = limiter.take('k', { now: 0 })
    const one = {
      policy: 'api',
      allowed: true,
      limit: 4,
      remaining: 3,
      retryAfterMs: 0,
      resetAfterMs: fullMs,
      mode: 'enforce',
      wouldDeny: false,
    }
    expect(JSON.parse(JSON.stringify(admitted))).toEqual({
      allowed: true,
      policy: 'api',
      limit: 4,
      remaining: 3,
      retryAfterMs: 0,
      resetAfterMs: fullMs,
      delayMs: admitted.delayMs,
      charged: 1,
      receipt: admitted.receipt,
      reason: 'ok',
      degraded: false,
      policies: [one],
    })
    const refused = limiter.take('k', { now: 0, cost: 4 })
    const impossible = limiter.take('k', { now: 0, cost: 5 })
    expect(Object.keys(refused.toJSON())).toEqual(Object.keys(admitted.toJSON()))
    expect(refused.toJSON()).toMatchObject({ reason, retryAfterMs: refused.retryAfterMs, charged: 0, receipt: '' })
    expect(impossible.toJSON()).toMatchObject({ reason: 'impossible', retryAfterMs: null, remaining: 3 })
  })
})

const uneven = { limit: 7, window: '1s' } as const
test.each([
  tokenBucket(uneven),
  gcra(uneven),
  leakyMeter(uneven),
  leakyQueue({ ...uneven, capacity: 7 }),
  slidingCounter(uneven),
])('retryAfterMs is exact where nothing divides: $algorithm of 7 per second', (rule) => {
  const limiter = createLimiter(rule)
  let now = 1_796_000_000_123.457
  for (let round = 0; round < 200; round++) {
    while (limiter.take('k', { now }).allowed);
    const { retryAfterMs } = limiter.take('k', { now })
    expect(limiter.peek('k', { now: now + retryAfterMs - 0.001 }).allowed).toBe(false)
    now = Math.round((now + retryAfterMs) * 1_000) / 1_000
    expect(limiter.take('k', { now }).allowed).toBe(true)
  }
})

test.each([tokenBucket(uneven), gcra(uneven), leakyMeter(uneven), leakyQueue({ ...uneven, capacity: 7 })])(
  'a fraction of a unit is not enough: $algorithm of 7 per second passes the k-th at k ÷ 7 s, rounded up',
  (rule) => {
    const limiter = createLimiter(rule)
    limiter.take('k', { now: 0, cost: 7 })
    for (let k = 1; k <= 200; k++) {
      const atUs = Math.ceil((k * 1_000_000) / 7)
      expect(limiter.take('k', { now: (atUs - 1) / 1_000 })).toMatchObject({ allowed: false, retryAfterMs: 0.001 })
      expect(limiter.take('k', { now: atUs / 1_000 }).allowed).toBe(true)
    }
  },
)

test('receipts are unique in the process and stay the same however often they are read', () => {
  const [first, second] = [createLimiter(tokenBucket(minute)), createLimiter(tokenBucket(minute))]
  const decisions = [first, second, first, second].map((limiter) => limiter.take('k'))
  const receipts = decisions.map(({ receipt }) => receipt)
  expect(new Set(receipts).size).toBe(4)
  expect(decisions.map(({ receipt }) => receipt)).toEqual(receipts)
})

test('a decision keeps its figures when the key is used further', () => {
  const limiter = createLimiter(tokenBucket(minute))
  const decision = limiter.take('k', { now: 0 })
  const before = JSON.stringify(decision)
  for (const now of [0, 1_000, 2_000]) limiter.take('k', { now })
  limiter.reset('k')
  expect(JSON.stringify(decision)).toBe(before)
})

describe('of a stack', () => {
  const stack = () =>
    createLimiter({
      second: tokenBucket({ limit: 2, window: '1s' }),
      minute: fixedWindow({ limit: 10, window: '1m' }),
      day: quota({ limit: 100, period: 'day' }),
    })
  const keys = { second: 'k', minute: 'k', day: 'k' }

  test('admitted, it shows the policy with the least share left', () => {
    const limiter = stack()
    expect(limiter.take(keys, { now: 0 })).toMatchObject({ policy: 'second', limit: 2, remaining: 1 })
    for (const now of [1_000, 2_000, 3_000, 4_000, 5_000]) limiter.take(keys, { now })
    expect(limiter.take(keys, { now: 6_000 })).toMatchObject({ policy: 'minute', limit: 10, remaining: 3 })
  })

  test('refused, it shows the policy with the longest wait, and all in the order they were given', () => {
    const limiter = stack()
    limiter.take(keys, { now: 0, cost: 2 })
    expect(limiter.take(keys, { now: 0 })).toMatchObject({ policy: 'second', retryAfterMs: 500 })
    for (const now of [1_000, 2_000, 3_000, 4_000]) limiter.take(keys, { now, cost: 2 })
    const both = limiter.take(keys, { now: 4_000 })
    expect(both).toMatchObject({ allowed: false, policy: 'minute', retryAfterMs: 56_000, limit: 10, remaining: 0 })
    expect(both.policies).toEqual([
      expect.objectContaining({
        policy: 'second',
        allowed: false,
        wouldDeny: true,
        retryAfterMs: 500,
        mode: 'enforce',
      }),
      expect.objectContaining({ policy: 'minute', allowed: false, wouldDeny: true, retryAfterMs: 56_000 }),
      expect.objectContaining({ policy: 'day', allowed: true, wouldDeny: false, retryAfterMs: 0, remaining: 90 }),
    ])
  })

  test('an impossible cost waits longest of all', () => {
    const limiter = stack()
    for (const now of [0, 1_000, 2_000, 3_000, 4_000]) limiter.take(keys, { now, cost: 2 })
    expect(limiter.take(keys, { now: 4_000, cost: 3 })).toMatchObject({
      policy: 'second',
      reason: 'impossible',
      retryAfterMs: Infinity,
    })
  })
})
