import { floorDiv } from './integer.ts'
import { type DenialReason, type Reason, reasonCode, reasons } from './reason.ts'
import type { Charge, Rule } from './rule.ts'

/** A rule under its name in a limiter. */
export interface Policy {
  readonly name: string
  readonly rule: Rule
}

/** How an instance may hold units of a policy in a shared store, to decide without a trip. */
export interface LeaseTerms {
  /** Units held of one key at most when they are few: 1 to 10^6. */
  readonly block: number
  /** How long held units last, and how far back use is looked at, µs. */
  readonly ttlUs: number
}

/** A policy together with the limiter that asks it, which can take permits back. */
export interface Source extends Policy {
  readonly issuer: Issuer
  /** What decides while a shared store is gone. Default `local`. */
  readonly onStoreFailure?: 'local' | 'open' | 'closed'
  /** True where charges are given back as a matter of course: a refusal is then never remembered. */
  readonly refunds?: boolean
  /** What becomes of what a key has used when its numbers change. Default `keep`. */
  readonly onRuleChange?: RuleChange
  /** Undefined: every question goes to the store. */
  readonly lease?: LeaseTerms | undefined
}

/**
 * `keep`: used units stay used. `proportional`: the used share of the limit stays, where both rules count alike in
 * numbers, else as `keep`. `reset`: the key is as never seen. 60 of 100 used and the limit becomes 200: 140, 80, 200 left.
 */
export type RuleChange = 'keep' | 'proportional' | 'reset'

/** Who made a decision. */
export interface Issuer {
  /** A promise where a shared store has to be told; it never rejects. */
  release(decision: Decision): void | Promise<void>
}

/** What one policy said, as `decision.policies` lists it. */
export interface PolicyDecision {
  readonly policy: string
  /** False when this policy refused. In a stack a policy may allow what another refuses. */
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  /** `observe` for a policy that is counted and refuses nothing. */
  readonly mode: 'enforce' | 'observe'
  readonly wouldDeny: boolean
}

/** Bits of {@link Decision.state}: the code of the reason, then what happened to the decision. */
const reasonBits = 15
export const peeked = 16
export const settled = 32
export const degraded = 64
/** Above them stands how many resets the ledger had seen: a charge from before a reset is not refunded after it. */
export const generationUnit = 128

const disposeSymbol: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose')
const asyncDisposeSymbol: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')

/** How a request is answered to which a decision belongs. */
export type Answered = 'pass' | 'queue' | 'degrade' | 'mark' | 'reject'

/** Answers other than pass and reject: few are, so decisions do not carry them. */
const answers = new WeakMap<Decision, Answered>()

/** Notes how the request of a decision is answered. */
export function sayAnswer(decision: Decision, answer: Answered): void {
  answers.set(decision, answer)
}

/** Numbers for receipts, given when they are first asked for: few are, so decisions do not carry them. */
const receipts = new WeakMap<Decision, number>()
let lastReceipt = 0

/**
 * The answer to one request. A denial is a value, not an exception.
 *
 * It holds raw whole numbers, from which every figure is derived when it is read. The figures are those of one policy.
 * Of a stack that is, refused, the policy with the longest wait; admitted, the one with the least share left;
 * {@link Decision.policies} lists all. Cost: one object.
 */
export class Decision implements Charge {
  /** @internal The policy that spoke. */
  readonly source: Source
  /** The partition key that was asked for. */
  readonly key: string
  /** @internal The reason, bits {@link peeked}, {@link settled}, {@link degraded}, and the {@link Decision.generation}. */
  state: number
  /** @internal Time of the decision, µs since the epoch. */
  readonly nowUs: number
  /** Units the request asked for. */
  readonly cost: number
  /** Units that would pass now; never negative. */
  readonly remaining: number
  /** @internal A small number for most, which takes no memory of its own. */
  readonly lead: number
  /** @internal */
  readonly level: number
  /** @internal */
  readonly prior: number
  /**
   * @internal Refused: µs until the request passes, Infinity when it never can. Admitted: µs until the units reserved for
   * it are due; 0 for what was taken at once.
   */
  readonly waitUs: number

