import type { GatewayDocument } from '@catraca/config'
import { policyPart } from '@catraca/config'
import type { Health } from 'catraca'
import { type AnyGuard, type Counts, createGuard, type Identity, memoryCache, type Verdict } from 'catraca/http'
import type { Descriptor, Explanation, PolicyDocument } from 'catraca/policy'
import { accessEntry } from './access-entry.ts'
import { AdminServer } from './admin/admin-server.ts'
import { ApiKeys } from './auth/api-keys.ts'
import { Asked } from './edge/asked.ts'
import { EdgeServer } from './edge/edge-server.ts'
import { identifyByHeader } from './edge/header-identity.ts'
import type { EdgeRequest, EdgeResponse } from './edge/messages.ts'
import { answerProblem, answerWhole } from './edge/problem.ts'
import { EdgeJobs } from './jobs/edge-jobs.ts'
import { documentOf, type GatewayOptions, headerOf } from './options.ts'
import { Routes } from './routing/routes.ts'
import { SharedStore } from './store/shared-store.ts'
import { type StoreEvent, storeWords } from './store/store-event.ts'
import { documentWords } from './summary.ts'
import { timeoutsOf } from './timeouts.ts'
import { originForm } from './upstream/origin.ts'
import { probe } from './upstream/probe.ts'
import { Upstreams } from './upstream/upstreams.ts'
import { memoryListeners, policiesFor, type Seat } from './workers/seat.ts'

/** Where to listen. */
export interface ListenOptions {
  /** 0 to 65535; 0 takes a free one. Default: that of the document, else 8080. */
  port?: number
  /** Address or name of an interface of this machine. Default: that of the document, else all of them. */
  host?: string
}

/** What a gateway counted since it was created. */
export interface GatewayStats {
  /** Requests within the limits, and those that are not counted. */
  readonly admitted: number
  /** Requests over a limit, answered 429 or 503. */
  readonly refused: number
  /** Admitted requests that an upstream failed: answered 502 or 504, or broken off in the middle of the answer. */
  readonly failed: number
}

/** Where what was used is kept, and whether that works. */
export type StoreStatus =
  | { readonly kind: 'memory' }
  | {
      readonly kind: 'redis'
      /** Host, port and database. */
      readonly address: string
      readonly state: Health
      /** Of the outage under way, ISO 8601. */
      readonly since?: string
      readonly cause?: string
    }

export const defaultPort = 8_080
/** What a reload leaves as it was. */
const keptFromStart = ['listen', 'admin', 'store', 'workers', 'timeouts', 'answers', 'cache', 'jobs'] as const

/**
 * A turnstile in front of HTTP services: asks the policies of its document about every request, answers those over a
 * limit, and passes the others on, streaming both ways. Made by {@link createGateway}.
 */
export class Gateway {
  private document: GatewayDocument
  private readonly options: GatewayOptions
  private readonly seat: Seat | undefined
  private readonly guard: AnyGuard<EdgeRequest>
  private readonly shared: SharedStore | undefined
  private readonly server: EdgeServer
  private readonly admin: AdminServer
  private readonly upstreams: Upstreams
  private keys: ApiKeys | undefined
  private routes: Routes
  private admitted = 0
  private refused = 0

  /**
   * @internal Use {@link createGateway}.
   * @param seat Of a gateway that is one of several processes: the others listen on its port too, and `admin` is served
   *   elsewhere.
   */
  constructor(document: GatewayDocument, options: GatewayOptions, seat?: Seat) {
    const { onWarning = () => {}, random } = options
    const header = headerOf(options)
    const byHeader = header === '' ? undefined : identifyByHeader(header, seat?.secret)
    const timeouts = timeoutsOf(document.timeouts)
    this.document = document
    this.options = options
    this.seat = seat
    this.keys = keysOf(document)
    this.routes = new Routes(document)
    const { store } = document
    this.shared = typeof store === 'object' ? new SharedStore(store, (event) => this.tellStore(event)) : undefined
    const common = this.shared?.store ?? seat?.store
    this.guard = createGuard<EdgeRequest>({
      policies: this.policiesOf(document),
      name: 'gateway',
      ...(common !== undefined && { store: common }),
      ...document.answers,
      ...(options.body !== undefined && { body: options.body }),
      statusPath: '/rate-limit',
      cache: memoryCache(document.cache),
      jobs: new EdgeJobs(
        document.jobs ?? {},
        (request, signal) => {
          const name = this.routes.find(request.method ?? 'POST', request.url ?? '/', request.headers.host)
          return this.upstreams.carryOut(name ?? '', request, signal)
        },
        (request) => this.upstreams.fieldsOf(request),
      ),
      identify: (request): Identity | undefined => byHeader?.(request) ?? this.keys?.identify(request),
      credential: (request) => this.keys?.keyIn(request),
      ...(random !== undefined && { random }),
      on: {
        diagnosis: ({ message }) => onWarning(message),
        ...(this.shared?.listeners ?? (seat?.store !== undefined && memoryListeners(onWarning))),
      },
    })
    const answer = (request: EdgeRequest, response: EdgeResponse): void => this.answer(request, response)
    this.server = new EdgeServer(answer, onWarning, timeouts.clientIdleMs)
    this.admin = new AdminServer(
      () => this.server.listening && !this.server.closing,
      () => this.store,
    )
    this.upstreams = new Upstreams(document, {
      trusted: () => (this.document.trust?.proxies ?? 0) > 0 || this.document.trust?.from !== undefined,
      withheld: () => this.keys?.header ?? '',
      timeouts,
      warn: onWarning,
      ended: () => {
        if (this.server.closing) this.server.closeIdle()
      },
    })
  }

