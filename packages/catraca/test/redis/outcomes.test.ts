import { mkdirSync, rmdirSync } from 'node:fs'
import { FaultProxy, RedisProcess, startSentinels } from '@catraca/gateway/redis-server'
import { createLimiter, type Decision, fixedWindow } from 'catraca'
import { type RedisStoreOptions, redisStore } from 'catraca/redis'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type AnyLimiter, connect, eventually, notes, ready, sleep, times, trips } from './support.ts'

const rule = fixedWindow({ limit: 1_000, window: '1000d' })
const escaped: unknown[] = []
const escape = (reason: unknown): void => void escaped.push(reason)

beforeAll(() => {
  process.on('unhandledRejection', escape)
})

afterAll(() => {
  process.off('unhandledRejection', escape)
  expect(escaped).toEqual([])
})

interface Pair {
  readonly closed: AnyLimiter
  readonly local: AnyLimiter
  readonly notes: ReturnType<typeof notes>
}

/** Two limiters on one store that differ in what decides without it. */
function pair(options: RedisStoreOptions): Pair {
  const store = redisStore(options)
  onTestFinished(() => store.close())
  const noted = notes()
  const storeFailure = { expectedInstances: 10 }
  return {
    closed: createLimiter(rule, { name: 'closed', store, onStoreFailure: 'closed', on: noted.on, storeFailure }),
    local: createLimiter(rule, { name: 'local', store, onStoreFailure: 'local', storeFailure }),
    notes: noted,
  }
}

function show({ allowed, degraded, reason, limit }: Decision): unknown[] {
  return [allowed, degraded, reason, limit]
}

const byStore = [true, false, 'ok', 1_000]
const byClosed = [false, true, 'store-closed', 1_000]
/** This instance's tenth of the limit. */
const byLocal = [true, true, 'ok', 100]

async function decides({ closed, local }: Pair): Promise<unknown[][]> {
  const [one, other] = await Promise.all([closed.take('k'), local.take('k')])
  return [show(one), show(other)]
}

/** The modes decide now, and the store again after what was wrong was put right. */
async function outage(both: Pair, repair: () => Promise<unknown>): Promise<void> {
  expect(await decides(both)).toEqual([byClosed, byLocal])
  expect(both.closed.health).not.toBe('healthy')
  await repair()
  await eventually('the store decides again', () => both.closed.health === 'healthy')
  expect(await decides(both)).toEqual([byStore, byStore])
  expect(both.notes.of('degraded').length).toBe(1)
  expect(both.notes.of('recovered').length).toBe(1)
  expect(both.notes.of('store.fault')).toEqual([])
}

