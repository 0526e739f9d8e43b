import type { Decision } from '../core/decision.ts'
import type { Reason } from '../core/reason.ts'
import { ruleWords } from '../policy/words.ts'
import { retryAfterSeconds } from './retry-after.ts'

/** What a refusal is told from. */
export interface RefusalFacts {
  /** The decision that binds. */
  readonly decision: Decision
  /** Names of all policies that refused. */
  readonly policies: readonly string[]
  /** The wait that is told, already spread, in milliseconds; `Infinity` for none. */
  readonly retryAfterMs: number
  /** What the caller can do instead, as name and action, such as `{ batch: 'POST /v1/lotes/importar' }`. */
  readonly advice?: Readonly<Record<string, string>> | undefined
  /** Default: 503 where the service is what lacks room, 429 where the caller asked for too much. */
  readonly status?: number | undefined
}

/** A problem document (RFC 9457) about a refusal, ready for `JSON.stringify`. */
export interface RefusalProblem {
  readonly type: string
  readonly title: string
  /** The status the answer must really have. */
  readonly status: number
  /** For a person: the limit in words, when to come back, what to do instead. */
  readonly detail: string
  /** As the draft of the RateLimit header fields writes it. */
  readonly 'violated-policies': readonly string[]
  /** Units per window, period, or at the same time. Only where the limit is the caller's own, status 429. */
  readonly limit?: number
  /** Length of the window; absent where the rule has none (quota, concurrency). */
  readonly windowSeconds?: number
  /** As `Retry-After`; absent when waiting does not help. */
  readonly retryAfterSeconds?: number
  /** The same, finer, so that short waits are spread too. */
  readonly retryAfterMs?: number
  readonly advice?: Readonly<Record<string, string>>
}

const types = 'https://iana.org/assignments/http-problem-types#'
const title = 'Too many requests'

/** Reasons that say more about the service than about the caller (003:218: the caller's own limits answer 429). */
const unavailable: Partial<Record<Reason, string>> = {
  'store-closed': 'The limit cannot be checked at the moment, and nothing passes unchecked.',
  ceiling: 'The service is at the ceiling of what it takes while its limits are counted apart.',
  'queue-full': 'Too many requests are waiting already.',
}

/** True for reasons for which nobody exceeded a limit of its own. */
export function saysMoreOfService(reason: Reason): boolean {
  return unavailable[reason] !== undefined
}

/** The problem document of a refusal. */
export function refusalProblem(refusal: RefusalFacts): RefusalProblem {
  const { decision, policies, retryAfterMs, advice = {} } = refusal
  const status = refusal.status ?? (saysMoreOfService(decision.reason) ? 503 : 429)
  const { options, limit } = decision.source.rule
  const windowMs = options['windowMs']
  const returns = decision.reason !== 'impossible' && Number.isFinite(retryAfterMs)
  return {
    ...kindOf(status, decision.reason),
    status,
    detail: detailOf(decision, status, returns ? retryAfterSeconds(retryAfterMs) : undefined, advice),
    'violated-policies': policies,
    ...(status === 429 && { limit: Number(options['limit'] ?? limit) }),
    ...(status === 429 && windowMs !== undefined && { windowSeconds: Number(windowMs) / 1_000 }),
    ...(returns && { retryAfterSeconds: retryAfterSeconds(retryAfterMs), retryAfterMs }),
    ...(Object.keys(advice).length > 0 && { advice }),
  }
}

function kindOf(status: number, reason: Reason): { type: string; title: string } {
  if (status === 503) return { type: `${types}temporary-reduced-capacity`, title: 'Service at capacity' }
  return { type: `${types}${reason === 'blocked' ? 'abnormal-usage-detected' : 'quota-exceeded'}`, title }
}

function detailOf(
  decision: Decision,
  status: number,
  seconds: number | undefined,
  advice: Readonly<Record<string, string>>,
): string {
  const what = whatOf(decision, status)
  const instead = Object.entries(advice)
    .map(([name, action]) => `${name}: ${action}`)
    .join(', or ')
  if (seconds === undefined) return instead === '' ? what : `${what} Use ${instead}.`
  return instead === '' ? `${what} Try again in ${seconds} s.` : `${what} Try again in ${seconds} s, or use ${instead}.`
}

function whatOf({ reason, cost, limit, source }: Decision, status: number): string {
  const words = `The limit is ${ruleWords(source.rule, 'en')}.`
  if (reason === 'impossible') return `${words} A request of ${cost} units never fits: at most ${limit} pass at once.`
  if (reason === 'blocked') return 'Requests from here are blocked.'
  if (status === 429) return words
  return unavailable[reason] ?? 'All callers together ask for more than the service can take.'
}
