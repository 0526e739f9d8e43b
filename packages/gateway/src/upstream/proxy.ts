import { hasBody } from 'catraca/node'
import { Pool } from 'undici'
import type { EdgeRequest, EdgeResponse } from '../edge/messages.ts'
import { answerProblem } from '../edge/problem.ts'
import type { Carried } from '../jobs/edge-jobs.ts'
import type { Timeouts } from '../timeouts.ts'
import { Exchange, type ExchangeOwner } from './exchange.ts'
import { failureOf } from './failure.ts'
import { originForm } from './origin.ts'
import { requestHeaders } from './request-headers.ts'

/** How a proxy is told about the world around it. */
export interface ProxyOptions {
  /** `scheme://host:port` of the upstream. */
  readonly origin: string
  /** True when proxies in front are believed about earlier hops. */
  readonly trusted: () => boolean
  readonly timeouts: Timeouts
  /** A header field, in lower case, that is not passed on; '' for none. */
  readonly withheld: () => string
  /** Called with one line for each request that the upstream failed. */
  readonly warn: (line: string) => void
  /** Called when a response is over. */
  readonly ended: () => void
}

/** Sends requests to one upstream over kept-alive connections and streams its answers back. */
export class Proxy implements ExchangeOwner {
  /** Requests answered 502 or 504, or broken off in the middle of the answer. */
  failures = 0
  /** Set while the gateway stops. */
  closing = false
  private readonly options: ProxyOptions
  readonly timeouts: Timeouts
  private readonly pool: Pool

  constructor(options: ProxyOptions) {
    this.options = options
    this.timeouts = options.timeouts
    const { connectMs, bodyIdleMs } = options.timeouts
    this.pool = new Pool(options.origin, {
      // An exchange has its own timers for both; these clear away what is left.
      connect: { timeout: connectMs },
      headersTimeout: 0,
      bodyTimeout: bodyIdleMs,
    })
  }

  /** Answers with what the upstream says. */
  forward(request: EdgeRequest, response: EdgeResponse): void {
    const path = originForm(request.url ?? '')
    if (path === undefined) {
      answerProblem(request, response, 400, 'The request target is neither a path nor an http address.')
      return
    }
    const refused = unsupported(request)
    if (refused !== undefined) {
      answerProblem(request, response, 501, refused)
      return
    }
    if (request.headers.expect !== undefined && request.httpVersionMinor > 0 && !response.continued) {
      response.writeContinue()
    }
    const body = request.taken ?? (hasBody(request) ? request : null)
    const headers = requestHeaders(request, this.options.trusted(), this.options.withheld())
    const exchange = new Exchange(this, request, response)
    this.pool.dispatch({ path, method: request.method ?? 'GET', headers, body }, exchange)
  }

  /** Sends a request whose caller was answered already. Rejects when no answer comes. */
  async carryOut(request: EdgeRequest, signal: AbortSignal): Promise<Carried> {
    const path = originForm(request.url ?? '')
    if (path === undefined || unsupported(request) !== undefined) throw new Error('the request cannot be passed on')
    const headers = [...(request.fields ?? [])]
    const { responseMs } = this.timeouts
    try {
      const { statusCode, body } = await this.pool.request({
        path,
        method: request.method ?? 'POST',
        headers,
        body: request.taken ?? null,
        headersTimeout: responseMs,
        signal,
      })
      return { status: statusCode, body: await resultOf(body) }
    } catch (error) {
      const { words } = failureOf(error, this.timeouts)
      this.report(words)
      throw new Error(`the service ${words}`, { cause: error })
    }
  }

  failed(request: EdgeRequest, response: EdgeResponse, error: Error): void {
    const { status, words } = failureOf(error, this.options.timeouts)
    if (status !== 400) this.report(words)
    if (this.closing) response.shouldKeepAlive = false
    answerProblem(request, response, status, `The upstream ${this.options.origin} ${words}.`)
  }

  brokeOff(error: Error): void {
    this.report(`${failureOf(error, this.options.timeouts).words}, in the middle of an answer`)
  }

  ended(): void {
    this.options.ended()
  }

  /** `scheme://host:port` of the upstream. */
  get origin(): string {
    return this.options.origin
  }

  /** Ends connections as their answers end. */
  drain(): Promise<void> {
    return this.pool.close()
  }

  /** Ends all connections to the upstream. */
  close(): Promise<void> {
    return this.pool.destroy()
  }

  private report(words: string): void {
    this.failures++
    this.options.warn(`upstream ${this.options.origin} ${words}`)
  }
}

/** Of a longer answer to accepted work only the begin is kept. */
const maxResultBytes = 16 * 1024

async function resultOf(body: AsyncIterable<Buffer>): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    if (bytes < maxResultBytes) chunks.push(chunk)
    bytes += chunk.length
  }
  const text = Buffer.concat(chunks).toString('utf8')
  if (bytes > maxResultBytes) return text.slice(0, maxResultBytes)
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Why a request cannot be passed on by this version; undefined when it can. */
function unsupported({ headers }: EdgeRequest): string | undefined {
  // Other upgrades (h2c) are offers, which a server may leave unanswered.
  if (/\bwebsocket\b/i.test(headers.upgrade ?? '')) return 'WebSocket connections are not passed on by this version.'
  const coding = headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    return 'Of the transfer codings only "chunked" is known.'
  return undefined
}
