import { Agent, get } from 'node:http'
import { fixedWindow, slidingLog } from 'catraca'
import { leaseBounds } from 'catraca/policy'
import { startEdges, startUpstream } from './edges.ts'
import { RedisProcess } from './redis-process.ts'

/** What came of one policy. */
export interface LeaseVerdict {
  readonly policy: string
  readonly admitted: number
  /** The limit, less what other edges may hold while one refuses. */
  readonly atLeast: number
  /** The limit, and what leases may add. */
  readonly atMost: number
  readonly good: boolean
}

/** What came of the drill. */
export interface LeaseResult {
  readonly verdicts: readonly LeaseVerdict[]
  readonly asked: number
  /** Calls to the store, those included that look whether it is still the same. */
  readonly calls: number
  readonly good: boolean
}

export const leaseBlock = 20
export const leaseLimit = 1_000
/** Requests for each policy for each unit of its limit. */
const excess = 1.5
const concurrent = 48
const rate = { limit: leaseLimit, window: '1m' } as const
/** A rule whose leases are kept, and one whose leases end with its window. */
const rules = {
  'sliding-log': { entry: { algorithm: 'sliding-log', ...rate }, rule: slidingLog(rate) },
  'fixed-window': { entry: { algorithm: 'fixed-window', ...rate, anchor: 'first' }, rule: fixedWindow(rate) },
}

/**
 * Edges, each in a process of its own, share limits of 1000 per minute over a Redis and hold blocks of up to 20 units; half
 * as many requests more than the limit come to all of them. Starts everything it needs, on free ports, and ends it.
 */
export async function runLeaseDrill(edges: number, signal?: AbortSignal): Promise<LeaseResult> {
  const ends: (() => unknown)[] = []
  const agent = new Agent({ keepAlive: true, maxSockets: concurrent })
  ends.push(() => agent.destroy())
  try {
    const redis = await RedisProcess.start()
    ends.push(() => redis.stop())
    const upstream = await startUpstream(ends)
    const urls = await startEdges(edges, documentOf(redis.url, upstream, edges), ends)
    const each = Math.ceil((leaseLimit * excess) / edges)
    const admitted = new Map<string, number>()
    const names = Object.keys(rules)
    const requests = Array.from({ length: each * edges * names.length }, (_, index) => ({
      name: names[index % names.length] as string,
      edge: urls[Math.floor(index / names.length) % edges] as string,
    }))
    let next = 0
    const caller = async (): Promise<void> => {
      for (let one = requests[next++]; one !== undefined; one = requests[next++]) {
        signal?.throwIfAborted()
        const { name, edge } = one
        if ((await statusOf(`${edge}/${name}`, agent)) === 200) admitted.set(name, (admitted.get(name) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: concurrent }, caller))
    const calls = callsIn(String(await redis.command('INFO', 'commandstats')))
    const verdicts = Object.entries(rules).map(([policy, { rule }]): LeaseVerdict => {
      const { over, under } = leaseBounds(rule, { block: leaseBlock }, edges)
      const [atLeast, atMost, count] = [leaseLimit - under, leaseLimit + over, admitted.get(policy) ?? 0]
      return { policy, admitted: count, atLeast, atMost, good: count >= atLeast && count <= atMost }
    })
    return { verdicts, asked: requests.length / names.length, calls, good: verdicts.every(({ good }) => good) }
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

function documentOf(redis: string, upstream: string, edges: number): unknown {
  const policies = Object.entries(rules).map(([name, { entry }]) => [
    name,
    { match: { routes: [`GET /${name}`] }, per: 'service', rule: entry, lease: { block: leaseBlock } },
  ])
  return {
    version: 1,
    trust: { proxies: 0 },
    listen: { port: 0, host: '127.0.0.1' },
    // The drill shares its processors with all its edges.
    store: { redis, timeout: '2s' },
    storeFailure: { expectedInstances: edges },
    upstreams: { service: upstream },
    log: 'off',
    policies: Object.fromEntries(policies),
  }
}

function statusOf(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = get(url, { agent }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode ?? 0))
      response.once('error', reject)
    })
    sent.once('error', reject)
  })
}

function callsIn(stats: string): number {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}
