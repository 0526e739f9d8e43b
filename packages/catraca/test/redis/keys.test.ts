import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, type Rule } from 'catraca'
import { redisStore } from 'catraca/redis'
import * as fc from 'fast-check'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { KeyNames, storeKey } from '../../src/stores/redis/keys.ts'
import type { RemoteStore } from '../../src/stores/remote.ts'
import { connect, lives, ready, rulesOf } from './support.ts'

/** Keys that callers choose: what other stores take for separators, halves of characters, nothing, a lot. */
const strange = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: fc.constantFrom(':', '{', '}', '1', '2', 'a', '\u0000', '\ud800', '\udc00', '%'), maxLength: 8 }),
  fc.constantFrom('', 'x'.repeat(1_000), `${'x'.repeat(999)}y`, '\ud800', '\ud801', '\udc00', '\ufffd', '\u0000'),
  fc.string({ minLength: 120, maxLength: 140 }),
)
/** Names as limiters and policies may have them, and as no check lets them be. */
const names = fc.oneof(fc.constantFrom('a', 'a1', 'ab', 'a:1', '1:a', 'a}1'), fc.string({ minLength: 1, maxLength: 6 }))
const places = fc.tuple(names, names, strange)

/** As it arrives: what has no form in UTF-8 is another character there. */
const sent = ([limiter, policy, key]: readonly [string, string, string], tag?: string): string =>
  Buffer.from(new KeyNames('catraca', limiter, policy).nameOf(key, tag)).toString('hex')

describe('the name of a state', () => {
  test('no two places share one', () => {
    fc.assert(
      fc.property(places, places, fc.option(strange, { nil: undefined }), (one, other, tag) => {
        const same = one.every((part, index) => part === other[index])
        expect(sent(one, tag) === sent(other, tag)).toBe(same)
      }),
      { numRuns: 2_000 },
    )
    fc.assert(
      fc.property(fc.uniqueArray(strange, { maxLength: 12 }), (keys) => {
        expect(new Set(keys.map((key) => sent(['l', 'p', key]))).size).toBe(keys.length)
      }),
      { numRuns: 300 },
    )
  })

  test('none is that of what the store keeps for itself', () => {
    fc.assert(
      fc.property(places, (place) => {
        for (const own of ['marker', 'instances']) {
          expect(sent(place)).not.toBe(Buffer.from(storeKey('catraca', own)).toString('hex'))
        }
      }),
    )
  })

  test('a cluster finds one tag in it, that of the key or the one given, whatever braces the key has', () => {
    const tagOf = (name: string): string => {
      const begin = name.indexOf('{')
      return name.slice(begin + 1, name.indexOf('}', begin))
    }
    fc.assert(
      fc.property(places, places, strange, ([limiter, policy, key], [limiter2, policy2, key2], tag) => {
        const one = new KeyNames('catraca', limiter, policy)
        const other = new KeyNames('catraca', limiter2, policy2)
        expect(tagOf(one.nameOf(key, undefined))).not.toBe('')
        expect(tagOf(one.nameOf(key, tag))).toBe(tagOf(other.nameOf(key2, tag)))
        expect(tagOf(one.nameOf(key, undefined))).toBe(tagOf(other.nameOf(key, undefined)))
      }),
    )
  })

  test('it stays short, and a long key is not in it', () => {
    const secret = `sk-${'0123456789abcdef'.repeat(10)}`
    const name = new KeyNames('catraca', 'l', 'p').nameOf(secret, undefined)
    expect(name).not.toContain('0123456789')
    expect(new KeyNames('catraca', 'l', 'p').nameOf('x'.repeat(1_000_000), undefined).length).toBeLessThan(200)
  })
})

