import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, fixedWindow, slidingLog } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { connect, ready, times } from './support.ts'

let server: RedisProcess
let redis: Redis

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = connect(server.port)
  await ready(redis)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

// So long that none of the windows ends during the test, but once in a thousand years of tests.
const own = fixedWindow({ limit: 5, window: '16d', offset: 'key' })
const options = { onStoreFailure: 'closed', storeFailure: { expectedInstances: 2 } } as const

function limiterOf() {
  const store = redisStore({ client: redis, timeoutMs: 10_000 })
  onTestFinished(() => store.close())
  return createLimiter(own, { name: 'spread', store, ...options })
}

test('keys renew at instants of their own, the same for every instance', async () => {
  const [one, other] = [limiterOf(), limiterOf()]
  const days = new Set<number>()
  for (const key of times(60, (index) => `client:${index}`)) {
    const first = await one.take(key, { cost: 3 })
    const second = await other.take(key, { cost: 3 })
    expect([first.allowed, first.remaining, second.allowed]).toEqual([true, 2, false])
    expect(await other.peek(key)).toMatchObject({ remaining: 2 })
    const renews = Math.round(first.nowUs / 1_000 + first.resetAfterMs)
    expect(Math.abs(second.nowUs / 1_000 + second.retryAfterMs - renews)).toBeLessThan(1)
    expect(renews % 86_400_000).toBe(0)
    days.add((renews / 86_400_000) % 16)
    expect(await one.refund(first, 1)).toBe(1)
    await one.block(key, '1m')
    expect((await other.take(key)).reason).toBe('blocked')
    await one.reset(key)
    expect((await other.peek(key)).remaining).toBe(5)
  }
  expect(days.size).toBeGreaterThan(12)
})

test('in a stack each policy is asked under the offset of its own key', async () => {
  const store = redisStore({ client: redis, timeoutMs: 10_000 })
  onTestFinished(() => store.close())
  const rules = { log: slidingLog({ limit: 9, window: '1h' }), own }
  const limiter = createLimiter(rules, { name: 'stack', store, ...options })
  const decision = await limiter.take({ log: 'x', own: 'b' }, { cost: 4 })
  expect(decision.policies.map(({ policy, remaining }) => [policy, remaining])).toEqual([
    ['log', 5],
    ['own', 1],
  ])
  expect((await limiter.take({ log: 'y', own: 'b' }, { cost: 2 })).policy).toBe('own')
  expect(await limiter.refund(decision)).toBe(4)
  expect((await limiter.peek({ log: 'x', own: 'b' })).policies.map(({ remaining }) => remaining)).toEqual([9, 5])
})

test('policies that come after it keep their places', async () => {
  const store = redisStore({ client: redis, timeoutMs: 10_000 })
  onTestFinished(() => store.close())
  const rules = { own, log: slidingLog({ limit: 9, window: '1h' }) }
  const limiter = createLimiter(rules, { name: 'places', store, ...options })
  await limiter.take({ own: 'b', log: 'x' }, { cost: 4 })
  await limiter.reset({ log: 'x' })
  expect((await limiter.peek({ own: 'b', log: 'x' })).policies.map(({ remaining }) => remaining)).toEqual([1, 9])
  await limiter.block({ log: 'x' }, '1m')
  expect(await limiter.take({ own: 'b', log: 'x' })).toMatchObject({ reason: 'blocked', policy: 'log' })
})
