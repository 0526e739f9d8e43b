import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, type Rule } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { KeyNames } from '../../src/stores/redis/keys.ts'
import type { RemoteStore } from '../../src/stores/remote.ts'
import { connect, notes, rulesOf } from './support.ts'

let server: RedisProcess
let redis: Redis
let store: RemoteStore

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = connect(server.port)
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

/** 16 bytes that stand where a state has its numbers, then what stands where it has its name. */
const behind = (text: string): string => `${'n'.repeat(16)}${text}`

/** Texts that are no states, some of them nearly. */
const foreign: Record<string, string> = {
  number: '42',
  word: 'hello',
  sentence: 'a jumping quick fox over the lazy dog; the dog sleeps',
  another: 'the quick brown fox jumps over the lazy dog; the dog sleeps',
  long: 'x'.repeat(5_000),
  'marks of all kinds': behind('xgrP'),
  'a block cut short': behind('x1234'),
  'an end cut short': behind('r1234'),
  'a number cut short': behind('i1234'),
  'a number and no name': behind('i12345678'),
  'a reset cut short': behind('g1234'),
  'a parked state cut short': behind('P\u0001'),
  'a parked state longer than the value': behind('P\u00ff\u00ff\u0000\u0000abc'),
  'a word and a semicolon': behind('a;'),
  'a bucket without numbers': behind('b;'),
  'a window without numbers': behind('f;'),
  'a counter without numbers': behind('cx,y,z;'),
  'a list without numbers': behind('l;'),
  'permits without numbers': behind('p,;'),
  'a bucket with words': behind('bone,two,three,four;'),
}

const kinds = Object.keys(rulesOf(5))

async function unfit(rule: Rule, put: (name: string) => Promise<unknown>): Promise<void> {
  for (const mode of ['closed', 'local'] as const) {
    const { told, of, on } = notes()
    const limiter = createLimiter(rule, {
      name: mode,
      store,
      on,
      onStoreFailure: mode,
      storeFailure: { expectedInstances: 5 },
    })
    const name = new KeyNames('catraca', mode, mode).nameOf('bad', undefined)
    await put(name)
    const before = await redis.dump(name)
    const decisions = [await limiter.take('bad'), await limiter.take('bad'), await limiter.peek('bad')]
    // Of a limit of 5 and 5 instances one unit is this instance's.
    const allowed = mode === 'local' ? [true, false, false] : [false, false, false]
    expect(decisions.map((one) => [one.allowed, one.degraded])).toEqual(allowed.map((one) => [one, true]))
    expect(of('store.fault').map(({ policy, key }) => [policy, key])).toEqual([[mode, 'bad']])
    expect(await redis.dump(name)).toEqual(before)
    expect(limiter.health).toBe('healthy')
    const good = await limiter.take('good')
    expect([good.allowed, good.degraded, good.remaining]).toEqual([true, false, 4])
    expect(told.length).toBe(1)
    limiter.close()
  }
}

describe.each(kinds)('%s: a key that holds something else is left as it is, and its mode decides', (kind) => {
  const rule = rulesOf(5)[kind] as Rule

  test('a list', () => unfit(rule, (name) => redis.rpush(name, 'a', 'b')))
  test('a hash', () => unfit(rule, (name) => redis.hset(name, 'tokens', '5', 'ts', '0')))
  test.each(Object.keys(foreign))('text: %s', (which) =>
    unfit(rule, (name) => redis.set(name, foreign[which] as string)),
  )
})

test('in a stack the other policies are not charged, and the fault names all that were asked', async () => {
  const { of, on } = notes()
  const { bucket, log, quota } = rulesOf(5) as { bucket: Rule; log: Rule; quota: Rule }
  const limiter = createLimiter({ bucket, log, quota }, { name: 's', store, on, onStoreFailure: 'closed' })
  await redis.rpush(new KeyNames('catraca', 's', 'log').nameOf('bad', undefined), 'x')
  const decision = await limiter.take({ bucket: 'a', log: 'bad', quota: 'c' })
  expect([decision.allowed, decision.degraded, decision.reason]).toEqual([false, true, 'store-closed'])
  expect(of('store.fault').map(({ policy, key }) => `${policy} ${key}`)).toEqual(['bucket a', 'log bad', 'quota c'])
  const next = await limiter.peek({ bucket: 'a', log: 'good', quota: 'c' })
  expect(next.policies.map(({ remaining }) => remaining)).toEqual([5, 5, 5])
})

test.each(['list', 'text'])(
  'a %s: verbs that answer with a number say 0, those that must succeed say that the store did not answer',
  async (kind) => {
    const { bucket } = rulesOf(5) as { bucket: Rule }
    const limiter = createLimiter(bucket, { name: 'v', store, onStoreFailure: 'closed' })
    const taken = await limiter.take('k')
    const name = new KeyNames('catraca', 'v', 'v').nameOf('k', undefined)
    await redis.del(name)
    await (kind === 'list' ? redis.rpush(name, 'x') : redis.set(name, 'a text of another program'))
    const before = await redis.dump(name)
    expect(await limiter.refund(taken)).toBe(0)
    await expect(limiter.block('k', '1m')).rejects.toMatchObject({ code: 'CATRACA_STORE_UNAVAILABLE' })
    await expect(limiter.reset('k')).rejects.toMatchObject({ code: 'CATRACA_STORE_UNAVAILABLE' })
    expect(await redis.dump(name)).toEqual(before)
    expect(limiter.health).toBe('healthy')
  },
)