describe('on a server', () => {
  let server: RedisProcess
  let redis: Redis
  let store: RemoteStore

  beforeAll(async () => {
    server = await RedisProcess.start()
    redis = connect(server.port)
    await ready(redis)
  })

  afterAll(async () => {
    redis.disconnect()
    await server.stop()
  })

  beforeEach(async () => {
    await redis.flushall()
    store = redisStore({ client: redis, timeoutMs: 5_000 })
  })

  afterEach(() => store.close())

  test('strange keys are counted apart', async () => {
    const rule = rulesOf(2)['fixed'] as Rule
    const limiter = createLimiter(rule, { name: 'strange', store, onStoreFailure: 'closed' })
    const keys = [
      '',
      ' ',
      ':',
      '{',
      '}',
      '{}',
      '{a}',
      '\u0000',
      '\ud800',
      '\udc00',
      '\ufffd',
      '😀',
      '\r\n',
      'k\r\nFLUSHALL\r\n',
    ]
    keys.push('x'.repeat(1_000_000), `${'x'.repeat(999_999)}y`, '__proto__', 'constructor')
    for (const key of keys) expect((await limiter.take(key)).remaining).toBe(1)
    for (const key of keys) expect((await limiter.take(key)).remaining).toBe(0)
    for (const key of keys) expect((await limiter.take(key)).allowed).toBe(false)
    expect((await lives(redis)).size).toBe(keys.length)
  })

  describe.each(Object.entries(rulesOf(3)))('%s', (name, rule) => {
    test('its keys always have an end', async () => {
      const limiter = createLimiter(rule, { name, store, onStoreFailure: 'closed' })
      const alive = async (what: string): Promise<void> => {
        for (const life of (await lives(redis)).values()) expect({ what, ends: life > 0 }).toEqual({ what, ends: true })
      }
      await limiter.peek('k')
      expect((await lives(redis)).size).toBe(0)
      const first = await limiter.take('k')
      await alive('take')
      for (let turn = 0; turn < 4; turn++) await limiter.take('k')
      await alive('refusal')
      await limiter.renew(first)
      await alive('renewal')
      await limiter.refund(first)
      await alive('refund')
      await limiter.block('k', '1m')
      await alive('block')
      await limiter.take('k')
      await alive('refusal of a blocked key')
      await limiter.unblock('k')
      await alive('unblock')
      await limiter.reset('k')
      await alive('reset')
      await limiter.block('never seen', '1m')
      await limiter.block('never seen', '1ms')
      await limiter.unblock('none')
      await limiter.reset('none either')
      await limiter.take('impossible', { cost: 4 })
      await alive('keys not taken from')
      expect((await lives(redis)).size).toBeGreaterThan(1)
    })

    test('a key that lost its end has one again after the next decision, admitted or refused', async () => {
      const limiter = createLimiter(rule, { name, store, onStoreFailure: 'closed' })
      await limiter.take('k')
      const [key = ''] = (await lives(redis)).keys()
      await redis.persist(key)
      expect((await limiter.take('k')).allowed).toBe(true)
      expect(await redis.pttl(key)).toBeGreaterThan(0)
      expect((await limiter.take('k')).allowed).toBe(true)
      await redis.persist(key)
      // Another cost, so that no refusal is known yet.
      expect((await limiter.take('k', { cost: 3 })).allowed).toBe(false)
      expect(await redis.pttl(key)).toBeGreaterThan(0)
      await redis.persist(key)
      await limiter.block('k', '1m')
      expect(await redis.pttl(key)).toBeGreaterThan(0)
    })

    test('in a stack too, whoever of it refuses', async () => {
      const other = rulesOf(1)['fixed'] as Rule
      const limiter = createLimiter({ one: rule, other }, { name, store, onStoreFailure: 'closed' })
      await limiter.take({ one: 'k', other: 'a' })
      for (const [other, allowed] of [
        ['b', true],
        ['b', false],
      ] as const) {
        const asked = [...(await lives(redis)).keys()].filter((key) => !key.includes('{a}'))
        for (const key of asked) await redis.persist(key)
        expect((await limiter.take({ one: 'k', other })).allowed).toBe(allowed)
        for (const key of asked) expect(await redis.pttl(key)).toBeGreaterThan(0)
      }
    })

    test('a refund to a key that lost its end is kept', async () => {
      const limiter = createLimiter(rule, { name, store, onStoreFailure: 'closed' })
      const taken = await limiter.take('k')
      const [key = ''] = (await lives(redis)).keys()
      await redis.persist(key)
      // A bucket has refilled a little since.
      expect(await limiter.refund(taken)).toBeCloseTo(1, 6)
      expect((await limiter.peek('k')).remaining).toBe(3)
      expect(await redis.pttl(key)).toBeGreaterThan(rule.holds || name === 'log' ? -2 : 1_000_000)
    })
  })
})
