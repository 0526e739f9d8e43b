import type { Policy } from '../core/decision.ts'
import { CatracaError, show } from '../core/errors.ts'
import { eventNames, type Listeners } from '../core/events.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { Rule } from '../core/rule.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import type { Store } from '../stores/store.ts'
import { Limiter, listenerInvalid, type Rules } from './limiter.ts'

/** Options of {@link createLimiter}. */
export interface LimiterOptions {
  /** Names the limiter in its store, and its policy where it has one rule. Needed when a store serves several limiters. */
  name?: string
  /** Where the states live. Default: a memory store of its own. */
  store?: Store
  /** Listeners by event name. */
  on?: Listeners
}

const optionNames = ['name', 'store', 'on'] as const
/** A form that structured header fields carry as it is. */
const namePattern = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/

/**
 * A limiter of one rule, or of several by name that pass and are charged all or nothing.
 *
 * @example
 * const limiter = createLimiter(tokenBucket({ limit: 600, window: '1m', burst: 90 }))
 * const decision = limiter.take('client:7')
 */
export function createLimiter<const R extends Rules>(rules: R, options: LimiterOptions = {}): Limiter<R> {
  rejectUnknown(optionNames, options, 'options')
  const { name = '', store, on = {} } = options
  rejectUnknown(eventNames, on, 'options.on')
  for (const [event, listener] of Object.entries(on)) {
    if (typeof listener !== 'function') throw listenerInvalid(listener, `options.on.${event}`)
  }
  if (store !== undefined && typeof store?.open !== 'function') {
    throw invalid('options.store', store, 'a store such as memoryStore({ … })')
  }
  if (name !== '') checkName(name, 'options.name')
  const single = isRule(rules)
  const policies: Policy[] = single ? [{ name: name || 'default', rule: rules }] : namedPolicies(rules)
  return new Limiter<R>(name, policies, !single, store ?? memoryStore(), store === undefined, on)
}

function namedPolicies(rules: unknown): Policy[] {
  const entries = typeof rules === 'object' && rules !== null ? Object.entries(rules) : []
  if (entries.length === 0) {
    throw invalid('rules', rules, 'a rule such as tokenBucket({ … }), or an object with at least one rule by name')
  }
  return entries.map(([name, rule]) => {
    checkName(name, `rules.${name}`)
    if (!isRule(rule)) throw invalid(`rules.${name}`, rule, 'a rule such as tokenBucket({ … })')
    return { name, rule }
  })
}

function isRule(value: unknown): value is Rule {
  return typeof value === 'object' && value !== null && typeof (value as Rule).wait === 'function'
}

function checkName(name: unknown, path: string): void {
  if (typeof name === 'string' && namePattern.test(name)) return
  throw new CatracaError(
    'CATRACA_NAME_INVALID',
    `${path} is ${show(name)}; allowed: a letter, then up to 63 letters, digits, "_", "." or "-"`,
    { path, value: name },
  )
}

function invalid(path: string, value: unknown, allowed: string): CatracaError {
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}