describe('a server that answers and cannot serve: the mode decides, and the store again as soon as it can', () => {
  let server: RedisProcess
  let redis: Redis

  beforeEach(async () => {
    server = await RedisProcess.start()
    redis = connect(server.port)
    await ready(redis)
  })

  afterEach(async () => {
    redis.disconnect()
    await server.stop()
  })

  async function healthy(options: Partial<RedisStoreOptions> = {}): Promise<Pair> {
    const both = pair({ client: redis, timeoutMs: 5_000, ...options })
    expect(await decides(both)).toEqual([byStore, byStore])
    return both
  }

  test('OOM: no memory and nothing that may go', async () => {
    const both = await healthy()
    await redis.config('SET', 'maxmemory', '1')
    await outage(both, () => redis.config('SET', 'maxmemory', '0'))
  })

  test('MISCONF: it takes no writes because it cannot save', async () => {
    const both = await healthy()
    // A folder stands where the file would go.
    await redis.config('SET', 'save', '1 1')
    const [, dir = ''] = await redis.config('GET', 'dir')
    mkdirSync(`${dir}/dump.rdb`)
    await redis.bgsave().catch(() => {})
    await eventually('a save has failed', async () =>
      /rdb_last_bgsave_status:err/.test(await redis.info('persistence')),
    )
    await outage(both, async () => {
      rmdirSync(`${dir}/dump.rdb`)
      await redis.config('SET', 'save', '')
    })
  })

  test('NOREPLICAS: it takes no writes without a replica', async () => {
    const both = await healthy()
    await redis.config('SET', 'min-replicas-to-write', '1')
    await outage(both, () => redis.config('SET', 'min-replicas-to-write', '0'))
  })

  test('BUSY: another script runs for too long', async () => {
    const both = await healthy()
    await redis.config('SET', 'busy-reply-threshold', '1')
    const other = connect(server.port)
    onTestFinished(() => other.disconnect())
    const endless = other.eval('while true do end', 0).catch(() => {})
    await sleep(100)
    await outage(both, async () => {
      await redis.script('KILL')
      await endless
    })
  })

  test('READONLY: it is a replica now, and no client finds another primary', async () => {
    const both = await healthy()
    // Of itself: it stays a replica without a primary.
    await redis.replicaof('127.0.0.1', server.port)
    await outage(both, () => server.command('REPLICAOF', 'NO', 'ONE'))
  })

  test('NOPERM and NOAUTH: it knows the client no more', async () => {
    const both = await healthy()
    await server.command('ACL', 'SETUSER', 'admin', 'on', 'nopass', '~*', '&*', '+@all')
    await redis.call('AUTH', 'admin', 'x')
    const second = connect(server.port)
    onTestFinished(() => second.disconnect())
    await second.call('AUTH', 'admin', 'x')
    await redis.call('ACL', 'SETUSER', 'admin', '-evalsha', '-eval')
    await outage(both, () => second.call('ACL', 'SETUSER', 'admin', '+@all'))
  })

  test('NOSCRIPT: a forgotten script is sent whole, once, and nobody notices', async () => {
    const both = await healthy()
    await redis.script('FLUSH')
    await redis.config('RESETSTAT')
    expect(await decides(both)).toEqual([byStore, byStore])
    const taken = await both.closed.take('k')
    expect([taken.degraded, taken.remaining]).toEqual([false, 997])
    await redis.script('FLUSH')
    expect(await both.closed.refund(taken)).toBe(1)
    expect(await both.closed.peek('k')).toMatchObject({ degraded: false, remaining: 998 })
    const texts = [...String(await server.command('INFO', 'commandstats')).matchAll(/cmdstat_eval:calls=(\d+)/g)]
    await redis.config('RESETSTAT')
    for (let turn = 0; turn < 20; turn++) await both.closed.take('k')
    const stats = String(await server.command('INFO', 'commandstats'))
    // Later calls find it; of the pulse one text may still be on its way.
    expect(Number(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1] ?? 0)).toBeLessThanOrEqual(1)
    expect(texts.length).toBe(1)
    expect(both.notes.told).toEqual([])
  })

  test('400 questions at once of which none finds the script are counted once each', async () => {
    const both = await healthy()
    await redis.script('FLUSH')
    const all = await Promise.all(times(400, () => both.closed.take('many')))
    expect(all.every(({ allowed, degraded }) => allowed && !degraded)).toBe(true)
    expect((await both.closed.peek('many')).remaining).toBe(600)
  })

  test('a paused one: after the deadline, five times, then at once; and the store again when it goes on', async () => {
    const both = await healthy({ timeoutMs: 100 })
    server.pause()
    const began = performance.now()
    for (let turn = 0; turn < 5; turn++) expect(show(await both.closed.take('k'))).toEqual(byClosed)
    const slowMs = performance.now() - began
    expect(slowMs).toBeGreaterThan(400)
    const quick = performance.now()
    for (let turn = 0; turn < 200; turn++) await both.local.take('k')
    // Nothing waits for the deadline any more: 200 of them would be 20 s.
    expect(performance.now() - quick).toBeLessThan(2_000)
    expect(both.local.tryTake('k')).toMatchObject({ degraded: true })
    server.resume()
    await eventually('the store decides again', () => both.closed.health === 'healthy')
    expect(await decides(both)).toEqual([byStore, byStore])
    expect([both.notes.of('degraded').length, both.notes.of('recovered').length]).toEqual([1, 1])
    expect(both.notes.of('recovered')[0]?.decisions).toBe(5)
  })

  test('acceptance 155: a store that answers 2 s late is like a dead one', async () => {
    const proxy = await FaultProxy.start(server.port)
    onTestFinished(() => proxy.close())
    const client = connect(proxy.port)
    onTestFinished(() => client.disconnect())
    await ready(client)
    const both = await healthy({ client, timeoutMs: 100 })
    await proxy.set({ delayMs: 2_000 })
    const waits: number[] = []
    for (let turn = 0; turn < 8; turn++) {
      const began = performance.now()
      expect(show(await both.closed.take('k'))).toEqual(byClosed)
      waits.push(performance.now() - began)
    }
    // Five timeouts open the breaker; none waits much longer than the timeout, the others not at all.
    expect(waits.slice(0, 5).every((ms) => ms > 80 && ms < 1_000)).toBe(true)
    expect(waits.slice(5).every((ms) => ms < 80)).toBe(true)
    expect(both.closed.health).not.toBe('healthy')
    await proxy.set('pass')
    await eventually('a trial call closes it', () => both.closed.health === 'healthy')
    expect(await decides(both)).toEqual([byStore, byStore])
  })

  test('one that is killed and comes back without its memory; nothing waits in the client meanwhile', async () => {
    const both = await healthy()
    await server.kill()
    for (let turn = 0; turn < 50; turn++) expect(await decides(both)).toEqual([byClosed, byLocal])
    await server.restart()
    await eventually('the store decides again', () => both.closed.health === 'healthy')
    // 50 decisions of each limiter were made without it: had they been queued, it would have them now.
    const seen = await trips(server)
    expect(seen).toBeLessThan(10)
    expect(await both.closed.peek('k')).toMatchObject({ degraded: false, remaining: 1_000 })
    expect(both.notes.of('recovered')[0]?.decisions).toBe(50)
    expect(both.notes.of('degraded').length).toBe(1)
  })

  test.each(['reset', 'blackhole', 'refuse'] as const)('a network that turns to %s and back', async (mode) => {
    const proxy = await FaultProxy.start(server.port)
    onTestFinished(() => proxy.close())
    const client = connect(proxy.port)
    onTestFinished(() => client.disconnect())
    await ready(client)
    const both = await healthy({ client, timeoutMs: 200 })
    await proxy.set(mode)
    await outage(both, () => proxy.set('pass'))
  })
})

