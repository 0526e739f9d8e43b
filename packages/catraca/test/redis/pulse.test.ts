import { RedisProcess, startSentinels } from '@catraca/gateway/redis-server'
import { createLimiter, fixedWindow, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { connect, eventually, type Notes, notes, ready, sleep, times } from './support.ts'

const rule = tokenBucket({ limit: 1_000, window: '1000d' })

async function start(): Promise<{ server: RedisProcess; redis: Redis }> {
  const server = await RedisProcess.start()
  onTestFinished(() => server.stop())
  const redis = connect(server.port)
  onTestFinished(() => redis.disconnect())
  await ready(redis)
  return { server, redis }
}

/** A limiter on a store of its own, that has been asked so often. */
async function watch(client: Redis, taken: number): Promise<Notes & { readonly take: () => Promise<unknown> }> {
  const store = redisStore({ client, timeoutMs: 5_000 })
  onTestFinished(() => store.close())
  const noted = notes()
  const limiter = createLimiter(rule, { name: 'api', store, on: noted.on })
  for (let turn = 0; turn < taken; turn++) await limiter.take('k')
  return { ...noted, take: () => limiter.take('k') }
}

test('a first connection, also to a store that others have filled, is no loss', async () => {
  const { server, redis } = await start()
  const first = await watch(redis, 1)
  const other = connect(server.port)
  onTestFinished(() => other.disconnect())
  const second = await watch(other, 1)
  await sleep(1_200)
  expect([...first.told, ...second.told]).toEqual([])
})

test('a restart without memory is told, with what was charged since the store was last known', async () => {
  const { server, redis } = await start()
  const { of } = await watch(redis, 7)
  await server.restart()
  await eventually('the loss is told', () => of('store.lost').length > 0)
  expect(of('store.lost')).toEqual([{ name: 'store.lost', kind: 'restart', decisionsAtRisk: 7 }])
})

test('a restart is told once to each of two limiters of a store', async () => {
  const { server, redis } = await start()
  const store = redisStore({ client: redis, timeoutMs: 5_000 })
  onTestFinished(() => store.close())
  const told = times(2, () => notes())
  const limiters = told.map(({ on }, index) => createLimiter(rule, { name: `l${index}`, store, on }))
  for (const limiter of limiters) await limiter.take('k')
  await server.restart()
  await eventually('both are told', () => told.every(({ of }) => of('store.lost').length > 0))
  await sleep(1_200)
  expect(told.map(({ of }) => of('store.lost').length)).toEqual([1, 1])
})

test('FLUSHALL is a flush', async () => {
  const { redis } = await start()
  const { of, take } = await watch(redis, 3)
  // The next reading knows that the three are there.
  await sleep(1_200)
  await take()
  await redis.flushall()
  await eventually('the loss is told', () => of('store.lost').length > 0)
  expect(of('store.lost').map(({ kind }) => kind)).toEqual(['flush'])
  expect(of('store.lost')[0]?.decisionsAtRisk).toBeLessThanOrEqual(1)
})

test('acceptance 92: a failover is told; what the replica did not have may be admitted again, no more', {
  timeout: 60_000,
}, async () => {
  const group = await startSentinels()
  onTestFinished(() => group.stop())
  const sentinels = group.sentinels.map((port) => ({ host: '127.0.0.1', port }))
  const client = new Redis({ name: group.name, sentinels, retryStrategy: () => 50 })
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  await ready(client)
  const store = redisStore({ client, timeoutMs: 2_000 })
  onTestFinished(() => store.close())
  const { of, on } = notes()
  const limit = 50
  const limiter = createLimiter(fixedWindow({ limit, window: '1000d' }), {
    name: 'api',
    store,
    on,
    onStoreFailure: 'closed',
  })
  for (let turn = 0; turn < 30; turn++) expect((await limiter.take('k')).allowed).toBe(true)
  expect(await client.wait(1, 5_000)).toBe(1)
  // From here on the replica hears nothing: the last 10 are lost with the primary.
  group.replica.pause()
  for (let turn = 0; turn < 10; turn++) expect((await limiter.take('k')).allowed).toBe(true)
  await group.primary.kill()
  group.replica.resume()
  let admitted = 40
  await eventually(
    'the replica decides',
    async () => {
      const decision = await limiter.take('k')
      if (decision.allowed) admitted++
      return !decision.degraded
    },
    40_000,
  )
  for (let turn = 0; turn < 2 * limit; turn++) if ((await limiter.take('k')).allowed) admitted++
  expect(admitted).toBeGreaterThanOrEqual(limit)
  expect(admitted).toBeLessThanOrEqual(limit + 10)
  await eventually('the failover is told', () => of('store.lost').length > 0)
  expect(of('store.lost').map(({ kind }) => kind)).toEqual(['failover'])
  expect(of('degraded').length).toBe(1)
})

test('what the store writes for itself lives an hour at most', async () => {
  const { redis } = await start()
  await watch(redis, 1)
  await eventually('both are there', async () => (await redis.keys('*{catraca}*')).length === 2)
  for (const key of await redis.keys('*{catraca}*')) {
    const life = await redis.pttl(key)
    expect(life).toBeGreaterThan(3_000_000)
    expect(life).toBeLessThanOrEqual(3_600_000)
  }
})

test('`live` counts the stores on a server, and keeps the count while it is gone', async () => {
  const { server, redis } = await start()
  const clients = [redis, connect(server.port), connect(server.port)]
  for (const client of clients.slice(1)) onTestFinished(() => client.disconnect())
  const limiters = clients.map((client) => {
    const store = redisStore({ client, timeoutMs: 2_000 })
    onTestFinished(() => store.close())
    return createLimiter(fixedWindow({ limit: 90, window: '1000d' }), {
      name: 'api',
      store,
      storeFailure: { expectedInstances: 'live' },
    })
  })
  for (const limiter of limiters) expect((await limiter.take('k')).limit).toBe(90)
  // The first one hears of the third at its next reading.
  await sleep(1_300)
  for (const limiter of limiters) await limiter.take('k')
  await server.kill()
  for (const limiter of limiters) {
    const decision = await limiter.take('k')
    expect([decision.degraded, decision.limit]).toEqual([true, 30])
  }
  const decisions = await Promise.all(times(40, async () => limiters[0]?.take('k')))
  expect(decisions.filter((one) => one?.allowed).length).toBe(29)
})
