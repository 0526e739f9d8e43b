import type { RedisProcess } from '@catraca/gateway/redis-server'
import {
  concurrency,
  type EventName,
  type Events,
  fixedWindow,
  gcra,
  type Listeners,
  leakyMeter,
  leakyQueue,
  quota,
  type Rule,
  type SharedLimiter,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { type ClusterOptions, type Redis, Cluster as TypedCluster, Redis as TypedRedis } from 'ioredis'

/** Every rule with so long a window that none ends during a test. */
export function rulesOf(limit: number): Record<string, Rule> {
  const window = '1000d'
  return {
    fixed: fixedWindow({ limit, window }),
    first: fixedWindow({ limit, window, anchor: 'first' }),
    offset: fixedWindow({ limit, window, offset: '1.5h' }),
    spread: fixedWindow({ limit, window, offset: 'key' }),
    log: slidingLog({ limit, window }),
    counter: slidingCounter({ limit, window }),
    parts: slidingCounter({ limit, window, subWindows: 5 }),
    bucket: tokenBucket({ limit, window }),
    gcra: gcra({ limit, window }),
    meter: leakyMeter({ limit, window }),
    queue: leakyQueue({ limit, window, capacity: limit }),
    quota: quota({ limit, period: 'year' }),
    permits: concurrency({ limit, permitTtl: '1h' }),
  }
}

export type AnyLimiter = SharedLimiter<Rule>
export type Told = { [Name in EventName]: { readonly name: Name } & Events[Name] }[EventName]

export interface Notes {
  readonly told: Told[]
  readonly on: Listeners
  /** What was told by one name. */
  readonly of: <Name extends EventName>(name: Name) => Extract<Told, { name: Name }>[]
}

/** Listeners that note what they are told, without decisions. */
export function notes(): Notes {
  const told: Told[] = []
  const names = ['degraded', 'recovered', 'store.fault', 'store.lost', 'loop.paused', 'clock.step'] as const
  const listeners = names.map((name) => [name, (event: object) => told.push({ name, ...event } as Told)])
  return {
    told,
    on: Object.fromEntries(listeners) as Listeners,
    of: <N extends EventName>(name: N) => told.filter((one) => one.name === name) as Extract<Told, { name: N }>[],
  }
}

interface ClientOptions {
  readonly db?: number
  readonly password?: string
  readonly lazyConnect?: boolean
  readonly retryStrategy?: () => number
}

/** A client that connects again soon, and keeps to itself what happens to its connections. */
export function connect(port: number, options: ClientOptions = {}): Redis {
  const redis = new TypedRedis({ host: '127.0.0.1', port, retryStrategy: () => 50, ...options })
  redis.on('error', () => {})
  return redis
}

export function connectCluster(nodes: readonly RedisProcess[], options: ClusterOptions = {}): TypedCluster {
  const cluster = new TypedCluster(
    nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
    options as ConstructorParameters<typeof TypedCluster>[1] & object,
  )
  cluster.on('error', () => {})
  return cluster
}

export function ready(client: { status: string; once(event: 'ready', then: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => {
    if (client.status === 'ready') resolve()
    else client.once('ready', () => resolve())
  })
}

/** How often the server ran each command, those inside scripts too. */
export async function commandCounts(server: RedisProcess): Promise<Record<string, number>> {
  const text = String(await server.command('INFO', 'commandstats'))
  return Object.fromEntries(
    [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, n]) => [name, Number(n)]),
  )
}

/** Script calls that the server took, without the readings of the pulse, which alone use a sorted set. */
export async function trips(...servers: RedisProcess[]): Promise<number> {
  const counts = await Promise.all(servers.map(commandCounts))
  return counts.reduce((sum, { evalsha = 0, eval: whole = 0, zcard = 0 }) => sum + evalsha + whole - zcard, 0)
}

/** All keys of a server with their lives in ms, without those of the store as a whole. */
export async function lives(redis: Redis): Promise<Map<string, number>> {
  const keys = (await redis.keys('*')).filter((key) => !key.includes('{catraca}'))
  const found = await Promise.all(keys.map(async (key) => [key, await redis.pttl(key)] as const))
  return new Map(found)
}

export async function eventually(
  what: string,
  holds: () => Promise<boolean> | boolean,
  limitMs = 15_000,
): Promise<void> {
  const until = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`${what}: not within ${limitMs} ms`)
    await sleep(10)
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}