describe('LOADING: a server that reads its file', () => {
  test('the mode decides, and the store as soon as it is read', async () => {
    const server = await RedisProcess.start({ args: ['--save', '3600 1', '--enable-debug-command', 'yes'] })
    onTestFinished(() => server.stop())
    const redis = connect(server.port)
    onTestFinished(() => redis.disconnect())
    await ready(redis)
    const both = pair({ client: redis, timeoutMs: 5_000 })
    expect(await decides(both)).toEqual([byStore, byStore])
    await redis.eval("for i = 1, 3000 do redis.call('SET', 'k' .. i, string.rep('x', 1000)) end", 0)
    // 1 ms for each key that is read, and the server looks at its clients every few KB.
    await redis.config('SET', 'key-load-delay', '1000')
    await redis.config('SET', 'loading-process-events-interval-bytes', '4096')
    const loading = server.command('DEBUG', 'RELOAD').catch(() => {})
    await eventually('it reads', async () => /loading:1/.test(await redis.info('persistence')))
    await outage(both, async () => {
      await redis.config('SET', 'key-load-delay', '0')
      await loading
    })
  })
})

describe('a client that connects for the first time', () => {
  const patient = { retryStrategy: () => 20 }

  test('a store that comes within the deadline decides', async () => {
    const server = await RedisProcess.start()
    onTestFinished(() => server.stop())
    for (const lazyConnect of [false, true]) {
      const client = connect(server.port, { ...patient, lazyConnect })
      onTestFinished(() => client.disconnect())
      expect(await decides(pair({ client, timeoutMs: 5_000 }))).toEqual([byStore, byStore])
    }
  })

  test('one that refuses connections does not: the mode decides, and the store once it is there', async () => {
    const server = await RedisProcess.start()
    onTestFinished(() => server.stop())
    await server.kill()
    const client = connect(server.port, patient)
    onTestFinished(() => client.disconnect())
    const both = pair({ client, timeoutMs: 200 })
    for (let turn = 0; turn < 20; turn++) expect(await decides(both)).toEqual([byClosed, byLocal])
    await server.restart()
    await eventually('the store decides', () => both.closed.health === 'healthy')
    expect(await trips(server)).toBeLessThan(10)
    expect(await decides(both)).toEqual([byStore, byStore])
  })

  test('a wrong password: the mode decides', async () => {
    const server = await RedisProcess.start()
    onTestFinished(() => server.stop())
    await server.command('CONFIG', 'SET', 'requirepass', 'right')
    const wrong = connect(server.port, { ...patient, password: 'wrong' })
    const none = connect(server.port, patient)
    const right = connect(server.port, { ...patient, password: 'right' })
    for (const client of [wrong, none, right]) onTestFinished(() => client.disconnect())
    expect(await decides(pair({ client: wrong, timeoutMs: 500 }))).toEqual([byClosed, byLocal])
    expect(await decides(pair({ client: none, timeoutMs: 500 }))).toEqual([byClosed, byLocal])
    expect(await decides(pair({ client: right, timeoutMs: 5_000 }))).toEqual([byStore, byStore])
  })

  test('a client that the application has closed: the mode decides at once', async () => {
    const server = await RedisProcess.start()
    onTestFinished(() => server.stop())
    const client = connect(server.port)
    await ready(client)
    const both = pair({ client, timeoutMs: 30_000 })
    expect(await decides(both)).toEqual([byStore, byStore])
    client.disconnect()
    expect(await decides(both)).toEqual([byClosed, byLocal])
  })
})

test('sentinels name a new primary: ioredis finds it, and the store decides on', { timeout: 60_000 }, async () => {
  const group = await startSentinels()
  onTestFinished(() => group.stop())
  const sentinels = group.sentinels.map((port) => ({ host: '127.0.0.1', port }))
  const client = new Redis({ name: group.name, sentinels, retryStrategy: () => 50 })
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  await ready(client)
  const both = pair({ client, timeoutMs: 2_000 })
  for (let turn = 0; turn < 10; turn++) expect(await decides(both)).toEqual([byStore, byStore])
  expect(await client.wait(1, 5_000)).toBe(1)
  await group.failover()
  await eventually('the new primary decides', async () => !(await both.closed.take('k')).degraded)
  expect(await both.closed.peek('k')).toMatchObject({ degraded: false })
  const { remaining } = await both.closed.peek('k')
  expect(remaining).toBeLessThan(990)
})