  /** @internal */
  constructor(
    source: Source,
    key: string,
    state: number,
    nowUs: number,
    cost: number,
    remaining: number,
    lead: number,
    level: number,
    prior: number,
    waitUs: number,
  ) {
    this.source = source
    this.key = key
    this.state = state
    this.nowUs = nowUs
    this.cost = cost
    this.remaining = remaining
    this.lead = lead
    this.level = level
    this.prior = prior
    this.waitUs = waitUs
  }

  /** True when the request may go on. */
  get allowed(): boolean {
    return (this.state & reasonBits) === 0
  }

  /** Why the request was refused; `ok` when it was admitted. */
  get reason(): Reason {
    return reasons[this.state & reasonBits] as Reason
  }

  /**
   * How the request is answered: `pass` or `reject`; from a guard also `queue` (it waited for its turn), `degrade` (it was
   * charged less, and is to be answered with less) and `mark` (it is over the limit and passes all the same).
   */
  get answer(): Answered {
    return answers.get(this) ?? (this.allowed ? 'pass' : 'reject')
  }

  /** Name of the policy the figures belong to. */
  get policy(): string {
    return this.source.name
  }

  /** Most units that can pass at one instant: the capacity of a bucket, the limit of a window. */
  get limit(): number {
    return this.source.rule.limit
  }

  /**
   * Milliseconds, exact to the microsecond, until the same request passes if nobody else asks: refused before, admitted
   * at it. 0 when admitted, Infinity when the cost can never fit. For concurrency the latest possible end. Where others
   * wait for the key, no earlier than the first of them is served.
   */
  get retryAfterMs(): number {
    return this.allowed ? 0 : this.waitUs / 1_000
  }

  /** Milliseconds until nothing of the limit is used any more. */
  get resetAfterMs(): number {
    return fromNow(this, this.source.rule.resetTicks(this, nowTick(this)))
  }

  /**
   * Milliseconds from the decision on before which the request must not start: of a stack the longest. 0 but for
   * `leakyQueue`, and for what was reserved by `wait`, which sleeps so long itself before it resolves.
   */
  get delayMs(): number {
    if (!this.allowed) return 0
    if (this.waitUs > 0) return this.waitUs / 1_000
    return fromNow(this, this.source.rule.delayTicks(this, nowTick(this), this.cost - this.charged))
  }

  /** Units charged to the policy: its cost when admitted; 0 when refused, by it or its stack, or only peeked at. */
  get charged(): number {
    return this.allowed && (this.state & peeked) === 0 ? this.cost : 0
  }

  /** True when the shared store did not answer and the declared failure mode decided. Never with a memory store. */
  get degraded(): boolean {
    return (this.state & degraded) !== 0
  }

  /** Names this charge; unique in the process, empty when nothing was charged. */
  get receipt(): string {
    if (this.charged === 0) return ''
    const known = receipts.get(this) ?? ++lastReceipt
    receipts.set(this, known)
    return `${this.policy}#${known}`
  }

  /** What every policy of the stack said, in the order they were given. */
  get policies(): PolicyDecision[] {
    return this.stack.map((one) => ({
      policy: one.policy,
      allowed: one.allowed,
      limit: one.limit,
      remaining: one.remaining,
      retryAfterMs: one.retryAfterMs,
      resetAfterMs: one.resetAfterMs,
      mode: 'enforce',
      wouldDeny: !one.allowed,
    }))
  }

  /** @internal Resets the ledger had seen when it decided. */
  get generation(): number {
    return Math.floor(this.state / generationUnit)
  }

  /** @internal One decision per policy. */
  get stack(): readonly Decision[] {
    return [this]
  }

  /** @internal */
  get origin(): number {
    return nowTick(this) + this.lead
  }

  /** Gives held permits back; a no-op when nothing is held, when it was done before, or after the permit expired. */
  release(): void {
    void this.source.issuer.release(this)
  }

  /** `using decision = limiter.take(key)` releases at the end of the block. */
  [disposeSymbol](): void {
    this.release()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    await this.source.issuer.release(this)
  }

