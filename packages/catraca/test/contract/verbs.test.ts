import {
  concurrency,
  createLimiter,
  fixedWindow,
  leakyQueue,
  memoryStore,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expect, test } from 'vitest'

const ten = { limit: 10, window: '10s' } as const
const rules: Record<string, Rule> = {
  fixedWindow: fixedWindow(ten),
  'fixedWindow first': fixedWindow({ ...ten, anchor: 'first' }),
  slidingLog: slidingLog(ten),
  slidingCounter: slidingCounter(ten),
  tokenBucket: tokenBucket(ten),
  leakyQueue: leakyQueue({ ...ten, capacity: 10 }),
  quota: quota({ limit: 10, period: 'day' }),
}
const charging = Object.entries(rules)
const left = (limiter: ReturnType<typeof createLimiter<Rule>>, now: number) => limiter.peek('k', { now }).remaining

describe('asking', () => {
  test('tryTake answers at once with a memory store and charges as take does', () => {
    const limiter = createLimiter(tokenBucket(ten))
    expect(limiter.tryTake('k', { now: 0, cost: 4 })).toMatchObject({ allowed: true, charged: 4, remaining: 6 })
    expect(limiter.take('k', { now: 0 }).remaining).toBe(5)
  })

  test.each(charging)('%s: peek says what take would say and changes nothing', (_, rule) => {
    const limiter = createLimiter(rule)
    limiter.take('k', { now: 0, cost: 8 })
    for (const cost of [1, 2, 3, 11]) {
      const peeked = limiter.peek('k', { now: 0, cost })
      expect(peeked).toMatchObject({ charged: 0, receipt: '', remaining: 2 })
      const other = createLimiter(rule)
      other.take('k', { now: 0, cost: 8 })
      const taken = other.take('k', { now: 0, cost })
      expect([peeked.allowed, peeked.reason, peeked.retryAfterMs]).toEqual([
        taken.allowed,
        taken.reason,
        taken.retryAfterMs,
      ])
    }
    expect(left(limiter, 0)).toBe(2)
  })

  test('peek at a key never seen leaves nothing in memory', () => {
    const store = memoryStore()
    const limiter = createLimiter(tokenBucket(ten), { store })
    expect(limiter.peek('k', { now: 0 })).toMatchObject({ allowed: true, remaining: 10, resetAfterMs: 0 })
    expect(limiter.refund(limiter.peek('k', { now: 0 }))).toBe(0)
    limiter.take('k', { now: 0, cost: 11 })
    expect(store.stats().keys).toBe(0)
  })
})

describe.each(charging.filter(([name]) => name !== 'leakyQueue'))('refund under %s', (_, rule) => {
  test('gives back what was charged, once per decision', () => {
    const limiter = createLimiter(rule)
    const decision = limiter.take('k', { now: 0, cost: 4 })
    limiter.take('k', { now: 0, cost: 3 })
    expect(limiter.refund(decision)).toBe(4)
    expect(left(limiter, 0)).toBe(7)
    expect(limiter.refund(decision)).toBe(0)
    expect(left(limiter, 0)).toBe(7)
  })

  test('gives back a part, never more than was charged, and the part settles the receipt', () => {
    const limiter = createLimiter(rule)
    const [first, second] = [limiter.take('k', { now: 0, cost: 4 }), limiter.take('k', { now: 0, cost: 2 })]
    expect(limiter.refund(first, 1)).toBe(1)
    expect(limiter.refund(first, 3)).toBe(0)
    expect(limiter.refund(second, 100)).toBe(2)
    expect(left(limiter, 0)).toBe(7)
  })
})

describe('refund under leakyQueue', () => {
  const queue = () => createLimiter(rules['leakyQueue'] as Rule)

  test('gives the last place back, once per decision', () => {
    const limiter = queue()
    limiter.take('k', { now: 0, cost: 3 })
    const decision = limiter.take('k', { now: 0, cost: 4 })
    expect(limiter.refund(decision)).toBe(4)
    expect(left(limiter, 0)).toBe(7)
    expect(limiter.refund(decision)).toBe(0)
    expect(left(limiter, 0)).toBe(7)
  })

  test('gives no place back before which others wait: they keep the time they were given', () => {
    const limiter = queue()
    const first = limiter.take('k', { now: 0 })
    expect(limiter.take('k', { now: 0 }).delayMs).toBe(2_000)
    expect(limiter.refund(first)).toBe(0)
    expect(limiter.take('k', { now: 0 }).delayMs).toBe(3_000)
  })
})

