import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, fixedWindow, leakyQueue, type ReservingRule, type SharedLimiter, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RemoteStore } from '../../src/stores/remote.ts'
import { connect, lives, ready, sleep, times, trips } from './support.ts'

let server: RedisProcess
let clients: Redis[]
let stores: RemoteStore[]

beforeAll(async () => {
  server = await RedisProcess.start()
  clients = [connect(server.port), connect(server.port)]
  await Promise.all(clients.map(ready))
  // Every script is known to the server then: its trips are those of the verbs.
  const store = redisStore({ client: clients[0] as Redis, timeoutMs: 10_000 })
  const limiter = createLimiter(tokenBucket({ limit: 100, window: '1s', burst: 1 }), { name: 'first', store })
  await limiter.wait('k')
  await limiter.settle(await limiter.wait('k'), 0)
  await limiter.takeUpTo('k', 1)
  store.close()
})
beforeEach(async () => {
  await clients[0]?.flushall()
  stores = clients.map((client) => redisStore({ client, timeoutMs: 10_000 }))
})
afterEach(() => {
  for (const store of stores) store.close()
})
afterAll(async () => {
  for (const client of clients) client.disconnect()
  await server.stop()
})

type AnyLimiter = SharedLimiter<ReservingRule>

const limitersOf = (rule: ReservingRule): [AnyLimiter, AnyLimiter] =>
  stores.map((store) => createLimiter(rule, { name: 'api', store, onStoreFailure: 'closed' })) as [
    AnyLimiter,
    AnyLimiter,
  ]

/** Slow enough that nothing of it passes by itself during a test. */
const slow = tokenBucket({ limit: 1, window: '1h', burst: 10 })

test('two instances have one line: whoever reserves later waits longer, and take comes behind', async () => {
  const [one, two] = limitersOf(tokenBucket({ limit: 10, window: '1s', burst: 2 }))
  await one.take('k', { cost: 2 })
  const order: number[] = []
  const start = performance.now()
  const waits = await Promise.all(
    times(6, async (call) => {
      await sleep(30 * call)
      const decision = await (call % 2 === 0 ? one : two).wait('k')
      order.push(call)
      expect(decision).toMatchObject({ allowed: true, charged: 1, degraded: false })
      return decision.nowUs / 1_000 + decision.delayMs
    }),
  )
  expect(order).toEqual([0, 1, 2, 3, 4, 5])
  // Each starts one interval after the one before, by the clock of the server.
  for (const [call, at] of waits.slice(1).entries()) expect(at - (waits[call] as number)).toBeCloseTo(100, 1)
  expect(performance.now() - start).toBeGreaterThan(590)
})

test('a request that waits takes two trips, and its key lives as long as the debt', async () => {
  const [one] = limitersOf(slow)
  await one.take('k', { cost: 10 })
  const before = await trips(server)
  const abort = new AbortController()
  const waiting = one.wait('k', { cost: 10, maxWaitMs: 40_000_000, signal: abort.signal })
  const [[, life] = []] = await (async () => {
    while ((await trips(server)) < before + 2) await sleep(5)
    return lives(clients[0] as Redis)
  })()
  expect(life).toBeGreaterThan(20 * 3_600_000 - 60_000)
  expect((await trips(server)) - before).toBe(2)
  abort.abort()
  expect(await waiting).toMatchObject({ allowed: false, reason: 'aborted', charged: 0 })
  await expect.poll(async () => (await one.peek('k')).retryAfterMs).toBeLessThanOrEqual(3_600_000)
})

test('of many that give up in any order on two instances nothing is left behind but what others stand behind', async () => {
  const [one, two] = limitersOf(slow)
  await one.take('k', { cost: 10 })
  const aborts = times(8, () => new AbortController())
  const waits = aborts.map(({ signal }, call) =>
    (call % 2 === 0 ? one : two).wait('k', { maxWaitMs: 2 ** 31 - 1, signal }),
  )
  await expect.poll(async () => Math.round((await one.peek('k')).retryAfterMs) / 3_600_000).toBeCloseTo(9, 1)
  for (const place of [3, 0, 7, 5, 1, 6, 2, 4]) aborts[place]?.abort()
  expect((await Promise.all(waits)).every((decision) => decision.reason === 'aborted')).toBe(true)
  await expect.poll(async () => Math.round((await one.peek('k')).retryAfterMs) / 3_600_000).toBeLessThan(1.1)
})

test('a stack reserves in the bucket alone and takes the window when the time comes', async () => {
  const limiter = createLimiter(
    { pace: tokenBucket({ limit: 20, window: '1s', burst: 1 }), day: fixedWindow({ limit: 3, window: '1000d' }) },
    { name: 'stack', store: stores[0] as RemoteStore, onStoreFailure: 'closed' },
  )
  const keys = { pace: 'k', day: 'k' }
  const decisions = await Promise.all(times(5, () => limiter.wait(keys, { maxWaitMs: 5_000 })))
  expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(3)
  expect(decisions.filter(({ allowed }) => !allowed).map(({ policy }) => policy)).toEqual(['day', 'day'])
  expect((await limiter.peek(keys)).policies.find(({ policy }) => policy === 'day')).toMatchObject({ remaining: 0 })
})

test('a leaky queue gives each its time, and refuses what would start too late without a place', async () => {
  const [one] = limitersOf(leakyQueue({ limit: 10, window: '1s', capacity: 10 }))
  const decisions = await Promise.all(times(5, () => one.wait('k', { maxWaitMs: 350 })))
  expect(decisions.map((decision) => decision.allowed)).toEqual([true, true, true, false, false])
  expect(await one.wait('k', { maxWaitMs: 50 })).toMatchObject({ reason: 'impossible', retryAfterMs: Infinity })
})

test('takeUpTo is one trip for any stack; settle is one per policy', async () => {
  const limiter = createLimiter(
    { log: slow, day: fixedWindow({ limit: 7, window: '1000d' }) },
    { name: 'stack', store: stores[0] as RemoteStore, onStoreFailure: 'closed' },
  )
  const keys = { log: 'k', day: 'k' }
  const before = await trips(server)
  const decision = await limiter.takeUpTo(keys, 100)
  expect(decision).toMatchObject({ allowed: true, charged: 7 })
  expect((await trips(server)) - before).toBe(1)
  expect(await limiter.takeUpTo(keys, 100)).toMatchObject({ allowed: false, policy: 'day', cost: 1 })
  expect(await limiter.settle(decision, 3)).toBe(4)
  expect(await limiter.takeUpTo(keys, 2)).toMatchObject({ charged: 2 })
  expect(await limiter.takeUpTo(keys, 9)).toMatchObject({ charged: 2 })
})

test('a blocked key is not waited for', async () => {
  const [one] = limitersOf(slow)
  await one.block('k', '1h')
  expect(await one.wait('k', { maxWaitMs: 100_000_000 })).toMatchObject({ allowed: false, reason: 'blocked' })
  expect(await one.takeUpTo('k', 5)).toMatchObject({ allowed: false, reason: 'blocked', cost: 1 })
})
