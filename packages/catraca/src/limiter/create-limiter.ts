import type { RuleChange, Source } from '../core/decision.ts'
import { CatracaError, show } from '../core/errors.ts'
import { eventNames, type Listeners } from '../core/events.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { Rule } from '../core/rule.ts'
import { type LeaseOptions, leaseTerms } from '../stores/lease/options.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import type { RemoteStore, StoreFailureMode } from '../stores/remote.ts'
import type { Store } from '../stores/store.ts'
import { optionInvalid, type Rules } from './arguments.ts'
import { Limiter } from './limiter.ts'
import { SharedLimiter } from './shared-limiter.ts'
import { checkFailureMode, checkRuleChange, checkStoreFailure, type StoreFailure } from './store-failure.ts'
import { checkMaxWaiting, defaultMaxWaiting } from './wait-options.ts'

/** Options of {@link createLimiter}. */
export interface LimiterOptions {
  /** Names the limiter in its store, and its policy where it has one rule. Needed when a store serves several limiters. */
  name?: string
  /** Where the states live. Default: a memory store of its own. */
  store?: Store
  /** Listeners by event name. */
  on?: Listeners
  /** What becomes of what a key has used when its numbers change. Default `keep`. */
  onRuleChange?: RuleChange
  /** How many may `wait` at one time; who comes then is refused, `queue-full`. 1 to 10^6. Default 10,000. */
  maxWaiting?: number
}

/** Options of {@link createLimiter} for a limiter whose states many processes share. */
export interface SharedLimiterOptions {
  /** Names the limiter in its store, the same in all processes, and its policy where it has one rule. */
  name: string
  /** Where the states live, such as `redisStore({ … })`. */
  store: RemoteStore
  on?: Listeners
  onRuleChange?: RuleChange
  /** How many may `wait` at one time in this process; who comes then is refused, `queue-full`. Default 10,000. */
  maxWaiting?: number
  /**
   * What decides while the store is gone. `local` (default): this instance's share of the limit; `open`: everybody
   * passes; `closed`: nobody does.
   */
  onStoreFailure?: StoreFailureMode
  /** How many instances share the limits then. Default: one, with a `diagnosis`. */
  storeFailure?: StoreFailure
  /**
   * Name of a policy of the stack whose key decides where in a cluster the states of all its policies stand: then they
   * are charged all or nothing in one trip there too. A single server needs none.
   */
  tag?: string
  /** True where `refund` is called as a matter of course: a refusal is then asked for anew each time. Default false. */
  refunds?: boolean
  /**
   * How instances hold units of every rule of the limiter and decide without a trip. Default: each question goes to the
   * store. Not for quota, concurrency and leakyQueue. By how much the limits can then be missed: `leaseBounds`.
   */
  lease?: LeaseOptions
}

const remoteOptions = ['onStoreFailure', 'storeFailure', 'tag', 'refunds', 'lease'] as const
const optionNames = ['name', 'store', 'on', 'onRuleChange', 'maxWaiting', ...remoteOptions] as const
/** A form that structured header fields carry as it is. */
const namePattern = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/

/**
 * A limiter of one rule, or of several by name that pass and are charged all or nothing.
 *
 * @example
 * const limiter = createLimiter(tokenBucket({ limit: 600, window: '1m', burst: 90 }))
 * const decision = limiter.take('client:7')
 */
export function createLimiter<const R extends Rules>(rules: R, options: SharedLimiterOptions): SharedLimiter<R>
export function createLimiter<const R extends Rules>(rules: R, options?: LimiterOptions): Limiter<R>
export function createLimiter<const R extends Rules>(
  rules: R,
  options: LimiterOptions | SharedLimiterOptions = {},
): Limiter<R> | SharedLimiter<R> {
  rejectUnknown(optionNames, options, 'options')
  const { name = '', store, on = {}, onRuleChange, maxWaiting = defaultMaxWaiting } = options
  rejectUnknown(eventNames, on, 'options.on')
  for (const [event, listener] of Object.entries(on)) {
    if (typeof listener !== 'function') throw optionInvalid(`options.on.${event}`, listener, 'a function')
  }
  if (store !== undefined && typeof store?.open !== 'function') {
    throw optionInvalid('options.store', store, 'a store such as memoryStore({ … })')
  }
  if (name !== '') checkName(name, 'options.name')
  checkMaxWaiting(maxWaiting)
  const stack = !isRule(rules)
  const change =
    onRuleChange === undefined ? {} : { onRuleChange: checkRuleChange(onRuleChange, 'options.onRuleChange') }
  const policies = policiesOf(rules, name).map((policy) => ({ ...policy, ...change }))
  if (isRemote(store)) return shared<R>(name, policies, stack, { ...options, store, maxWaiting }, on)
  for (const option of remoteOptions) {
    const value = (options as SharedLimiterOptions)[option]
    if (value === undefined) continue
    throw optionInvalid(`options.${option}`, value, 'only with a remote store, which can be gone or a cluster')
  }
  return new Limiter<R>(name, policies, stack, store ?? memoryStore(), store === undefined, on, maxWaiting)
}

function shared<R extends Rules>(
  name: string,
  policies: readonly Omit<Source, 'issuer'>[],
  stack: boolean,
  {
    store,
    onStoreFailure,
    storeFailure,
    tag,
    refunds = false,
    lease,
    maxWaiting = defaultMaxWaiting,
  }: Omit<SharedLimiterOptions, 'name'>,
  on: Listeners,
): SharedLimiter<R> {
  if (name === '') throw optionInvalid('options.name', '', 'a name, the same in all processes that share the states')
  const mode =
    onStoreFailure === undefined ? {} : { onStoreFailure: checkFailureMode(onStoreFailure, 'options.onStoreFailure') }
  if (typeof refunds !== 'boolean') throw optionInvalid('options.refunds', refunds, 'true or false')
  const names = policies.map((policy) => policy.name)
  if (tag !== undefined && !(stack && names.includes(tag))) {
    throw optionInvalid('options.tag', tag, stack ? `a policy of the stack: ${names.join(', ')}` : 'only with a stack')
  }
  return new SharedLimiter<R>(name, {
    policies: policies.map((policy) => {
      const terms = lease === undefined ? {} : { lease: leaseTerms(policy.rule, lease, 'options.lease') }
      return { ...policy, ...mode, ...terms, refunds }
    }),
    stack,
    store,
    on,
    failure: storeFailure === undefined ? undefined : checkStoreFailure(storeFailure, 'options.storeFailure'),
    tag: tag === undefined ? undefined : names.indexOf(tag),
    maxWaiting,
  })
}

function isRemote(store: Store | RemoteStore | undefined): store is RemoteStore {
  return store !== undefined && 'remote' in store
}

function policiesOf(rules: unknown, name: string): Omit<Source, 'issuer'>[] {
  if (isRule(rules)) return [{ name: name || 'default', rule: rules }]
  const entries = typeof rules === 'object' && rules !== null ? Object.entries(rules) : []
  if (entries.length === 0) {
    throw optionInvalid(
      'rules',
      rules,
      'a rule such as tokenBucket({ … }), or an object with at least one rule by name',
    )
  }
  return entries.map(([policy, rule]) => {
    checkName(policy, `rules.${policy}`)
    if (!isRule(rule)) throw optionInvalid(`rules.${policy}`, rule, 'a rule such as tokenBucket({ … })')
    return { name: policy, rule }
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