describe.each(charging)('refund under %s', (_, rule) => {
  test('gives nothing back for a refusal', () => {
    const limiter = createLimiter(rule)
    limiter.take('k', { now: 0, cost: 10 })
    expect(limiter.refund(limiter.take('k', { now: 0 }))).toBe(0)
    expect(left(limiter, 0)).toBe(0)
  })

  test('never lifts a key above full, and gives nothing once the charge no longer counts', () => {
    const limiter = createLimiter(rule)
    const decision = limiter.take('k', { now: 0, cost: 4 })
    const { resetAfterMs } = decision
    expect(limiter.peek('k', { now: resetAfterMs }).remaining).toBe(10)
    expect(limiter.refund(decision)).toBe(0)
    expect(limiter.take('k', { now: resetAfterMs, cost: 10 }).allowed).toBe(true)
    expect(limiter.take('k', { now: resetAfterMs }).allowed).toBe(false)
  })

  test('of an old charge takes nothing from a newer one', () => {
    const limiter = createLimiter(rule)
    const decision = limiter.take('k', { now: 0, cost: 10 })
    const later = decision.resetAfterMs
    limiter.take('k', { now: later, cost: 5 })
    expect(limiter.refund(decision)).toBe(0)
    expect(left(limiter, later)).toBe(5)
  })

  test('of several charges together never lets more pass at one instant than a full key holds', () => {
    const limiter = createLimiter(rule)
    const [first, second] = [limiter.take('k', { now: 0, cost: 5 }), limiter.take('k', { now: 0, cost: 5 })]
    limiter.refund(first)
    let now = 5_000
    const third = limiter.take('k', { now, cost: 5 })
    now = 5_000
    limiter.refund(second)
    const more = limiter.take('k', { now, cost: 10 })
    expect(third.charged + more.charged).toBeLessThanOrEqual(10)
  })
})

test('a refund of a bucket gives only what the refill has not given already', () => {
  const limiter = createLimiter(tokenBucket(ten))
  const decision = limiter.take('k', { now: 0, cost: 4 })
  expect(limiter.peek('k', { now: 3_000 }).remaining).toBe(9)
  expect(limiter.refund(decision)).toBe(1)
  expect(left(limiter, 3_000)).toBe(10)
})

test('a refund of a stack says the least that came back, in every policy', () => {
  const limiter = createLimiter({ quick: tokenBucket({ limit: 4, window: '4s' }), slow: fixedWindow(ten) })
  const keys = { quick: 'k', slow: 'k' }
  const decision = limiter.take(keys, { now: 0, cost: 4 })
  limiter.peek(keys, { now: 3_000 })
  expect(limiter.refund(decision)).toBe(1)
  expect(limiter.peek(keys, { now: 3_000 }).policies.map(({ remaining }) => remaining)).toEqual([4, 10])
})

describe('reset', () => {
  test.each(charging)('%s: the key is as new, others are not touched', (_, rule) => {
    const limiter = createLimiter(rule)
    limiter.take('k', { now: 0, cost: 10 })
    limiter.take('other', { now: 0, cost: 4 })
    limiter.reset('k')
    expect(left(limiter, 0)).toBe(10)
    expect(limiter.peek('other', { now: 0 }).remaining).toBe(6)
    expect(() => limiter.reset('never seen')).not.toThrow()
  })

  test('of a stack forgets only the names that are given', () => {
    const limiter = createLimiter({ user: fixedWindow(ten), tenant: fixedWindow(ten) })
    const keys = { user: 'u', tenant: 't' }
    limiter.take(keys, { now: 0, cost: 4 })
    limiter.reset({ user: 'u' })
    expect(limiter.peek(keys, { now: 0 }).policies.map(({ remaining }) => remaining)).toEqual([10, 6])
  })

  test('ends a block', () => {
    const limiter = createLimiter(fixedWindow(ten))
    limiter.block('k', '1h')
    limiter.reset('k')
    expect(limiter.take('k').allowed).toBe(true)
  })
})

describe('time given by the caller', () => {
  test('verbs without a time use the last time that was given', () => {
    const limiter = createLimiter(fixedWindow(ten))
    const decision = limiter.take('k', { now: 9_999, cost: 4 })
    expect(limiter.refund(decision)).toBe(4)
    const second = limiter.take('k', { now: 9_999, cost: 4 })
    limiter.peek('k', { now: 10_000 })
    expect(limiter.refund(second)).toBe(0)
    limiter.block('k', '5s')
    expect(limiter.take('k', { now: 14_999.999 }).reason).toBe('blocked')
    expect(limiter.take('k', { now: 15_000 }).allowed).toBe(true)
  })

  test('fractions of a millisecond count, to the microsecond', () => {
    const limiter = createLimiter(slidingLog({ limit: 1, window: 0.5 }))
    const at = 1_796_000_000_000.25
    expect(limiter.take('k', { now: at }).allowed).toBe(true)
    expect(limiter.take('k', { now: at + 0.499 })).toMatchObject({ allowed: false, retryAfterMs: 0.001 })
    expect(limiter.take('k', { now: at + 0.5 }).allowed).toBe(true)
  })

  test('a time that goes back by up to a minute frees nothing', () => {
    for (const rule of Object.values(rules)) {
      const limiter = createLimiter(rule)
      limiter.take('k', { now: 1_000_000_000, cost: 10 })
      expect(limiter.take('k', { now: 1_000_000_000 - 60_000 }).allowed).toBe(false)
    }
  })
})

describe.each(charging)('refund after a reset under %s', (_, rule) => {
  test('takes nothing out of what was charged since', () => {
    const limiter = createLimiter(rule)
    const before = limiter.take('k', { now: 0, cost: 4 })
    limiter.reset('k')
    const after = limiter.take('k', { now: 0, cost: 10 })
    expect(limiter.refund(before)).toBe(0)
    expect(left(limiter, 0)).toBe(0)
    expect(limiter.refund(after)).toBe(10)
  })
})

test('a refund says what came back although the permits of its stack were released before', () => {
  const limiter = createLimiter({ rate: tokenBucket(ten), busy: concurrency({ limit: 2 }) })
  const decision = limiter.take({ rate: 'k', busy: 'k' }, { now: 0 })
  decision.release()
  expect(limiter.refund(decision)).toBe(1)
})