  /** All figures as plain data; `Infinity` becomes null in JSON. */
  toJSON(): Record<string, unknown> {
    return {
      allowed: this.allowed,
      policy: this.policy,
      limit: this.limit,
      remaining: this.remaining,
      retryAfterMs: finite(this.retryAfterMs),
      resetAfterMs: this.resetAfterMs,
      delayMs: this.delayMs,
      charged: this.charged,
      receipt: this.receipt,
      reason: this.reason,
      degraded: this.degraded,
      policies: this.policies.map((one) => ({ ...one, retryAfterMs: finite(one.retryAfterMs) })),
    }
  }
}

/** The decision of several policies. */
class StackDecision extends Decision {
  private readonly parts: readonly Decision[]

  constructor(binding: Decision, state: number, parts: readonly Decision[]) {
    const { source, key, nowUs, cost, remaining, lead, level, prior, waitUs } = binding
    super(source, key, state, nowUs, cost, remaining, lead, level, prior, waitUs)
    this.parts = parts
  }

  override get stack(): readonly Decision[] {
    return this.parts
  }

  override get delayMs(): number {
    return this.allowed ? Math.max(...this.parts.map(({ delayMs }) => delayMs)) : 0
  }
}

// An engine keeps a number field that has only seen numbers in a box of its own per object. Having seen something else
// once, it stores small numbers in place and shares the box of a clock reading: fewer allocations per decision.
const others = [null, undefined] as unknown as number[]
others.map((other) => new Decision({} as Source, '', 0, other, 0, other, other, other, other, other))

function nowTick(decision: Decision): number {
  const { tickUs } = decision.source.rule
  return tickUs === 1 ? decision.nowUs : floorDiv(decision.nowUs, tickUs)
}

/** `ticks` after the tick of the decision, as milliseconds after its exact time. */
function fromNow(decision: Decision, ticks: number): number {
  if (ticks <= 0) return 0
  return ((nowTick(decision) + ticks) * decision.source.rule.tickUs - decision.nowUs) / 1_000
}

/**
 * The decision of a stack. It shows the policy that binds: of the refusing the one with the longest wait, else the one
 * with the least share left.
 */
export function decide(stack: readonly Decision[], state: number): Decision {
  let binding = stack[0] as Decision
  for (const one of stack) {
    const tighter = one.allowed
      ? binding.allowed && one.remaining / one.limit < binding.remaining / binding.limit
      : one.waitUs > binding.waitUs
    if (tighter) binding = one
  }
  return new StackDecision(binding, reasonCode(binding.reason) | state, stack)
}

/** The decision of a policy under another state, reason and wait; its other figures stay. */
function altered(one: Decision, state: number, remaining: number, waitUs: number): Decision {
  const { source, key, nowUs, cost, lead, level, prior } = one
  return new Decision(source, key, state, nowUs, cost, remaining, lead, level, prior, waitUs)
}

/** What a policy answers to who gave up before it was asked: a refusal without figures. */
export function unaskedOf(source: Source, key: string, cost: number, nowUs: number): Decision {
  return new Decision(source, key, reasonCode('aborted') | peeked, nowUs, cost, 0, 0, 0, 0, 0)
}

/** What one policy said, as a refusal for `reason` that charged nothing. */
export function refusal(one: Decision, reason: DenialReason, waitUs: number, remaining = one.remaining): Decision {
  return altered(one, reasonCode(reason) | peeked | (one.state & degraded), remaining, waitUs)
}

/** What one policy said, with nothing charged by it: of a part of a stack that another part refuses. */
export function uncharged(one: Decision): Decision {
  return one.allowed ? altered(one, one.state | peeked, one.remaining, 0) : one
}

/** An admitted decision whose units are due only after `us`. */
export function startingIn(one: Decision, us: number): Decision {
  return us === 0 ? one : altered(one, one.state, one.remaining, us)
}

/** The same charge for who knows that `levels` of what was given back since were charged after it. */
export function knowingGivenBack(one: Decision, levels: number): Decision {
  const { source, key, state, nowUs, cost, remaining, lead, level, prior, waitUs } = one
  return new Decision(source, key, state, nowUs, cost, remaining, lead, level, prior + levels, waitUs)
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}
