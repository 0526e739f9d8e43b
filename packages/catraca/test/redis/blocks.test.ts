import { RedisProcess } from '@catraca/gateway/redis-server'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RemoteStore } from '../../src/stores/remote.ts'
import { connect, lives, ready, times } from './support.ts'

let server: RedisProcess
let redis: Redis
let store: RemoteStore

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = connect(server.port)
  await ready(redis)
})

beforeEach(async () => {
  await redis.flushall()
  store = redisStore({ client: redis, timeoutMs: 10_000 })
})

afterEach(() => store.close())

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

const window = '1000d'
const rules: Record<string, Rule> = {
  window: fixedWindow({ limit: 5, window }),
  bucket: tokenBucket({ limit: 5, window }),
  log: slidingLog({ limit: 5, window }),
  quota: quota({ limit: 5, period: 'year' }),
}

test.each(Object.entries(rules))(
  '%s: a block after a reset is replaced and ended, whatever the instants are',
  async (name, rule) => {
    const limiter = createLimiter(rule, { name, store, onStoreFailure: 'closed' })
    // Instants stand in the value as bytes, which may look like anything: many of them.
    await Promise.all(
      times(500, async (index) => {
        const key = `k${index}`
        await limiter.take(key, { cost: 2 })
        await limiter.reset(key)
        await limiter.block(key, '1h')
        await limiter.block(key, '2h')
        const blocked = await limiter.take(key)
        expect([blocked.reason, blocked.degraded]).toEqual(['blocked', false])
        expect(blocked.retryAfterMs).toBeGreaterThan(3_600_000)
        await limiter.unblock(key)
        const taken = await limiter.take(key, { cost: 5 })
        expect(taken).toMatchObject({ allowed: true, degraded: false })
        // A bucket has refilled a little since.
        expect(await limiter.refund(taken)).toBeCloseTo(5, 4)
      }),
    )
  },
)

test.each(Object.entries(rules))('%s: a block keeps what was used, and a reset forgets both', async (name, rule) => {
  const limiter = createLimiter(rule, { name, store, onStoreFailure: 'closed' })
  await limiter.take('k', { cost: 2 })
  await limiter.block('k', '1h')
  expect((await limiter.take('k')).reason).toBe('blocked')
  await limiter.unblock('k')
  expect((await limiter.peek('k')).remaining).toBe(3)
  await limiter.block('k', '1h')
  await limiter.reset('k')
  expect((await limiter.peek('k')).remaining).toBe(5)
})

test('a block outlasts its rule, however often it refuses', async () => {
  const short = { limit: 5, window: '1s' } as const
  const all: Record<string, Rule> = {
    'short-window': fixedWindow(short),
    'short-counter': slidingCounter(short),
    'short-parts': slidingCounter({ ...short, subWindows: 5 }),
    'short-log': slidingLog(short),
    'short-bucket': tokenBucket(short),
    'short-permits': concurrency({ limit: 5, permitTtl: '1s' }),
  }
  for (const [name, rule] of Object.entries(all)) {
    const limiter = createLimiter(rule, { name, store, onStoreFailure: 'closed' })
    await limiter.take('k')
    await limiter.block('k', '1h')
    for (const cost of [1, 2, 3]) expect((await limiter.take('k', { cost })).reason).toBe('blocked')
    const life = [...(await lives(redis))].find(([key]) => key.includes(name))?.[1] ?? 0
    expect({ name, lasts: life > 3_500_000 }).toEqual({ name, lasts: true })
  }
})

test('a key that lost its end keeps what was used when it is blocked and unblocked', async () => {
  for (const [name, rule] of Object.entries(rules)) {
    const limiter = createLimiter(rule, { name, store, onStoreFailure: 'closed' })
    await limiter.take('k', { cost: 2 })
    for (const key of (await lives(redis)).keys()) await redis.persist(key)
    await limiter.unblock('k')
    // A year does not end within the next days, but for the last of it.
    const life = [...(await lives(redis))].find(([key]) => key.includes(name))?.[1] ?? 0
    expect({ name, long: life > 2_000 }).toEqual({ name, long: true })
    expect((await limiter.peek('k')).remaining).toBe(3)
  }
})

test('permits taken after a reset or a block are renewed and released', async () => {
  const rule = concurrency({ limit: 2, permitTtl: '1h' })
  const limiter = createLimiter(rule, { name: 'permits', store, onStoreFailure: 'closed' })
  await Promise.all(
    times(200, async (index) => {
      const key = `k${index}`
      await limiter.take(key)
      await limiter.reset(key)
      const taken = await limiter.take(key, { cost: 2 })
      expect(await limiter.renew(taken)).toBe(true)
      await limiter.block(key, '1h')
      expect(await limiter.renew(taken)).toBe(true)
      await limiter.release(taken)
      await limiter.unblock(key)
      expect((await limiter.peek(key)).remaining).toBe(2)
    }),
  )
})