  /**
   * Who decides: a store that instances share (`healthy`), or, while it is gone, what the policies' `onStoreFailure`
   * declares (`degraded`; `probing` while the store is being tried). Always `healthy` without such a store.
   */
  get health(): Health {
    const { health } = this.guard
    return health === 'healthy' && this.shared?.outage !== undefined ? 'degraded' : health
  }

  /** Where what was used is kept, and whether that works. */
  get store(): StoreStatus {
    if (this.shared === undefined) return { kind: 'memory' }
    const { address, outage } = this.shared
    const told = outage === undefined ? {} : { since: outage.since.toISOString(), cause: outage.cause }
    return { kind: 'redis', address, state: this.health, ...told }
  }

  /** What each policy allows, in plain words, one line each. */
  get summary(): string[] {
    return documentWords(policiesOf(this.document))
  }

  /** The origins of all upstreams. */
  get origins(): string[] {
    return this.upstreams.origins
  }

  /** Counts since the start. */
  get stats(): GatewayStats {
    return { admitted: this.admitted, refused: this.refused, failed: this.upstreams.failures }
  }

  /**
   * Starts to listen and gives the port. Rejects with the system's error when that is not possible, such as one with the
   * code `EADDRINUSE`. The upstreams need not be there yet.
   */
  async listen({ port, host }: ListenOptions = {}): Promise<number> {
    const { listen, admin } = this.document
    const taken = await this.server.listen(port ?? listen?.port ?? defaultPort, host ?? listen?.host)
    if (admin !== undefined && this.seat === undefined)
      await this.admin.listen(admin.port ?? 0, admin.host ?? '127.0.0.1')
    return taken
  }

  /** The port of liveness and readiness; undefined when the document has no `admin`. */
  get adminPort(): number | undefined {
    return this.admin.port
  }

  /** Tries every upstream once. Gives what is wrong, one line each. */
  async probeUpstreams(): Promise<string[]> {
    const timeouts = timeoutsOf(this.document.timeouts)
    const found = await Promise.all(
      this.origins.map(async (origin) => {
        const wrong = await probe(origin, timeouts)
        return wrong === undefined
          ? []
          : [`upstream ${origin} ${wrong}; requests are answered 502 or 504 until it works`]
      }),
    )
    return found.flat()
  }

  /** What was counted since the start, by answer, policy, and id of the key. */
  get counts(): Counts {
    return this.guard.counts
  }

  /** Which policies speak about a request and what each would say. Counts nothing. */
  async explain(descriptor: Descriptor): Promise<Explanation[]> {
    return this.guard.explain(descriptor)
  }

  /**
   * Goes by another document from the next request on; no request is dropped and what was used stays used. Throws a
   * `CatracaError`, and changes nothing, for a wrong one. Where to listen, the store and the timeouts stay as they were; a
   * warning says so when the document has others.
   */
  reload(document: GatewayDocument): void {
    const checked = documentOf({ document })
    const routes = new Routes(checked)
    const kept = keepFromStart(checked, this.document)
    this.guard.replace(this.policiesOf(kept.document))
    if (kept.warning !== undefined) this.options.onWarning?.(kept.warning)
    this.document = kept.document
    this.keys = keysOf(checked)
    this.routes = routes
    this.upstreams.replace(checked)
  }

