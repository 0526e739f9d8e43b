import { type RedisCluster, RedisProcess, startCluster } from '@catraca/gateway/redis-server'
import { createLimiter, fixedWindow, type Rule, slidingLog, tokenBucket } from 'catraca'
import { type RedisClient, redisStore } from 'catraca/redis'
import * as ioredis6 from 'ioredis'
import * as ioredis5 from 'ioredis-5'
import * as iovalkey from 'iovalkey'
import * as redis6 from 'redis'
import * as redis5 from 'redis-5'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { KeyNames } from '../../src/stores/redis/keys.ts'
import type { RemoteStore } from '../../src/stores/remote.ts'
import { commandCounts, eventually, notes, rulesOf, times, trips } from './support.ts'

let server: RedisProcess
let cluster: RedisCluster

beforeAll(async () => {
  ;[server, cluster] = await Promise.all([RedisProcess.start(), startCluster()])
}, 60_000)

afterAll(async () => {
  await server.stop()
  await cluster.stop()
})

interface Connected {
  readonly client: RedisClient
  readonly close: () => unknown
}

interface Library {
  readonly servers: () => readonly RedisProcess[]
  connect(): Promise<Connected>
}

type OfIoredis = {
  Redis: new (port: number, host: string) => { disconnect(): void; on(event: 'error', then: () => void): unknown }
  Cluster: new (nodes: { host: string; port: number }[]) => ReturnType<() => InstanceType<OfIoredis['Redis']>>
}
type OfNodeRedis = {
  readonly createClient: (options: object) => NodeRedis
  readonly createCluster: (options: object) => NodeRedis
}
type NodeRedis = {
  connect(): Promise<unknown>
  destroy(): unknown
  on(event: 'error', then: () => void): unknown
}

const single = (): readonly RedisProcess[] => [server]
const nodes = (): readonly RedisProcess[] => cluster.nodes
const addresses = (): { host: string; port: number }[] => nodes().map(({ port }) => ({ host: '127.0.0.1', port }))

function ioredis(library: unknown): Record<'alone' | 'cluster', Library> {
  const { Redis, Cluster } = library as OfIoredis
  const connected = (client: InstanceType<OfIoredis['Redis']>): Connected => {
    client.on('error', () => {})
    return { client: client as unknown as RedisClient, close: () => client.disconnect() }
  }
  return {
    alone: { servers: single, connect: async () => connected(new Redis(server.port, '127.0.0.1')) },
    cluster: { servers: nodes, connect: async () => connected(new Cluster(addresses())) },
  }
}

function nodeRedis(library: unknown): Record<'alone' | 'cluster', Library> {
  const { createClient, createCluster } = library as OfNodeRedis
  const connected = async (client: NodeRedis): Promise<Connected> => {
    client.on('error', () => {})
    await client.connect()
    return { client: client as unknown as RedisClient, close: () => client.destroy() }
  }
  const rootNodes = (): { url: string }[] => nodes().map(({ url }) => ({ url }))
  return {
    alone: { servers: single, connect: () => connected(createClient({ url: server.url })) },
    cluster: { servers: nodes, connect: () => connected(createCluster({ rootNodes: rootNodes() })) },
  }
}

const families = {
  'ioredis 6': ioredis(ioredis6),
  'ioredis 5': ioredis(ioredis5),
  iovalkey: ioredis(iovalkey),
  'node-redis 6': nodeRedis(redis6),
  'node-redis 5': nodeRedis(redis5),
}
const all = Object.entries(families).flatMap(([name, { alone, cluster: many }]): [string, Library][] => [
  [name, alone],
  [`cluster of ${name}`, many],
])

let store: RemoteStore | undefined

afterEach(async () => {
  store?.close()
  await Promise.all([server, ...cluster.nodes].map((node) => node.command('FLUSHALL')))
})

async function open(library: Library): Promise<RemoteStore> {
  const { client, close } = await library.connect()
  onTestFinished(() => void close())
  store = redisStore({ client, timeoutMs: 5_000 })
  return store
}

