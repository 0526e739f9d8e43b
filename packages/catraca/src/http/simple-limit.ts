import { registry } from '../algorithms/registry.ts'
import { checkCost } from '../core/cost.ts'
import type { Decision } from '../core/decision.ts'
import type { Duration } from '../core/duration.ts'
import { CatracaError, show } from '../core/errors.ts'
import type { Listeners } from '../core/events.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { Rule } from '../core/rule.ts'
import { createLimiter, type LimiterOptions } from '../limiter/create-limiter.ts'
import type { Limiter } from '../limiter/limiter.ts'
import type { SharedLimiter } from '../limiter/shared-limiter.ts'
import type { StoreFailure } from '../limiter/store-failure.ts'
import type { TrustEntry } from '../policy/document.ts'
import { normalPath } from '../policy/path.ts'
import { parseRoute, type Route } from '../policy/route.ts'
import type { RemoteStore, StoreFailureMode } from '../stores/remote.ts'
import type { Store } from '../stores/store.ts'
import { type AnswerOptions, answerOptionNames } from './answer-options.ts'
import { type Answer, Answers } from './answers.ts'
import { Diagnoses } from './diagnoses.ts'
import { PolicyFields } from './limit-fields.ts'
import type { GuardRequest } from './request.ts'
import { Trust } from './trust.ts'
import { TrustWatch } from './trust-watch.ts'

/** One limit as numbers. */
export interface LimitOptions {
  /** Requests per window: a whole number from 1 to 10^12. */
  limit: number
  /** Time such as `'1m'`, or milliseconds. */
  window: Duration
  /** Default `sliding-counter`. */
  algorithm?: 'sliding-counter' | 'sliding-log' | 'fixed-window' | 'token-bucket' | 'gcra' | 'leaky-meter'
  /** Requests that can pass at once, for the algorithms with a bucket. Default: the limit. */
  burst?: number
}

/** Options of the simple form of `rateLimit`. */
export interface RateLimitOptions<Q> extends LimitOptions, AnswerOptions {
  /** Whom to count. Default: the address. An empty key counts as the address. */
  key?: (request: Q) => string | undefined
  /** True for requests that are not counted. */
  skip?: (request: Q) => boolean
  /** Units a request costs: a whole number from 1. Default 1. */
  cost?: number | ((request: Q) => number)
  /** Other limits for some routes in place of this one, such as `{ 'POST /login': { limit: 5, window: '15m' } }`; false for none. */
  routes?: Readonly<Record<string, LimitOptions | false>>
  /** How the caller's address is found behind proxies. Default: that of the connection. */
  trust?: TrustEntry
  /**
   * Where the states live. Default: a memory store of its own. Beside one that instances share, `storeFailure` says how many
   * there are.
   */
  store?: Store | RemoteStore
  /** What decides while a shared store is gone. Default `local`. */
  onStoreFailure?: StoreFailureMode
  /** How many instances share the limit, and what they admit together while the store is gone. */
  storeFailure?: StoreFailure
  /** Names the limit in header fields and in a store that serves several. Default `default`. */
  name?: string
  /** Listeners by event name. */
  on?: Listeners
  /** Source of the spread of `Retry-After`: numbers in [0, 1). Default `Math.random`. */
  random?: () => number
}

const limitNames = ['limit', 'window', 'algorithm', 'burst'] as const
const storeNames = ['store', 'onStoreFailure', 'storeFailure', 'name', 'on'] as const
/** `settle` is the adapter's, and allowed beside the others. */
const otherNames = ['key', 'skip', 'cost', 'settle', 'routes', 'trust', 'random', ...storeNames] as const
const algorithms = ['sliding-counter', 'sliding-log', 'fixed-window', 'token-bucket', 'gcra', 'leaky-meter'] as const

type AnyLimiter = Limiter<Rule> | SharedLimiter<Rule>

interface Override {
  readonly route: Route
  readonly limiter: AnyLimiter | undefined
}

/** One limit for all requests, with other numbers for some routes: what `rateLimit({ limit, window })` asks. */
export class SimpleLimit<Q> {
  private readonly options: RateLimitOptions<Q>
  private readonly limiter: AnyLimiter
  private readonly shared: boolean
  private readonly overrides: readonly Override[]
  private readonly answers: Answers
  private readonly trust: Trust
  private readonly diagnoses: Diagnoses