  /**
   * Stops: is no longer ready, takes no new connections, closes idle ones, lets running requests end. Those still running
   * after `graceMs` milliseconds (default 10000) are cut. Resolves when all connections are closed.
   */
  async close(graceMs = 10_000): Promise<void> {
    this.upstreams.closing = true
    await this.server.close(graceMs)
    await this.admin.close()
    await this.upstreams.close()
    this.guard.close()
    this.shared?.close()
    this.seat?.store?.close()
  }

  private policiesOf(document: GatewayDocument): PolicyDocument {
    const policies = policiesOf(document)
    return this.seat === undefined ? policies : policiesFor(policies, document, this.seat.workers)
  }

  private tellStore(event: StoreEvent): void {
    const { onStore, onWarning } = this.options
    onStore?.(event)
    onWarning?.(storeWords(event, this.shared?.address ?? ''))
  }

  private answer(request: EdgeRequest, response: EdgeResponse): void {
    if (this.server.closing) response.shouldKeepAlive = false
    const asked = new Asked(request, response)
    const startMs = this.options.onAccess === undefined ? 0 : performance.now()
    const verdict = this.guard.ask(asked)
    if (!(verdict instanceof Promise)) {
      this.goOn(asked, response, verdict, startMs)
      return
    }
    verdict.then(
      (known) => this.goOn(asked, response, known, startMs),
      () => {
        if (!response.destroyed) answerProblem(request, response, 400, 'The body of the request did not arrive whole.')
      },
    )
  }

  private goOn(asked: Asked, response: EdgeResponse, verdict: Verdict, startMs: number): void {
    const { raw: request } = asked
    // Whoever left meanwhile is neither served nor charged.
    if (response.destroyed) {
      this.guard.refund(verdict)
      return
    }
    const unknownKey = verdict.allowed && verdict.identity === undefined && this.keys?.keyIn(request) !== undefined
    const { onAccess } = this.options
    if (onAccess !== undefined) {
      response.once('close', () => onAccess(accessEntry(asked, response, verdict, unknownKey, startMs)))
    }
    if (!verdict.allowed) {
      if (verdict.answer === 'reject') this.refused++
      answerWhole(request, response, this.guard.answerOf(verdict))
      return
    }
    if (verdict.holds) response.once('close', () => this.guard.release(verdict))
    response.limitFields = this.guard.fieldsOf(verdict)
    response.omitsCacheable = this.guard.omitsCacheable
    request.told = verdict.told
    response.keep = verdict.keep
    response.keepBytes = verdict.keepBytes
    if (unknownKey) {
      const { header } = this.keys as ApiKeys
      answerProblem(request, response, 401, `The key in ${header} is not known.`, undefined, [
        'WWW-Authenticate',
        'ApiKey',
      ])
      return
    }
    this.admitted++
    const upstream = this.routes.find(asked.method, asked.target, request.headers.host)
    if (upstream !== undefined) this.upstreams.forward(upstream, request, response)
    else if (originForm(asked.target) === undefined) {
      answerProblem(request, response, 400, 'The request target is neither a path nor an http address.')
    } else answerProblem(request, response, 404, 'No service answers this path.')
  }
}

/** A new document with what a reload leaves as it was, and a line that says so where it has others. */
export function keepFromStart(
  next: GatewayDocument,
  current: GatewayDocument,
): { document: GatewayDocument; warning: string | undefined } {
  const kept = Object.fromEntries(keptFromStart.map((key) => [key, current[key]]))
  const changed = keptFromStart.filter((key) => JSON.stringify(next[key]) !== JSON.stringify(kept[key]))
  const warning = changed.length > 0 ? `${changed.join(', ')}: another value is taken at the next start` : undefined
  return { document: { ...next, ...kept }, warning }
}

/** The policy part of a gateway document. */
export function policiesOf(document: GatewayDocument): PolicyDocument {
  return policyPart({ ...document }) as unknown as PolicyDocument
}

function keysOf({ auth }: GatewayDocument): ApiKeys | undefined {
  return auth?.apiKeys === undefined ? undefined : new ApiKeys(auth.apiKeys)
}

/**
 * A gateway; it does nothing until {@link Gateway.listen} is called. Throws a `CatracaError` for an option or a document
 * that is not allowed.
 *
 * @example
 * const gateway = createGateway({ upstream: 'http://127.0.0.1:3000', limit: 600, window: '1m', burst: 120 })
 * const port = await gateway.listen({ port: 8080 })
 */
export function createGateway(options: GatewayOptions): Gateway {
  const document = documentOf(options)
  const { workers = 1 } = document
  if (workers > 1) options.onWarning?.(`workers: ${workers} is for the command catraca up; this gateway is one process`)
  return new Gateway(document, options)
}
