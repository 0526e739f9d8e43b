import { concurrency, createLimiter, fixedWindow, memoryStore, tokenBucket } from 'catraca'
import { describe, expect, test } from 'vitest'

const two = () => createLimiter(concurrency({ limit: 2, permitTtl: '30s' }))
const at = (now: number) => ({ now })

describe('permits', () => {
  test('are held until released, each once', () => {
    const limiter = two()
    const [first, second] = [limiter.take('k', at(0)), limiter.take('k', at(0))]
    expect(limiter.take('k', at(0))).toMatchObject({ allowed: false, reason: 'concurrency' })
    first.release()
    expect(limiter.peek('k', at(0)).remaining).toBe(1)
    first.release()
    limiter.release(first)
    expect(limiter.peek('k', at(0)).remaining).toBe(1)
    second.release()
    expect(limiter.peek('k', at(0)).remaining).toBe(2)
  })

  test('a release after expiry does nothing and cannot free the permit of somebody else', () => {
    const limiter = two()
    const [lost, other] = [limiter.take('k', at(0)), limiter.take('k', at(10_000))]
    const third = limiter.take('k', at(30_000))
    expect(third.allowed).toBe(true)
    expect(limiter.take('k', at(30_000)).allowed).toBe(false)
    lost.release()
    expect(limiter.take('k', at(30_000)).allowed).toBe(false)
    other.release()
    expect(limiter.take('k', at(30_000)).allowed).toBe(true)
  })

  test('a release at the instant of expiry does nothing either', () => {
    const limiter = two()
    const lost = limiter.take('k', at(0))
    limiter.take('k', at(29_999.999))
    expect(limiter.peek('k', at(30_000)).remaining).toBe(1)
    lost.release()
    expect(limiter.peek('k', at(30_000)).remaining).toBe(1)
  })

  test('after reset an old release cannot free a newer permit', () => {
    const limiter = createLimiter(concurrency({ limit: 1 }))
    const old = limiter.take('k', at(0))
    limiter.reset('k')
    expect(limiter.take('k', at(0)).allowed).toBe(true)
    old.release()
    expect(limiter.take('k', at(0)).allowed).toBe(false)
  })

  test('a weight holds that many at once and gives all of them back', () => {
    const limiter = createLimiter(concurrency({ limit: 5 }))
    const heavy = limiter.take('k', { now: 0, cost: 4 })
    expect(limiter.take('k', { now: 0, cost: 2 }).allowed).toBe(false)
    expect(limiter.take('k', { now: 0, cost: 1 }).allowed).toBe(true)
    heavy.release()
    expect(limiter.peek('k', at(0)).remaining).toBe(4)
  })

  test('are released in any order', () => {
    const limiter = createLimiter(concurrency({ limit: 100 }))
    const held = Array.from({ length: 100 }, () => limiter.take('k', at(0)))
    const order = held.map((_, index) => held[(index * 37) % 100])
    order.forEach((decision, index) => {
      decision?.release()
      expect(limiter.peek('k', at(0)).remaining).toBe(index + 1)
    })
  })

  test('using gives back at the end of the block, also of a refused decision', () => {
    const limiter = createLimiter(concurrency({ limit: 1 }))
    {
      using held = limiter.take('k')
      using refused = limiter.take('k')
      expect([held.allowed, refused.allowed]).toEqual([true, false])
    }
    expect(limiter.peek('k').remaining).toBe(1)
  })

  test('await using gives back at the end of the block', async () => {
    const limiter = createLimiter(concurrency({ limit: 1 }))
    {
      await using held = limiter.take('k')
      expect(held.allowed).toBe(true)
    }
    expect(limiter.peek('k').remaining).toBe(1)
  })

  test('release of other rules changes nothing', () => {
    const limiter = createLimiter(tokenBucket({ limit: 5, window: '1m' }))
    const decision = limiter.take('k', at(0))
    decision.release()
    expect(limiter.peek('k', at(0)).remaining).toBe(4)
    expect(limiter.refund(decision)).toBe(1)
  })

  test('release in a stack gives the permits back and keeps the rest charged', () => {
    const limiter = createLimiter({
      rate: fixedWindow({ limit: 5, window: '1m' }),
      inFlight: concurrency({ limit: 1 }),
    })
    const keys = { rate: 'k', inFlight: 'k' }
    const held = limiter.take(keys, at(0))
    expect(limiter.take(keys, at(0))).toMatchObject({ allowed: false, policy: 'inFlight' })
    held.release()
    expect(limiter.peek(keys, at(0)).policies.map(({ remaining }) => remaining)).toEqual([4, 1])
  })

  test('release after close does nothing', () => {
    const store = memoryStore()
    const limiter = createLimiter(concurrency({ limit: 1 }), { store })
    const held = limiter.take('k')
    limiter.close()
    expect(() => held.release()).not.toThrow()
    expect(store.stats().keys).toBe(0)
  })

  test('resetAfterMs ends with the last permit that is held, not with one that was released', () => {
    const limiter = two()
    limiter.take('k', at(0))
    limiter.take('k', at(10_000)).release()
    expect(limiter.peek('k', at(10_000))).toMatchObject({ remaining: 1, resetAfterMs: 20_000 })
    expect(limiter.peek('k', at(30_000))).toMatchObject({ remaining: 2, resetAfterMs: 0 })
  })

  test('a long holder among many short ones does not make the list of permits grow', () => {
    const limiter = two()
    limiter.take('k', at(0))
    const sizes = [1, 2].map(() => {
      for (let calls = 0; calls < 20_000; calls++) limiter.take('k', at(1)).release()
      return heldBytes(limiter)
    })
    expect(sizes[1]).toBeLessThan(10_000)
    expect(sizes[1]).toBe(sizes[0])
  })
})

/** Bytes of all lists of permits. */
function heldBytes(limiter: unknown): number {
  const { ledger } = limiter as { ledger: { tables: { shards: { lists: Float64Array[] }[] }[] } }
  const lists = ledger.tables.flatMap(({ shards }) => shards.flatMap((shard) => shard.lists))
  return lists.reduce((sum, list) => sum + list.byteLength, 0)
}
