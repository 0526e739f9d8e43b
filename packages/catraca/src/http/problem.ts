import type { Decision } from '../core/decision.ts'
import type { Reason } from '../core/reason.ts'
import { type Language, ruleWords } from '../policy/words.ts'
import { type ProblemWords, problemWords } from './problem-words.ts'
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
  /** Of title and detail. Default English. */
  readonly language?: Language | undefined
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

/** True for reasons for which nobody exceeded a limit of its own. */
export function saysMoreOfService(reason: Reason): boolean {
  return problemWords.en.unavailable[reason] !== undefined
}

/** The problem document of a refusal. */
export function refusalProblem(refusal: RefusalFacts): RefusalProblem {
  const { decision, policies, retryAfterMs, advice = {}, language = 'en' } = refusal
  const status = refusal.status ?? (saysMoreOfService(decision.reason) ? 503 : 429)
  const { options, limit } = decision.source.rule
  const windowMs = options['windowMs']
  const returns = decision.reason !== 'impossible' && Number.isFinite(retryAfterMs)
  return {
    type: types + kindOf(status, decision.reason),
    title: status === 503 ? problemWords[language].atCapacity : problemWords[language].tooMany,
    status,
    detail: detailOf(decision, status, returns ? retryAfterSeconds(retryAfterMs) : undefined, advice, language),
    'violated-policies': policies,
    ...(status === 429 && { limit: Number(options['limit'] ?? limit) }),
    ...(status === 429 && windowMs !== undefined && { windowSeconds: Number(windowMs) / 1_000 }),
    ...(returns && { retryAfterSeconds: retryAfterSeconds(retryAfterMs), retryAfterMs }),
    ...(Object.keys(advice).length > 0 && { advice }),
  }
}

function kindOf(status: number, reason: Reason): string {
  if (status === 503) return 'temporary-reduced-capacity'
  return reason === 'blocked' ? 'abnormal-usage-detected' : 'quota-exceeded'
}

function detailOf(
  decision: Decision,
  status: number,
  seconds: number | undefined,
  advice: Readonly<Record<string, string>>,
  language: Language,
): string {
  const words = problemWords[language]
  const what = whatOf(decision, status, words, language)
  const instead = Object.entries(advice)
    .map(([name, action]) => `${name}: ${action}`)
    .join(words.or)
  if (seconds === undefined) return instead === '' ? what : `${what} ${words.use(instead)}`
  return `${what} ${instead === '' ? words.again(seconds) : words.againOrUse(seconds, instead)}`
}

function whatOf(
  { reason, cost, limit, source }: Decision,
  status: number,
  words: ProblemWords,
  language: Language,
): string {
  const told = words.limit(ruleWords(source.rule, language))
  if (reason === 'impossible') return `${told} ${words.neverFits(cost, limit)}`
  if (reason === 'blocked') return words.blocked
  if (status === 429) return told
  return words.unavailable[reason] ?? words.everybody
}
