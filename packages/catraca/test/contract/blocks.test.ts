import { createLimiter, fixedWindow, memoryStore, tokenBucket } from 'catraca'
import { describe, expect, test } from 'vitest'

const ten = () => tokenBucket({ limit: 10, window: '10s' })
const at = (now: number) => ({ now })

describe('a blocked key', () => {
  test('is refused exactly until the end of the block, whatever is left', () => {
    const limiter = createLimiter(ten())
    limiter.peek('k', at(1_000))
    limiter.block('k', '5s')
    expect(limiter.take('k', at(1_000))).toMatchObject({
      allowed: false,
      reason: 'blocked',
      retryAfterMs: 5_000,
      charged: 0,
    })
    expect(limiter.take('k', at(5_999.999))).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 0.001 })
    expect(limiter.take('k', at(6_000))).toMatchObject({ allowed: true, remaining: 9 })
    expect(limiter.take('other', at(1_000)).allowed).toBe(true)
  })

  test('is charged nothing while it is refused', () => {
    const limiter = createLimiter(ten())
    limiter.take('k', { now: 0, cost: 4 })
    limiter.block('k', '1s')
    for (let tries = 0; tries < 20; tries++) limiter.take('k', at(0))
    limiter.unblock('k')
    expect(limiter.peek('k', at(0)).remaining).toBe(6)
  })

  test('has nothing left while it is refused: remaining is what would pass now', () => {
    const limiter = createLimiter(ten())
    limiter.take('k', { now: 0, cost: 4 })
    limiter.block('k', '1s')
    expect(limiter.peek('k', at(0))).toMatchObject({ allowed: false, reason: 'blocked', remaining: 0 })
    expect(limiter.take('k', at(0)).policies[0]).toMatchObject({ allowed: false, wouldDeny: true, remaining: 0 })
  })

  test('waits for the longer of block and limit', () => {
    const limiter = createLimiter(ten())
    limiter.take('k', { now: 0, cost: 10 })
    limiter.block('k', '3s')
    expect(limiter.take('k', { now: 0, cost: 2 })).toMatchObject({ reason: 'blocked', retryAfterMs: 3_000 })
    expect(limiter.take('k', { now: 0, cost: 7 })).toMatchObject({ allowed: false, retryAfterMs: 7_000 })
    expect(limiter.take('k', { now: 0, cost: 11 })).toMatchObject({ reason: 'impossible', retryAfterMs: Infinity })
  })

  test('passes again after unblock, at once', () => {
    const limiter = createLimiter(ten())
    limiter.block('k', '1d')
    limiter.unblock('k')
    expect(limiter.take('k').allowed).toBe(true)
    expect(() => limiter.unblock('never blocked')).not.toThrow()
  })

  test('blocked again waits for the later call, shorter or longer', () => {
    const limiter = createLimiter(ten())
    limiter.peek('k', at(0))
    limiter.block('k', '10s')
    limiter.block('k', '2s')
    expect(limiter.take('k', at(0)).retryAfterMs).toBe(2_000)
    limiter.block('k', '20s')
    expect(limiter.take('k', at(0)).retryAfterMs).toBe(20_000)
  })

  test('peek and tryTake say the same', () => {
    const limiter = createLimiter(ten())
    limiter.peek('k', at(0))
    limiter.block('k', 500)
    expect(limiter.peek('k', at(0))).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 500 })
    expect(limiter.tryTake('k', at(0))).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 500 })
  })

  test('set under a clock that was far ahead begins again instead of lasting for ever', () => {
    const limiter = createLimiter(ten())
    limiter.peek('k', at(10_000_000_000))
    limiter.block('k', '5s')
    expect(limiter.take('k', at(1_000))).toMatchObject({ reason: 'blocked', retryAfterMs: 5_000 })
    expect(limiter.take('k', at(6_000)).allowed).toBe(true)
  })

  test('stays blocked however many other keys come: blocks are never evicted', () => {
    const store = memoryStore({ maxKeys: 3, seed: 1 })
    const limiter = createLimiter(fixedWindow({ limit: 5, window: '1h' }), { store })
    limiter.peek('k', at(0))
    limiter.block('k', '1h')
    for (let index = 0; index < 500; index++) limiter.take(`other:${index}`, at(0))
    expect(limiter.take('k', at(0)).reason).toBe('blocked')
    expect(store.stats().keys).toBeLessThanOrEqual(3)
  })
})

describe('in a stack', () => {
  const stack = () => createLimiter({ user: ten(), tenant: tokenBucket({ limit: 20, window: '10s' }) })
  const keys = { user: 'u', tenant: 't' }

  test('one blocked name refuses the whole and charges none; the answer names it', () => {
    const limiter = stack()
    limiter.peek(keys, at(0))
    limiter.block({ tenant: 't' }, '5s')
    const refused = limiter.take(keys, at(0))
    expect(refused).toMatchObject({ allowed: false, policy: 'tenant', reason: 'blocked', retryAfterMs: 5_000 })
    expect(refused.policies.map(({ policy, allowed }) => [policy, allowed])).toEqual([
      ['user', true],
      ['tenant', false],
    ])
    limiter.unblock({ tenant: 't' })
    expect(limiter.peek(keys, at(0)).policies.map(({ remaining }) => remaining)).toEqual([10, 20])
  })

  test('the longest wait wins, be it of a block or of a limit', () => {
    const limiter = stack()
    limiter.take(keys, { now: 0, cost: 10 })
    limiter.block({ tenant: 't' }, '5s')
    expect(limiter.take(keys, { now: 0, cost: 2 })).toMatchObject({
      policy: 'tenant',
      reason: 'blocked',
      retryAfterMs: 5_000,
    })
    expect(limiter.take(keys, { now: 0, cost: 6 })).toMatchObject({
      policy: 'user',
      reason: 'limited',
      retryAfterMs: 6_000,
    })
  })

  test('the same text under another name is not blocked', () => {
    const limiter = stack()
    limiter.block({ user: 'x' }, '5s')
    expect(limiter.take({ user: 'y', tenant: 'x' }).allowed).toBe(true)
    expect(limiter.take({ user: 'x', tenant: 'y' }).reason).toBe('blocked')
  })
})
