/**
 * Every code the library can throw or report, with the sentence that says what is wrong in general.
 * A page `docs/errors/<code>.md` exists for each; a test ties this map, the pages and the type together.
 * `error` codes are thrown as {@link CatracaError}; `diagnosis` codes are emitted once as an event; `check` codes are
 * what `check` finds in a document that can be enforced.
 */
export const codes = {
  CATRACA_ADDRESS_MISSING: { kind: 'error', words: 'nothing says where the address of a caller stands' },
  CATRACA_COST_INVALID: { kind: 'error', words: 'the cost of a request is not a positive whole number' },
  CATRACA_DECISION_FOREIGN: { kind: 'error', words: 'the decision was made by another limiter' },
  CATRACA_DURATION_INVALID: { kind: 'error', words: 'a duration cannot be read' },
  CATRACA_FILE_SYNTAX: { kind: 'error', words: 'a file is not the YAML or JSON it should be' },
  CATRACA_FILE_VARIABLE: { kind: 'error', words: 'a file reads an environment variable that is not set' },
  CATRACA_KEY_INVALID: { kind: 'error', words: 'a partition key is not a string' },
  CATRACA_LEASE_REFUSED: { kind: 'error', words: 'a limit that must be exact asks to be leased' },
  CATRACA_LIMITER_CLOSED: { kind: 'error', words: 'the limiter or its store was closed' },
  CATRACA_NAME_INVALID: { kind: 'error', words: 'a limiter or policy name has a form that headers cannot carry' },
  CATRACA_NAME_TAKEN: { kind: 'error', words: 'two limiters on one store have the same name, or none' },
  CATRACA_NOW_INVALID: { kind: 'error', words: 'the given time is not a number of milliseconds since the epoch' },
  CATRACA_OPTION_INVALID: { kind: 'error', words: 'an option has a value that is not allowed' },
  CATRACA_OPTION_UNKNOWN: { kind: 'error', words: 'an option is not known here' },
  CATRACA_PLAN_UNKNOWN: { kind: 'error', words: 'a plan is named that plans.names does not list' },
  CATRACA_POLICY_CYCLE: { kind: 'error', words: 'policies stand in for each other in a circle' },
  CATRACA_POLICY_UNKNOWN: { kind: 'error', words: 'a policy names another one that does not exist' },
  CATRACA_RULE_TOO_FINE: { kind: 'error', words: 'the rule cannot be computed exactly in whole numbers' },
  CATRACA_STORE_UNAVAILABLE: { kind: 'error', words: 'the shared store did not answer what only it can do' },
  CATRACA_WAIT_UNSUPPORTED: { kind: 'error', words: 'a limit has no places in a line that instances share' },
  CATRACA_ADDRESS_PRIVATE: {
    kind: 'diagnosis',
    words: 'the address of a caller is one that no caller from outside has',
  },
  CATRACA_ADDRESS_SHARED: { kind: 'diagnosis', words: 'most callers are counted as one address, which is a proxy' },
  CATRACA_COUNTED_TWICE: { kind: 'diagnosis', words: 'one request is counted twice' },
  CATRACA_FORWARDED_UNTRUSTED: {
    kind: 'diagnosis',
    words: 'a forwarding header came from a connection that is not believed',
  },
  CATRACA_BODY_UNUSABLE: { kind: 'diagnosis', words: 'the own body of refusals could not be sent' },
  CATRACA_INSTANCES_UNSTATED: { kind: 'diagnosis', words: 'nobody said how many instances share a limit' },
  CATRACA_KEY_EMPTY: { kind: 'diagnosis', words: 'an empty partition key was counted as one ordinary key' },
  CATRACA_MEMORY_IN_CLUSTER: { kind: 'diagnosis', words: 'workers of a cluster count each on its own' },
  CATRACA_PLAN_UNDECLARED: { kind: 'diagnosis', words: 'a caller has a plan that the document does not declare' },
  CATRACA_CHECK_ADDRESS_KEY: { kind: 'check', words: 'verified callers are counted by address' },
  CATRACA_CHECK_BURST: { kind: 'check', words: 'a burst is far from the usual share of the limit' },
  CATRACA_CHECK_LEASE: {
    kind: 'check',
    words: 'instances hold units of a limit, which makes it inexact by a known figure',
  },
  CATRACA_CHECK_LOGIN_FAILURE: { kind: 'check', words: 'a login does not say what happens without the store' },
  CATRACA_CHECK_MISSING: { kind: 'check', words: 'a request can lack a part of its key' },
  CATRACA_CHECK_NEVER: { kind: 'check', words: 'a rule lets more pass than its policy promises' },
  CATRACA_CHECK_NO_GLOBAL: { kind: 'check', words: 'nothing limits all callers together' },
  CATRACA_CHECK_ONE_LIMIT: { kind: 'check', words: 'every route has the same limit' },
  CATRACA_CHECK_OVERSOLD: { kind: 'check', words: 'more was sold to all clients than the service sustains' },
  CATRACA_CHECK_QUEUE_WAIT: { kind: 'check', words: 'the last in a queue waits for long' },
  CATRACA_CHECK_STORE_FAILURE: { kind: 'check', words: 'a policy does not say what happens without the store' },
  CATRACA_CHECK_TRUST: { kind: 'check', words: 'addresses are counted and the proxies in front are not stated' },
} as const satisfies Record<string, { kind: 'error' | 'diagnosis' | 'check'; words: string }>

/** A code of the map above. */
export type Code = keyof typeof codes

type CodeOf<Kind> = { [C in Code]: (typeof codes)[C]['kind'] extends Kind ? C : never }[Code]
/** Codes that are thrown. */
export type ErrorCode = CodeOf<'error'>
/** Codes that are reported once as a `diagnosis` event. */
export type DiagnosisCode = CodeOf<'diagnosis'>
/** Codes of checks of a document. */
export type CheckCode = CodeOf<'check'>

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
