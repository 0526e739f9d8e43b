import cluster from 'node:cluster'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { GatewayDocument } from '@catraca/config'
import { CatracaError, type Health } from 'catraca'
import { readPolicies } from 'catraca/policy'
import { channelOf, type PrimaryStore, primaryStore } from 'catraca/workers'
import { AdminServer } from '../admin/admin-server.ts'
import { headerSecret } from '../edge/header-identity.ts'
import {
  defaultPort,
  type GatewayStats,
  keepFromStart,
  type ListenOptions,
  policiesOf,
  type StoreStatus,
} from '../gateway.ts'
import { documentOf, type GatewayOptions } from '../options.ts'
import { addressOf } from '../store/redis-client.ts'
import { documentWords } from '../summary.ts'
import { originsIn } from '../upstream/upstreams.ts'
import type { Order } from './messages.ts'
import { Place } from './place.ts'
import { policiesFor, timesWorkers } from './seat.ts'

export interface PoolOptions extends GatewayOptions {
  /** How many processes: 1 to 64. */
  readonly workers: number
  /** The form of the lines for requests. Default: none. */
  readonly log?: 'text' | 'json'
  /** Called with whole lines. */
  readonly print: (lines: string) => void
}

const nothing: GatewayStats = { admitted: 0, refused: 0, failed: 0 }

/**
 * A gateway of several processes that share its port, seen from the command: it starts them, starts again those that
 * end, and speaks for all of them. With a memory store it holds the limits for all; it serves no requests but those of
 * `admin`. When it ends, so do they.
 */
export class Pool {
  private document: GatewayDocument
  private readonly options: PoolOptions
  private readonly places: readonly Place[]
  private readonly memory: PrimaryStore | undefined
  private readonly admin: AdminServer
  private order: Omit<Order, 'document'>
  /** Counts of processes that ended. */
  private past = nothing
  /** True once all processes have listened at the same time. */
  private complete = false
  private closing = false

  /** Does nothing until {@link Pool.listen}. Throws a `CatracaError` for options or a document that is not allowed. */
  constructor(options: PoolOptions) {
    const { workers, per = 'address', log, print, onWarning = () => {} } = options
    this.options = options
    this.document = documentOf(options)
    this.order = { per, workers, log, port: defaultPort, host: undefined, secret: headerSecret() }
    this.memory = typeof this.document.store === 'object' ? undefined : primaryStore()
    this.places = Array.from(
      { length: workers },
      () =>
        new Place((worker) => this.memory?.attach(channelOf(worker)), {
          order: () => ({ ...this.order, document: this.document }),
          listening: () => {
            if (this.places.every(({ listening }) => listening)) this.complete = true
          },
          lines: print,
          warning: onWarning,
          ended: (counts) => {
            this.past = added(this.past, counts?.stats ?? nothing)
          },
        }),
    )
    this.admin = new AdminServer(
      () => this.complete && !this.closing && this.places.some(({ listening }) => listening),
      () => this.store,
    )
    this.check(this.document)
  }

  get workers(): number {
    return this.places.length
  }

  /** As `Gateway.stats`, of all processes; of one that was killed as it last told them. */
  get stats(): GatewayStats {
    return this.places.reduce((sum, { counts }) => added(sum, counts?.stats ?? nothing), this.past)
  }

  /** As `Gateway.health`; one process that is not well is enough. */
  get health(): Health {
    const all = this.places.map(({ counts }) => counts?.health ?? 'healthy')
    return all.find((health) => health !== 'healthy') ?? 'healthy'
  }

  /** As `Gateway.store`. */
  get store(): StoreStatus {
    const { store } = this.document
    if (typeof store !== 'object') return { kind: 'memory' }
    const told = this.places.flatMap(({ counts }) => (counts?.store.kind === 'redis' ? [counts.store] : []))
    const worst = told.find(({ state }) => state !== 'healthy') ?? told[0]
    return worst ?? { kind: 'redis', address: addressOf(store), state: 'healthy' }
  }

  /** What the workers are to a store that instances share; nothing without one. */
  get instanceWords(): string {
    const { store, storeFailure, defaults } = this.document
    if (typeof store !== 'object') return ''
    const instances = timesWorkers(storeFailure?.expectedInstances ?? defaults?.expectedInstances ?? 1, this.workers)
    return `, each an instance of the store, which ${instances === 'live' ? 'counts them' : `${instances} are expected to share`}`
  }

  get summary(): string[] {
    return documentWords(policiesOf(this.document))
  }

  get origins(): string[] {
    return originsIn(this.document)
  }

  get adminPort(): number | undefined {
    return this.admin.port
  }

  /** Starts all processes. Rejects with what is wrong where none of them can listen. */
  async listen({ port, host }: ListenOptions = {}): Promise<number> {
    const { listen, admin } = this.document
    const wanted = { port: port ?? listen?.port ?? defaultPort, host: host ?? listen?.host }
    // By number, so that processes that come later, perhaps when no other is left, listen on the same one.
    if (wanted.port === 0) wanted.port = await freePort(wanted.host)
    this.order = { ...this.order, ...wanted }
    cluster.schedulingPolicy = cluster.SCHED_RR
    cluster.setupPrimary({ exec: fileURLToPath(new URL('./worker.js', import.meta.url)), args: [] })
    const settled = await Promise.allSettled(this.places.map((place) => place.start()))
    const failed = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []))
    if (failed.length === this.workers) throw failed[0]
    for (const place of this.places) place.keep()
    if (admin !== undefined) await this.admin.listen(admin.port ?? 0, admin.host ?? '127.0.0.1')
    return wanted.port
  }

  /** Lets one of the processes try the upstreams; it warns of what is wrong. */
  probeUpstreams(): Promise<string[]> {
    this.places.find(({ listening }) => listening)?.tell({ gateway: 'probe' })
    return Promise.resolve([])
  }

  /** As `Gateway.reload`: resolves when all processes go by the document. */
  async reload(document: GatewayDocument): Promise<void> {
    const { document: next, warning } = keepFromStart(documentOf({ document }), this.document)
    this.check(next)
    if (warning !== undefined) this.options.onWarning?.(warning)
    this.document = next
    // One that starts is told when it listens.
    const listening = this.places.filter((place) => place.listening)
    const wrong = (await Promise.all(listening.map((place) => place.reload(next)))).find((one) => one !== undefined)
    if (wrong !== undefined) throw new Error(wrong)
  }

  /** As `Gateway.close`, for all processes. With `graceMs` 0 they are ended at once. */
  async close(graceMs?: number): Promise<void> {
    this.closing = true
    await Promise.all(this.places.map((place) => place.stop(graceMs === 0)))
    await this.admin.close()
    this.memory?.close()
  }

  /** Throws for a document that a worker would not take. */
  private check(document: GatewayDocument): void {
    const { answers } = readPolicies(policiesFor(policiesOf(document), document, this.workers), true)
    if (!answers.has('accept')) return
    const message =
      'a policy lists accept, and another process than the one that has the work would be asked for its status; allowed: ' +
      'workers: 1, or no accept'
    throw new CatracaError('CATRACA_OPTION_INVALID', message, { path: 'workers', value: this.workers })
  }
}

/** A port that nobody listens on. Rejects with the error of the system. */
async function freePort(host: string | undefined): Promise<number> {
  const server = createServer()
  server.listen({ port: 0, host })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function added(one: GatewayStats, other: GatewayStats): GatewayStats {
  return {
    admitted: one.admitted + other.admitted,
    refused: one.refused + other.refused,
    failed: one.failed + other.failed,
  }
}
