import type { Decision } from '../core/decision.ts'
import { CatracaError, show } from '../core/errors.ts'
import type { Language } from '../policy/words.ts'
import { type Dialect, dialects } from './dialects.ts'
import { languages } from './language.ts'
import type { RefusalProblem } from './problem.ts'

/** A refusal, as the option `body` is told of it. */
export interface Refusal {
  /** The decision that the caller is told of. */
  readonly decision: Decision
  /** Names of all policies that refused. */
  readonly policies: readonly string[]
  /** The wait that is told, spread, in milliseconds; `Infinity` when waiting does not help. */
  readonly retryAfterMs: number
  /** 429 or 503. */
  readonly status: number
  /** What is sent without the hook, in the language that the caller reads best. */
  readonly problem: RefusalProblem
  /** The request header of that name. */
  readonly acceptLanguage: string | undefined
}

/** A text as `text/plain`, a body with its media type, or any other object, which becomes JSON. */
export type RefusalBody = string | { readonly contentType: string; readonly body: string } | object

/** How callers are told of limits. */
export interface AnswerOptions {
  /** Header fields that say what the limit is, in one form or several. Default `ietf`. */
  headers?: Dialect | readonly Dialect[]
  /**
   * Whether those fields stand on answers that shared caches may keep for others (`Cache-Control: public` or `s-maxage`),
   * who would then read this caller's figures. Default `include`: a limit is told on every answer.
   */
  cacheable?: 'include' | 'omit'
  /**
   * True lets scripts of other origins read what is told, by `Access-Control-Expose-Headers`: without it browsers hide even
   * `Retry-After` from them. Default false, since only APIs that pages of other origins call need the further field.
   */
  exposeHeaders?: boolean
  /** Language of refusals where `Accept-Language` asks for none that is written here. Default `en`. */
  language?: Language
  /**
   * The body of refusals in place of a problem document. What it throws, and what cannot be sent, is reported once as
   * `CATRACA_BODY_UNUSABLE`, and the problem document is sent. It must answer at once: a promise cannot be sent.
   */
  body?: (refusal: Refusal) => RefusalBody
}

export const answerOptionNames = ['headers', 'cacheable', 'exposeHeaders', 'language', 'body'] as const

/** Throws `CATRACA_OPTION_INVALID` for a value that is not allowed, with its place under `path`. */
export function checkAnswerOptions(options: AnswerOptions, path: string): void {
  const { headers, cacheable, exposeHeaders, language, body } = options
  checkDialects(headers, `${path}.headers`)
  if (cacheable !== undefined && cacheable !== 'include' && cacheable !== 'omit') {
    throw invalid(`${path}.cacheable`, cacheable, 'include, omit')
  }
  if (exposeHeaders !== undefined && typeof exposeHeaders !== 'boolean') {
    throw invalid(`${path}.exposeHeaders`, exposeHeaders, 'true, false')
  }
  if (language !== undefined && !languages.includes(language)) {
    throw invalid(`${path}.language`, language, languages.join(', '))
  }
  if (body !== undefined && typeof body !== 'function') throw invalid(`${path}.body`, body, 'a function')
}

function checkDialects(headers: AnswerOptions['headers'], path: string): void {
  const list: unknown = typeof headers === 'string' ? [headers] : (headers ?? [])
  if (!Array.isArray(list)) throw invalid(path, headers, `one or a list of ${Object.keys(dialects).join(', ')}`)
  for (const one of list) {
    if (typeof one === 'string' && Object.hasOwn(dialects, one)) continue
    throw invalid(path, one, Object.keys(dialects).join(', '), 'holds')
  }
  if (list.includes('none') && new Set(list).size > 1) throw invalid(path, list, 'none alone, or others without it')
  if (list.includes('x-ratelimit') && list.includes('x-ratelimit-epoch')) {
    // One X-RateLimit-Reset cannot be a span and a time.
    throw invalid(path, list, 'one of x-ratelimit and x-ratelimit-epoch')
  }
}

function invalid(path: string, value: unknown, allowed: string, verb = 'is'): CatracaError {
  const shown = Array.isArray(value) ? value.join(', ') : show(value)
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} ${verb} ${shown}; allowed: ${allowed}`, { path, value })
}