describe.each(all)('%s', (_, library) => {
  test('every rule: taken, refused, peeked at, refunded, reset, blocked, unblocked', async () => {
    const shared = await open(library)
    for (const [name, rule] of Object.entries(rulesOf(3))) {
      const limiter = createLimiter(rule, { name, store: shared, onStoreFailure: 'closed' })
      const taken = []
      for (let turn = 0; turn < 4; turn++) taken.push(await limiter.take('k'))
      const first = taken[0] as (typeof taken)[number]
      expect([name, ...taken.map(({ allowed, remaining }) => [allowed, remaining])]).toEqual([
        name,
        [true, 2],
        [true, 1],
        [true, 0],
        [false, 0],
      ])
      expect(taken.some(({ degraded }) => degraded)).toBe(false)
      // Of a queue only the last place can be given back.
      const last = taken[2] as (typeof taken)[number]
      expect(await limiter.refund(last)).toBe(1)
      expect((await limiter.peek('k')).remaining).toBe(1)
      if (rule.holds) {
        expect(await limiter.renew(first)).toBe(true)
        await limiter.release(first)
        expect(await limiter.renew(first)).toBe(false)
        expect((await limiter.peek('k')).remaining).toBe(2)
      }
      await limiter.block('k', '1h')
      const blocked = await limiter.take('k')
      expect([blocked.allowed, blocked.reason, blocked.degraded]).toEqual([false, 'blocked', false])
      await limiter.unblock('k')
      expect((await limiter.take('k')).allowed).toBe(true)
      await limiter.reset('k')
      expect((await limiter.peek('k')).remaining).toBe(3)
      expect((await limiter.take('k', { cost: 4 })).reason).toBe('impossible')
    }
  })

  test('acceptance 66: a decision is one round trip, also of three policies', async () => {
    const shared = await open(library)
    const window = '1000d'
    const rules = {
      tenant: fixedWindow({ limit: 100, window }),
      user: tokenBucket({ limit: 100, window }),
      route: slidingLog({ limit: 100, window }),
    }
    const limiter = createLimiter(rules, { name: 'stack', store: shared, tag: 'tenant', onStoreFailure: 'closed' })
    const keys = { tenant: 't', user: 'u', route: 'r' }
    await limiter.take(keys)
    const before = await trips(...library.servers())
    for (let turn = 0; turn < 20; turn++)
      expect(await limiter.take(keys)).toMatchObject({ allowed: true, degraded: false })
    const spent = (await trips(...library.servers())) - before
    expect(spent).toBe(20)
  })

  test('200 calls at once are exact', async () => {
    const shared = await open(library)
    const rule = tokenBucket({ limit: 50, window: '1000d' })
    const limiter = createLimiter(rule, { name: 'many', store: shared, onStoreFailure: 'closed' })
    const decisions = await Promise.all(times(200, () => limiter.take('k')))
    expect(decisions.filter(({ allowed }) => allowed).length).toBe(50)
    expect(decisions.filter(({ degraded }) => degraded).length).toBe(0)
  })

  test('a script that was forgotten is sent again', async () => {
    const shared = await open(library)
    const rule = fixedWindow({ limit: 50, window: '1000d' })
    const limiter = createLimiter(rule, { name: 'forgotten', store: shared, onStoreFailure: 'closed' })
    await limiter.take('k')
    await Promise.all(library.servers().map((node) => node.command('SCRIPT', 'FLUSH')))
    expect(await limiter.take('k')).toMatchObject({ allowed: true, degraded: false, remaining: 48 })
  })
})

describe('node-redis 6', () => {
  test.each(['alone', 'cluster'] as const)('%s: no timer per command is armed for a decision', async (which) => {
    const library = families['node-redis 6'][which]
    const shared = await open(library)
    const limiter = createLimiter(rulesOf(100)['bucket'] as Rule, { name: 'timers', store: shared })
    await limiter.take('k')
    const armed = vi.spyOn(AbortSignal, 'timeout')
    onTestFinished(() => armed.mockRestore())
    await Promise.all(times(20, () => limiter.take('k')))
    expect(armed).not.toHaveBeenCalled()
  })
})

describe.each(['node-redis 6', 'node-redis 5'] as const)('%s: batches', (name) => {
  const library = families[name].alone
  const rule = tokenBucket({ limit: 1_000, window: '1000d' })

  async function calls(): Promise<number> {
    const { evalsha = 0, eval: whole = 0, zcard = 0 } = await commandCounts(server)
    return evalsha + whole - zcard
  }

  test('the questions of one turn travel as the first and two halves, 64 to a call at most', async () => {
    const shared = await open(library)
    const limiter = createLimiter(rule, { name: 'batch', store: shared, onStoreFailure: 'closed' })
    await Promise.all(times(3, () => limiter.take('warm')))
    for (const [count, most] of [
      [2, 2],
      [8, 2],
      [64, 3],
      [129, 3],
      [200, 5],
    ] as const) {
      const before = await calls()
      const decisions = await Promise.all(times(count, (index) => limiter.take(`k${index % 7}`)))
      expect(decisions.every(({ allowed, degraded }) => allowed && !degraded)).toBe(true)
      expect((await calls()) - before).toBeLessThanOrEqual(most)
    }
  })

  test('a key that is unfit fails alone', async () => {
    const shared = await open(library)
    const { of, on } = notes()
    const limiter = createLimiter(rule, { name: 'unfit', store: shared, on, onStoreFailure: 'closed' })
    await server.command('RPUSH', new KeyNames('catraca', 'unfit', 'unfit').nameOf('k7', undefined), 'x')
    const decisions = await Promise.all(times(40, (index) => limiter.take(`k${index}`)))
    expect(decisions.flatMap(({ degraded }, index) => (degraded ? [index] : []))).toEqual([7])
    expect(decisions.filter(({ allowed }) => allowed).length).toBe(39)
    expect(of('store.fault').map(({ key }) => key)).toEqual(['k7'])
    expect(limiter.health).toBe('healthy')
  })

  test('a batch that finds no script, and one that finds no server', async () => {
    const shared = await open(library)
    const { on, told } = notes()
    const limiter = createLimiter(rule, { name: 'lost', store: shared, on, onStoreFailure: 'closed' })
    await Promise.all(times(10, () => limiter.take('k')))
    await server.command('SCRIPT', 'FLUSH')
    const again = await Promise.all(times(10, () => limiter.take('k')))
    expect(again.every(({ allowed }) => allowed)).toBe(true)
    expect((await limiter.peek('k')).remaining).toBe(980)
    expect(told).toEqual([])
    await server.kill()
    const none = await Promise.all(times(10, () => limiter.take('k')))
    expect(none.every(({ degraded, allowed }) => degraded && !allowed)).toBe(true)
    await server.restart()
    await eventually('the store decides again', () => limiter.health === 'healthy')
    expect((await limiter.take('k')).degraded).toBe(false)
  })
})