  constructor(options: RateLimitOptions<Q>) {
    rejectUnknown([...limitNames, ...otherNames, ...answerOptionNames], options, 'options')
    for (const name of ['key', 'skip', 'random'] as const) checkFunction(options[name], `options.${name}`)
    if (typeof options.cost === 'number') checkCost(options.cost)
    else checkFunction(options.cost, 'options.cost')
    const { name = 'default', store, on, routes = {}, trust, random = Math.random } = options
    const given = Object.entries(options).filter(([key, value]) => isStoreName(key) && value !== undefined)
    const settings = Object.fromEntries(given) as LimiterOptions
    this.shared = store !== undefined && 'remote' in store
    const rule = ruleOf(options, 'options')
    // Throws here for a name that header fields cannot have, not at every request.
    checkName(name, rule)
    this.options = options
    this.limiter = createLimiter(rule, { ...settings, name })
    this.overrides = Object.entries(routes).map(([text, limit], index) => {
      const path = `options.routes.${text}`
      const route = parseRoute(text, path)
      if (limit === false) return { route, limiter: undefined }
      rejectUnknown(limitNames, limit, path)
      return { route, limiter: createLimiter(ruleOf(limit, path), { ...settings, name: `${name}-${index + 1}` }) }
    })
    this.diagnoses = new Diagnoses((event) => on?.diagnosis?.(event))
    this.answers = new Answers(options, random, (code, message) => this.diagnoses.tell(code, message))
    this.trust = new Trust(trust, 'options.trust', new TrustWatch(this.diagnoses))
    if (!this.shared) this.diagnoses.memoryStore()
  }

  /**
   * Counts a request, at once where nothing has to be waited for; undefined for one that is not counted. Throws when `key`
   * or `cost` do, or say what is not allowed.
   */
  take(request: GuardRequest<Q>): Decision | Promise<Decision> | undefined {
    const { skip, key, cost } = this.options
    if (skip?.(request.raw) === true) return undefined
    const limiter = this.overrides.length === 0 ? this.limiter : this.limiterFor(request.method, request.target)
    if (limiter === undefined) return undefined
    const given = key?.(request.raw)
    if (given === '') this.tellEmptyKey()
    // The address is asked for only where it counts: not every platform has one.
    const caller = given || this.addressOf(request)
    const units = cost === undefined ? undefined : { cost: typeof cost === 'number' ? cost : cost(request.raw) }
    if (!this.shared) return limiter.take(caller, units)
    return limiter.tryTake(caller, units) ?? limiter.take(caller, units)
  }

  /** Makes what an admitted request was charged what it really cost, from 0 on; once. */
  settle(decision: Decision, units: number): void {
    for (const limiter of [this.limiter, ...this.overrides.map((one) => one.limiter)]) {
      if (limiter?.policies.includes(decision.source) === true) void limiter.settle(decision, units)
    }
  }

  /** Is told of a request that an earlier limit counted: where it was this one, or one of the same name, that is a mistake. */
  sawBefore({ source: { name } }: Decision): void {
    const { name: own = 'default' } = this.options
    if (name === own) this.diagnoses.twice(name)
  }

  /** True when limit fields are to be taken off answers that shared caches may keep. */
  get omitsCacheable(): boolean {
    return this.answers.omitsCacheable
  }

  fieldsOf(decision: Decision): string[] {
    return this.answers.fieldsOfOne(decision)
  }

  /** @param acceptLanguage The request header of that name. */
  refusalOf(decision: Decision, acceptLanguage?: string): Answer {
    return this.answers.refusalOfOne(decision, acceptLanguage)
  }

  private tellEmptyKey(): void {
    const message = 'options.key gave an empty text, which counts as the address of the caller'
    this.diagnoses.tell('CATRACA_KEY_EMPTY', message)
  }

  private addressOf(request: GuardRequest<Q>): string {
    const { trust } = this
    return trust.networkOf(trust.addressOf(request.peer, (name) => request.header(name)))
  }

  private limiterFor(method: string, target: string): AnyLimiter | undefined {
    const path = normalPath(target, false)
    for (const { route, limiter } of this.overrides) {
      // No limit only in every reading of the path, or another spelling would be a way out.
      if (limiter === undefined ? route.matchesSurely(method, path) : route.matches(method, path)) return limiter
    }
    return this.limiter
  }
}

function isStoreName(name: string): boolean {
  return (storeNames as readonly string[]).includes(name)
}

function ruleOf({ limit, window, algorithm = 'sliding-counter', burst }: LimitOptions, path: string): Rule {
  if (!algorithms.includes(algorithm)) {
    throw new CatracaError(
      'CATRACA_OPTION_INVALID',
      `${path}.algorithm is ${show(algorithm)}; allowed: ${algorithms.join(', ')}`,
      {
        path: `${path}.algorithm`,
        value: algorithm,
      },
    )
  }
  const make = registry[algorithm]?.make as (options: object) => Rule
  return make({ limit, window, ...(burst !== undefined && { burst }) })
}

function checkName(name: string, rule: Rule): PolicyFields {
  return new PolicyFields(name, rule)
}

export function checkFunction(value: unknown, path: string): void {
  if (value === undefined || typeof value === 'function') return
  throw new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: a function`, { path, value })
}
