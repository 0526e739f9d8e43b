/**
 * Every code the library can throw or report, with the sentence that says what is wrong in general.
 * A page `docs/errors/<code>.md` exists for each; a test ties this map, the pages and the type together.
 * `error` codes are thrown as {@link CatracaError}; `diagnosis` codes are emitted once as an event.
 */
export const codes = {
  CATRACA_COST_INVALID: { kind: 'error', words: 'the cost of a request is not a positive whole number' },
  CATRACA_DECISION_FOREIGN: { kind: 'error', words: 'the decision was made by another limiter' },
  CATRACA_DURATION_INVALID: { kind: 'error', words: 'a duration cannot be read' },
  CATRACA_KEY_INVALID: { kind: 'error', words: 'a partition key is not a string' },
  CATRACA_LIMITER_CLOSED: { kind: 'error', words: 'the limiter or its store was closed' },
  CATRACA_NAME_INVALID: { kind: 'error', words: 'a limiter or policy name has a form that headers cannot carry' },
  CATRACA_NAME_TAKEN: { kind: 'error', words: 'two limiters on one store have the same name, or none' },
  CATRACA_NOW_INVALID: { kind: 'error', words: 'the given time is not a number of milliseconds since the epoch' },
  CATRACA_OPTION_INVALID: { kind: 'error', words: 'an option has a value that is not allowed' },
  CATRACA_OPTION_UNKNOWN: { kind: 'error', words: 'an option is not known here' },
  CATRACA_RULE_TOO_FINE: { kind: 'error', words: 'the rule cannot be computed exactly in whole numbers' },
  CATRACA_KEY_EMPTY: { kind: 'diagnosis', words: 'an empty partition key was counted as one ordinary key' },
} as const satisfies Record<string, { kind: 'error' | 'diagnosis'; words: string }>

/** A code of the map above. */
export type Code = keyof typeof codes

type CodeOf<Kind> = { [C in Code]: (typeof codes)[C]['kind'] extends Kind ? C : never }[Code]
/** Codes that are thrown. */
export type ErrorCode = CodeOf<'error'>
/** Codes that are reported once as a `diagnosis` event. */
export type DiagnosisCode = CodeOf<'diagnosis'>

/** Where the page of a code lives in the repository. */
export function helpPage(code: Code): string {
  return `docs/errors/${code}.md`
}

/** Where a wrong value was found and what would be right. */
export interface ErrorPlace {
  /** Path of the option, such as `rule.window`. */
  readonly path?: string
  /** The value that was found. */
  readonly value?: unknown
  readonly cause?: unknown
}

const brand = Symbol.for('catraca.error')

/**
 * Thrown for a wrong configuration or a wrong call, never for a denial or a failing store.
 * `code` is stable, `help` names the page that explains it. Recognise it with {@link isCatracaError}.
 */
export class CatracaError extends Error {
  override readonly name = 'CatracaError'
  readonly code: ErrorCode
  readonly help: string
  readonly path: string | undefined
  readonly value: unknown

  constructor(code: ErrorCode, message: string, place: ErrorPlace = {}) {
    super(`${message} [${code}]`, place.cause === undefined ? undefined : { cause: place.cause })
    this.code = code
    this.help = helpPage(code)
    this.path = place.path
    this.value = place.value
    Object.defineProperty(this, brand, { value: true })
  }
}

/** True for a {@link CatracaError} of any copy of the library in the process. */
export function isCatracaError(value: unknown): value is CatracaError {
  return typeof value === 'object' && value !== null && brand in value
}

/** A short, safe picture of any value for a message: quoted, and cut at 60 characters. */
export function show(value: unknown): string {
  let text: string
  if (typeof value === 'string') text = JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
  else if (typeof value === 'bigint') text = `${value}n`
  else if (typeof value === 'function') text = 'a function'
  else if (Array.isArray(value)) text = 'an array'
  else if (typeof value === 'object' && value !== null) text = 'an object'
  else text = String(value)
  return text
}
