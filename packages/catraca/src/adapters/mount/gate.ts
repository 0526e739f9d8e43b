import { checkCost } from '../../core/cost.ts'
import { Decision } from '../../core/decision.ts'
import { CatracaError, show } from '../../core/errors.ts'
import { rejectUnknown } from '../../core/parameters.ts'
import type { Answer } from '../../http/answers.ts'
import { type AnyGuard, Guard } from '../../http/guard.ts'
import type { GuardRequest } from '../../http/request.ts'
import { checkFunction, SimpleLimit } from '../../http/simple-limit.ts'
import type { KeptAnswer, Verdict } from '../../policy/verdict.ts'
import type { GuardLike, MountOptions, Settle, What } from './options.ts'

/** What was said about one request; a verdict of a guard is one. */
export interface Pass {
  readonly allowed: boolean
  readonly decision: Decision | undefined
  readonly holds: boolean
  readonly keep: ((answer: KeptAnswer) => void) | undefined
  readonly keepBytes: number
  readonly told: 'degrade' | 'mark' | undefined
}

/** A request as an adapter shows it; the gate says how many units it costs. */
export interface Asked<Q> extends GuardRequest<Q> {
  units: number
}

/** One limit or a guard where it is mounted: all that an adapter asks, in one form. */
export interface Gate<Q, S> {
  /** What the request really cost, once its answer was sent. */
  readonly settles: Settle<Q, S> | undefined
  /** True where answers that caches may share are to carry no limit. */
  readonly omits: boolean
  /** True where the service believes the header `catraca-answer`, so that callers must not write it. */
  readonly tells: boolean
  /**
   * Asks about a request; undefined for one that is not counted. Throws, or rejects, what `skip`, `cost`, `key` and
   * `identify` do.
   *
   * @param before What an outer limit said about the same request.
   */
  ask(request: Asked<Q>, before: unknown): Pass | Promise<Pass> | undefined
  fieldsOf(pass: Pass): string[]
  answerOf(pass: Pass): Answer
  release(pass: Pass): void
  refund(pass: Pass): void
  settle(pass: Pass, units: number): void
}

const mountNames = ['skip', 'cost', 'settle'] as const

/** The gate of one limit, or of a guard. Throws a `CatracaError` for options that are not allowed. */
export function gateOf<Q, S>(what: What<Q, S>, mount: MountOptions<Q, S> = {}): Gate<Q, S> {
  if (isGuard(what)) return new GuardGate(what as AnyGuard<Q>, mount)
  for (const name of Object.keys(mount)) throw besideLimit(name)
  checkObject(what)
  const { settle, ...options } = what
  checkFunction(settle, 'options.settle')
  return new SimpleGate(new SimpleLimit<Q>(options), settle)
}

/** True for a guard, false for the options of one limit. */
export function isGuard<Q, S>(what: What<Q, S>): what is GuardLike<Q> {
  return what instanceof Guard
}

function checkObject(what: unknown): void {
  if (typeof what === 'object' && what !== null) return
  const message = `rateLimit was given ${show(what)}; allowed: the options of one limit, or a guard of createGuard`
  throw new CatracaError('CATRACA_OPTION_INVALID', message, { path: 'options', value: what })
}

function besideLimit(name: string): CatracaError {
  const message = `options.${name} stands beside one limit; allowed: among its options, { limit, window, ${name} }`
  return new CatracaError('CATRACA_OPTION_UNKNOWN', message, { path: `options.${name}`, value: name })
}

class GuardGate<Q, S> implements Gate<Q, S> {
  readonly settles: Settle<Q, S> | undefined
  readonly tells = true
  private readonly guard: AnyGuard<Q>
  private readonly skip: ((request: Q) => boolean) | undefined
  private readonly cost: number | ((request: Q) => number)

  constructor(guard: AnyGuard<Q>, mount: MountOptions<Q, S>) {
    rejectUnknown(mountNames, mount, 'options')
    const { skip, cost = 1, settle } = mount
    checkFunction(skip, 'options.skip')
    checkFunction(settle, 'options.settle')
    if (typeof cost !== 'function') checkCost(cost)
    this.guard = guard
    this.skip = skip
    this.cost = cost
    this.settles = settle
  }

  get omits(): boolean {
    return this.guard.omitsCacheable
  }

  ask(request: Asked<Q>, before: unknown): Pass | Promise<Pass> | undefined {
    if (this.skip?.(request.raw) === true) return undefined
    const { cost } = this
    request.units = typeof cost === 'number' ? cost : checkCost(cost(request.raw))
    if (before instanceof Decision) this.guard.sawBefore(before)
    return this.guard.ask(request)
  }

  fieldsOf(pass: Pass): string[] {
    return this.guard.fieldsOf(pass as Verdict)
  }

  answerOf(pass: Pass): Answer {
    return this.guard.answerOf(pass as Verdict)
  }

  release(pass: Pass): void {
    this.guard.release(pass as Verdict)
  }

  refund(pass: Pass): void {
    this.guard.refund(pass as Verdict)
  }

  settle(pass: Pass, units: number): void {
    this.guard.settle(pass as Verdict, units)
  }
}

/** A decision of one limit, which holds nothing and asks for nothing. */
class SimplePass implements Pass {
  readonly decision: Decision
  readonly acceptLanguage: string | undefined

  constructor(decision: Decision, acceptLanguage: string | undefined) {
    this.decision = decision
    this.acceptLanguage = acceptLanguage
  }

  get holds(): boolean {
    return false
  }

  get keep(): undefined {
    return undefined
  }

  get keepBytes(): number {
    return 0
  }

  get told(): undefined {
    return undefined
  }

  get allowed(): boolean {
    return this.decision.allowed
  }
}

function passOf<Q>(decision: Decision, request: Asked<Q>): Pass {
  return new SimplePass(decision, decision.allowed ? undefined : request.header('accept-language'))
}

class SimpleGate<Q, S> implements Gate<Q, S> {
  readonly settles: Settle<Q, S> | undefined
  readonly tells = false
  private readonly limit: SimpleLimit<Q>

  constructor(limit: SimpleLimit<Q>, settle: Settle<Q, S> | undefined) {
    this.limit = limit
    this.settles = settle
  }

  get omits(): boolean {
    return this.limit.omitsCacheable
  }

  ask(request: Asked<Q>, before: unknown): Pass | Promise<Pass> | undefined {
    if (before instanceof Decision) this.limit.sawBefore(before)
    const decision = this.limit.take(request)
    if (decision === undefined) return undefined
    return decision instanceof Promise ? decision.then((known) => passOf(known, request)) : passOf(decision, request)
  }

  fieldsOf(pass: Pass): string[] {
    return this.limit.fieldsOf(pass.decision as Decision)
  }

  answerOf(pass: Pass): Answer {
    return this.limit.refusalOf(pass.decision as Decision, (pass as SimplePass).acceptLanguage)
  }

  release(): void {}

  refund(pass: Pass): void {
    this.settle(pass, 0)
  }

  settle({ decision }: Pass, units: number): void {
    this.limit.settle(decision as Decision, units)
  }
}
