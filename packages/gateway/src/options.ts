import { CatracaError, type Duration, type Rule, tokenBucket } from 'catraca'
import { maxHops } from './edge/forwarded.ts'
import { type Per, perHeader } from './edge/partition.ts'
import { defaultTimeouts, type Timeouts } from './timeouts.ts'
import { parseOrigin } from './upstream/origin.ts'

/** Options of `createGateway`. */
export interface GatewayOptions {
  /** Where requests go: an http or https origin such as `http://127.0.0.1:3000`. */
  upstream: string | URL
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
  /** How long to wait; those not given have their defaults. */
  timeouts?: Partial<Timeouts>
  /** Called with one line of text for each request that the upstream failed, among others. Default: nothing is said. */
  onWarning?: (line: string) => void
  /** Source of the spread of `Retry-After`: numbers in [0, 1). Default `Math.random`. */
  random?: () => number
}

/** Options with defaults filled in and values checked. */
export interface Settings {
  readonly origin: string
  readonly rule: Rule
  readonly limit: number
  readonly windowMs: number
  readonly burst: number
  /** Lower-case header name, or '' to count by address. */
  readonly header: string
  readonly trust: number
  readonly timeouts: Timeouts
  readonly onWarning: (line: string) => void
  readonly random: () => number
}

const defaultBurst = 120

/** Requests per window, and the capacity where none is given. */
export const defaults = { limit: 600, window: '1m', burst: (limit: number) => Math.min(limit, defaultBurst) } as const

/** Checks options. Throws a `CatracaError` that names the option, its value and what is allowed. */
export function checkOptions(options: GatewayOptions): Settings {
  const { upstream, limit = defaults.limit, window = defaults.window, per = 'address', trust = 0 } = options
  const rule = tokenBucket({ limit, window, burst: options.burst ?? defaults.burst(limit) })
  const origin = parseOrigin(String(upstream))
  if (origin === undefined) throw invalid('upstream', upstream, 'an http or https origin such as http://127.0.0.1:3000')
  const header = perHeader(per)
  if (header === undefined) throw invalid('per', per, '"address" or "header:" and the name of a header')
  if (!Number.isInteger(trust) || trust < 0 || trust > maxHops) {
    throw invalid('trust', trust, `a whole number of proxies from 0 to ${maxHops}`)
  }
  return {
    origin,
    rule,
    limit,
    windowMs: Number(rule.options['windowMs']),
    burst: rule.limit,
    header,
    trust,
    timeouts: checkTimeouts(options.timeouts ?? {}),
    onWarning: options.onWarning ?? (() => {}),
    random: options.random ?? Math.random,
  }
}

function checkTimeouts(given: Partial<Timeouts>): Timeouts {
  for (const [name, ms] of Object.entries(given)) {
    if (!(name in defaultTimeouts)) throw invalid('timeouts', name, Object.keys(defaultTimeouts).join(', '))
    if (!Number.isInteger(ms) || ms < 1 || ms >= 2 ** 31) {
      throw invalid(`timeouts.${name}`, ms, 'a whole number of milliseconds from 1 to 2147483647')
    }
  }
  return { ...defaultTimeouts, ...given }
}

function invalid(path: string, value: unknown, allowed: string): CatracaError {
  const message = `${path} is ${JSON.stringify(value) ?? String(value)}; allowed: ${allowed}`
  return new CatracaError('CATRACA_OPTION_INVALID', message, { path, value })
}
