import type { GatewayDocument, UpstreamEntry } from '@catraca/config'
import type { EdgeRequest, EdgeResponse } from '../edge/messages.ts'
import type { Carried } from '../jobs/edge-jobs.ts'
import { Proxy, type ProxyOptions } from './proxy.ts'
import { requestHeaders } from './request-headers.ts'

/** The origins of one service, which take turns. */
class Balancer {
  readonly proxies: readonly Proxy[]
  private turn = 0

  constructor(proxies: readonly Proxy[]) {
    this.proxies = proxies
  }

  next(): Proxy {
    const proxy = this.proxies[this.turn % this.proxies.length] as Proxy
    this.turn = (this.turn + 1) % this.proxies.length
    return proxy
  }
}

/** All services by name. */
export class Upstreams {
  private balancers: ReadonlyMap<string, Balancer>
  private readonly options: Omit<ProxyOptions, 'origin'>
  /** Of origins that are no longer used. */
  private earlierFailures = 0
  private isClosing = false

  constructor(document: GatewayDocument, options: Omit<ProxyOptions, 'origin'>) {
    this.options = options
    this.balancers = this.build(document, new Map())
  }

  /** Requests that an upstream failed, since the start. */
  get failures(): number {
    return this.all().reduce((sum, { failures }) => sum + failures, this.earlierFailures)
  }

  /** All origins. */
  get origins(): string[] {
    return this.all().map(({ origin }) => origin)
  }

  set closing(value: boolean) {
    this.isClosing = value
    for (const proxy of this.all()) proxy.closing = value
  }

  /** Passes a request on to a service that the document names. */
  forward(name: string, request: EdgeRequest, response: EdgeResponse): void {
    this.balancers.get(name)?.next().forward(request, response)
  }

  /** The header fields with which a request would be sent now. */
  fieldsOf(request: EdgeRequest): string[] {
    return requestHeaders(request, this.options.trusted(), this.options.withheld())
  }

  /** The same for a request whose caller was answered already, with the fields that it had then. */
  async carryOut(name: string, request: EdgeRequest, signal: AbortSignal): Promise<Carried> {
    const balancer = this.balancers.get(name)
    if (balancer === undefined) throw new Error('no service answers this path')
    return balancer.next().carryOut(request, signal)
  }

  /** Goes by another document. Connections to origins that stay are kept; the others end with their last answer. */
  replace(document: GatewayDocument): void {
    const old = new Map(this.all().map((proxy) => [proxy.origin, proxy]))
    this.balancers = this.build(document, old)
    const kept = new Set(this.all())
    for (const proxy of old.values()) {
      if (kept.has(proxy)) continue
      this.earlierFailures += proxy.failures
      void proxy.drain()
    }
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await Promise.all(this.all().map((proxy) => proxy.close()))
  }

  private build({ upstreams }: GatewayDocument, known: ReadonlyMap<string, Proxy>): Map<string, Balancer> {
    const made = new Map(known)
    return new Map(
      Object.entries(upstreams).map(([name, entry]) => {
        const proxies = originsOf(entry).map((origin) => {
          const proxy = made.get(origin) ?? new Proxy({ ...this.options, origin })
          proxy.closing = this.isClosing
          made.set(origin, proxy)
          return proxy
        })
        return [name, new Balancer(proxies)]
      }),
    )
  }

  private all(): Proxy[] {
    return [...new Set([...this.balancers.values()].flatMap(({ proxies }) => proxies))]
  }
}

/** The origins that a document names, each once. */
export function originsIn({ upstreams }: GatewayDocument): string[] {
  return [...new Set(Object.values(upstreams).flatMap(originsOf))]
}

function originsOf(entry: string | UpstreamEntry): string[] {
  const urls = typeof entry === 'string' ? [entry] : entry.urls
  return urls.map((url) => new URL(url).origin)
}
