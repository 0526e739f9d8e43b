import { createLimiter, type Limiter, type Rule } from 'catraca'
import { EdgeServer } from './edge/edge-server.ts'
import { LimitFields } from './edge/limit-fields.ts'
import type { EdgeRequest, EdgeResponse } from './edge/messages.ts'
import { Partition } from './edge/partition.ts'
import { Refusal } from './edge/refusal.ts'
import { ruleWords } from './edge/rule-words.ts'
import { checkOptions, type GatewayOptions, type Settings } from './options.ts'
import { probe } from './upstream/probe.ts'
import { Proxy } from './upstream/proxy.ts'

/** Where to listen. */
export interface ListenOptions {
  /** 0 to 65535; 0 takes a free one. Default 8080. */
  port?: number
  /** Address or name of an interface of this machine. Default: all of them. */
  host?: string
}

/** What a gateway counted since it was created. */
export interface GatewayStats {
  /** Requests within the limit. */
  readonly admitted: number
  /** Requests answered 429. */
  readonly refused: number
  /** Admitted requests that the upstream failed: answered 502 or 504, or broken off in the middle of the answer. */
  readonly failed: number
}

/**
 * A turnstile in front of one HTTP service: counts every request against its caller's limit, answers 429 over it and
 * passes the others on, streaming both ways. Made by {@link createGateway}.
 */
export class Gateway {
  /** The limit in plain words, such as `600 requests per minute, 120 at once, for each address`. */
  readonly summary: string
  /** The upstream's origin. */
  readonly upstream: string
  private readonly settings: Settings
  private readonly limiter: Limiter<Rule>
  private readonly partition: Partition
  private readonly fields: LimitFields
  private readonly refusal: Refusal
  private readonly server: EdgeServer
  private readonly proxy: Proxy
  private admitted = 0
  private refused = 0

  /** @internal Use {@link createGateway}. */
  constructor(settings: Settings) {
    const { origin, rule, limit, windowMs, burst, header, trust, timeouts, onWarning, random } = settings
    const policy = header === '' ? 'address' : 'header'
    const whom = header === '' ? 'address' : `value of ${header}`
    const amount = ruleWords(limit, windowMs, burst)
    this.settings = settings
    this.upstream = origin
    this.summary = `${amount}, for each ${whom}`
    this.limiter = createLimiter(rule, { name: policy })
    this.partition = new Partition(header, trust)
    this.fields = new LimitFields(policy, limit, windowMs, burst)
    this.refusal = new Refusal(policy, limit, windowMs, `Each ${whom} may send ${amount}.`, random)
    const answer = (request: EdgeRequest, response: EdgeResponse): void => this.answer(request, response)
    this.server = new EdgeServer(answer, onWarning, timeouts.clientIdleMs)
    this.proxy = new Proxy({
      origin,
      trusted: trust > 0,
      timeouts,
      warn: onWarning,
      ended: () => {
        if (this.server.closing) this.server.closeIdle()
      },
    })
  }

  /** Counts since the start. */
  get stats(): GatewayStats {
    return { admitted: this.admitted, refused: this.refused, failed: this.proxy.failures }
  }

  /**
   * Starts to listen and gives the port. Rejects with the system's error when that is not possible, such as one with the
   * code `EADDRINUSE`. The upstream need not be there yet.
   */
  listen({ port = 8080, host }: ListenOptions = {}): Promise<number> {
    return this.server.listen(port, host)
  }

  /** Tries the upstream once. Gives undefined when it takes connections, or else what is wrong in words. */
  probeUpstream(): Promise<string | undefined> {
    return probe(this.upstream, this.settings.timeouts)
  }

  /**
   * Stops: takes no new connections, closes idle ones, lets running requests end. Those still running after `graceMs`
   * milliseconds (default 10000) are cut. Resolves when all connections are closed.
   */
  async close(graceMs = 10_000): Promise<void> {
    this.proxy.closing = true
    await this.server.close(graceMs)
    await this.proxy.close()
    this.limiter.close()
  }

  private answer(request: EdgeRequest, response: EdgeResponse): void {
    if (this.server.closing) response.shouldKeepAlive = false
    const decision = this.limiter.take(this.partition.keyOf(request))
    response.limitFields = this.fields.of(decision)
    if (decision.allowed) {
      this.admitted++
      this.proxy.forward(request, response)
    } else {
      this.refused++
      this.refusal.answer(request, response, decision)
    }
  }
}

/**
 * A gateway in front of `options.upstream`; it does nothing until {@link Gateway.listen} is called.
 * Throws a `CatracaError` for an option that is not allowed.
 *
 * @example
 * const gateway = createGateway({ upstream: 'http://127.0.0.1:3000', limit: 600, window: '1m', burst: 120 })
 * const port = await gateway.listen({ port: 8080 })
 */
export function createGateway(options: GatewayOptions): Gateway {
  return new Gateway(checkOptions(options))
}
