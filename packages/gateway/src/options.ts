import { type GatewayDocument, gatewayProblems } from '@catraca/config'
import { CatracaError, type Duration } from 'catraca'
import type { AnswerKind, GuardOptions } from 'catraca/http'
import { type Place, placeText, problemError } from 'catraca/policy'
import { type Per, perHeader } from './edge/header-identity.ts'
import type { StoreEvent } from './store/store-event.ts'
import { parseOrigin } from './upstream/origin.ts'

/** Options of `createGateway`: a whole document, or an upstream and one limit. */
export interface GatewayOptions {
  /** A gateway document, as `readGatewayFile` of `@catraca/config` gives it. With it, of the others only the functions. */
  document?: GatewayDocument
  /** Where requests go: an http or https origin such as `http://127.0.0.1:3000`. */
  upstream?: string | URL
  /** Requests that come back per window, 1 to 10^12. Default 600. */
  limit?: number
  /** Time in which `limit` requests come back, evenly. Default `1m`. */
  window?: Duration
  /** Requests that can pass at once after idleness, 1 to 10^12. Default 120, or `limit` where that is less. */
  burst?: number
  /**
   * Whom to count: `address`, or `header:<name>` for callers by the value of that request header. A value is not checked:
   * whoever can invent one has a limit of their own. Requests without the header go by address. Default `address`.
   */
  per?: Per
  /** Trusted proxies in front that append to `X-Forwarded-For`, 0 to 32. Default 0: the header is not believed. */
  trust?: number
  /** How long to wait, in milliseconds; those not given have their defaults. */
  timeouts?: { connectMs?: number; responseMs?: number; bodyIdleMs?: number; clientIdleMs?: number }
  /** The body of refusals in place of a problem document, as the option of a guard. */
  body?: GuardOptions['body']
  /** Called with one line of text for each request that the upstream failed, among others. Default: nothing is said. */
  onWarning?: (line: string) => void
  /** Called when the store that instances share is lost, is back, or was found changed. Each is also a warning. */
  onStore?: (event: StoreEvent) => void
  /** Called when an answer is over. */
  onAccess?: (entry: AccessEntry) => void
  /** Source of the spread of `Retry-After`: numbers in [0, 1). Default `Math.random`. */
  random?: () => number
}

/** One request, as the access log tells it. */
export interface AccessEntry {
  /** When it came, ISO 8601. */
  readonly time: string
  readonly address: string
  readonly method: string
  readonly url: string
  /** 0 when the caller left before an answer. */
  readonly status: number
  /** From its arrival to the end of its answer. */
  readonly durationMs: number
  readonly client?: string
  readonly plan?: string
  /** Names the caller's key; not the key. */
  readonly keyId?: string
  /** `exempt` requests are not counted, `unknown-key` ones not verified. */
  readonly decision: 'admitted' | 'refused' | 'exempt' | 'unknown-key'
  /** How it was answered, where not plainly: `queue`, `stale`, `degrade`, `accept`, `mark`, or `told` by the gateway itself. */
  readonly answer?: Exclude<AnswerKind, 'pass' | 'reject'>
  /** The policy that binds: refused, the one with the longest wait; admitted, the one with the least left. */
  readonly policy?: string
  readonly remaining?: number
  readonly retryAfterMs?: number
  /** Present when the shared store was gone and what `onStoreFailure` declares decided. */
  readonly degraded?: true
  /** Observed policies that would have refused. */
  readonly wouldRefuse?: readonly string[]
}

const defaultBurst = 120

/** Requests per window, and the capacity where none is given. */
export const defaults = { limit: 600, window: '1m', burst: (limit: number) => Math.min(limit, defaultBurst) } as const
/** All callers together, and tries of a password. */
const serviceLimit = { algorithm: 'token-bucket', limit: 1_000, window: '1s' } as const
const loginLimit = { algorithm: 'sliding-counter', limit: 5, window: '15m' } as const

/** The document a gateway works by, its options checked. Throws a `CatracaError` that names the place and what is allowed. */
export function documentOf(options: GatewayOptions): GatewayDocument {
  const { document } = options
  const checked = document ?? simpleDocument(options)
  const [first, ...more] = gatewayProblems(checked)
  if (first !== undefined) {
    throw document === undefined
      ? problemError({ ...first, place: [optionAt(first.place)] })
      : problemError(first, more.length)
  }
  return checked
}

/** The option that led to a place of the document made from it. */
function optionAt(place: Place): string {
  const text = placeText(place)
  if (text === 'trust.proxies') return 'trust'
  return text.replace(/^policies\.\w+\.rule(?:\.|$)/, '').replace(/^timeouts\.(\w+)$/, 'timeouts.$1Ms') || 'limit'
}

/** The header whose value names the caller, in lower case; '' for none. */
export function headerOf({ per = 'address' }: GatewayOptions): string {
  const header = perHeader(per)
  if (header === undefined) throw invalid('per', per, '"address" or "header:" and the name of a header')
  return header
}

/** One limit for each caller, one for all together, one for logins, and health checks free. */
function simpleDocument(options: GatewayOptions): GatewayDocument {
  const { upstream, limit = defaults.limit, window = defaults.window, trust = 0, timeouts = {} } = options
  const origin = parseOrigin(String(upstream))
  if (origin === undefined) throw invalid('upstream', upstream, 'an http or https origin such as http://127.0.0.1:3000')
  const rule = { algorithm: 'token-bucket', limit, window, burst: options.burst ?? defaults.burst(limit) }
  const byHeader = headerOf(options) !== ''
  const { connectMs, responseMs, bodyIdleMs, clientIdleMs, ...unknown } = timeouts
  const [surplus] = Object.keys(unknown)
  if (surplus !== undefined) throw invalid('timeouts', surplus, 'connectMs, responseMs, bodyIdleMs, clientIdleMs')
  return {
    version: 1,
    trust: { proxies: trust },
    defaults: { onStoreFailure: 'local' },
    exempt: { routes: ['GET /health/**', 'GET /healthz', 'GET /livez', 'GET /readyz'] },
    policies: {
      ...(byHeader && { header: { match: { identity: 'client' }, per: 'client', rule } }),
      address: { ...(byHeader && { match: { identity: 'anonymous' } }), per: 'address', rule },
      login: { match: { routes: ['POST **/login'] }, per: 'address', rule: loginLimit, onStoreFailure: 'closed' },
      service: { per: 'service', rule: serviceLimit },
    },
    upstreams: { app: origin },
    timeouts: {
      ...(connectMs !== undefined && { connect: connectMs }),
      ...(responseMs !== undefined && { response: responseMs }),
      ...(bodyIdleMs !== undefined && { bodyIdle: bodyIdleMs }),
      ...(clientIdleMs !== undefined && { clientIdle: clientIdleMs }),
    },
  }
}

function invalid(path: string, value: unknown, allowed: string): CatracaError {
  const message = `${path} is ${JSON.stringify(value) ?? String(value)}; allowed: ${allowed}`
  return new CatracaError('CATRACA_OPTION_INVALID', message, { path, value })
}
