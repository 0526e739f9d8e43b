import type { DenialReason } from './reason.ts'

/**
 * The contract between a rule and the stores.
 *
 * A rule is a set of pure functions over a small state and the time. It has no clock, no chance, no I/O. Time is counted
 * in ticks of the rule (`tickUs` microseconds each); every number is whole and below 2^53, so comparisons are exact.
 *
 * State lives where the store keeps it: numbers from index `at`, first `origin`, a time, then `level`, what is used, and
 * with `width` 3 `prior`. It is as of `origin`; every function brings it to `now` by itself. All zeros is the state of a
 * key never seen. A rule of `width` 0 keeps a list instead, an array of its own that {@link Rule.charge} returns, grown
 * where needed; the empty array is a key never seen.
 *
 * Stored time wins over `now` while it is at most `graceTicks` ahead; further ahead a clock was broken, and the state is
 * taken as if its time were now.
 *
 * A key may pass from one rule to another: to another plan's numbers, or to the rule of a reloaded document. What is used
 * stays used, in units, rounded against the caller: {@link Rule.adopt}.
 */
export interface Rule {
  /** The name in policies and headers, such as `token-bucket`. */
  readonly algorithm: string
  /** The most units that can pass at one instant. */
  readonly limit: number
  /** Microseconds per tick: 1, 1,000 or 1,000,000. */
  readonly tickUs: number
  /** {@link graceUs} in ticks. */
  readonly graceTicks: number
  /** Numbers of state per key: 2 or 3, or 0 for a list. */
  readonly width: 0 | 2 | 3
  /** What a refusal by this rule is called. */
  readonly denial: DenialReason
  /** True when admitted units are held until they are released (concurrency). */
  readonly holds: boolean
  /**
   * Whether instances may hold units of it: `kept`, until they are used or the lease is over; `window`, to the end of the
   * window in which they were charged at most, of a counter in parts of the part; `never`, where units are billed, held, or have a place in a queue.
   */
  readonly lease: 'kept' | 'window' | 'never'
  /**
   * Set where units can be charged before they are due, so that a caller knows when it starts and whoever comes later
   * starts later: the bucket family. Such a rule has {@link Rule.startsIn}.
   */
  readonly reserves?: true
  /** The options the rule was made from, defaults filled in, durations in milliseconds. */
  readonly options: Readonly<Record<string, string | number>>
  /** How the rule is told to the script of a shared store. */
  readonly script: ScriptForm

  /**
   * Asks for `cost` units and takes them if they pass: what would pass afterwards, or, refused, minus the ticks to wait.
   * The same as {@link Rule.wait}, {@link Rule.charge} and {@link Rule.remaining} one after the other, reading the state
   * once; a rule that does not mind has no such shortcut.
   */
  take?(state: Float64Array, at: number, now: number, cost: number): number
  /**
   * Ticks after which `cost` units start that are charged now: those of {@link Rule.wait}, or for a shaper those of its
   * delay. Infinity when they can never be, or not before what is charged already has drained: a queue that is full.
   */
  startsIn?(state: Float64Array, at: number, now: number, cost: number): number
  /** Ticks until `cost` units would pass if nobody else asked: 0 when they pass now, Infinity when they never can. */
  wait(state: Float64Array, at: number, now: number, cost: number): number
  /** The most units that would pass at `now`; never negative. */
  remaining(state: Float64Array, at: number, now: number): number
  /** Takes `cost` units at `now`, unasked; 0 only brings the state to now. `permit` is the id of the taker in a list. */
  charge(state: Float64Array, at: number, now: number, cost: number, permit: number): Float64Array
  /**
   * Gives back up to `units` of an earlier charge while they still count, and says how many were given (of a bucket
   * perhaps a fraction: what the refill has not returned already).
   * Never below what others have used; nothing once the charged window is over.
   */
  refund(state: Float64Array, at: number, now: number, charge: Charge, units: number): number
  /** The stored time. */
  originAt(state: Float64Array, at: number): number
  /** What is used, as {@link Snapshot.level}. */
  levelAt(state: Float64Array, at: number, now: number): number
  /** The tick from which the state equals that of a key never seen. */
  endsAt(state: Float64Array, at: number): number

  /** Units in use at `now`, rounded up: the limit less what remains, and more than the limit of a caller in debt. */
  used(state: Float64Array, at: number, now: number): number
  /** How much of a state of `from` this rule can take over; the same in both directions, and through a third rule. */
  kinship(from: Rule): Kinship
  /**
   * Takes over what is used in a state of another rule, which is only read. Of kin the state becomes this one's, whatever
   * was here before: of all kin a caller has one state at a time. Of any other rule what is used there, as of now, is
   * charged here as far as it is more than what is used here already ({@link raise}). Returns as {@link Rule.charge};
   * perhaps the very list of kin, so that one of the two must go. Time is given in µs, as ticks may differ. A state of a
   * broken clock stays one.
   *
   * Bound. Among kin the state says at any instant at least what is used by the units admitted under all of them, so no
   * span admits more than the largest of them alone would. Between rules that are not kin the state of each says at
   * least what is used by the units that it admitted itself, so a span admits at most the sum of their bounds; more
   * cannot be said without remembering every charge in every rule: 100 at once under 100 per hour, then 10 per minute.
   */
  adopt(
    state: Float64Array,
    at: number,
    nowUs: number,
    from: Rule,
    fromState: Float64Array,
    fromAt: number,
  ): Float64Array

  /**
   * Of a state just adopted from kin, makes the used share of the limit what it was under `from`, rounded against the
   * caller. A rule that keeps a list of what it admitted has no such thing.
   */
  rescale?(state: Float64Array, at: number, from: Rule): void

  /** Ticks after `now` at which a state equals that of a key never seen. */
  resetTicks(snapshot: Snapshot, now: number): number
  /**
   * Ticks after `now` before which an admitted request must not start; 0 except for a shaper. `cost` is what a request
   * that was only asked about would add to the snapshot.
   */
  delayTicks(snapshot: Snapshot, now: number, cost: number): number
}

/** A rule under which `wait` reserves, also in a shared store. */
export type ReservingRule = Rule & { readonly reserves: true }

/** A rule as the script of a shared store reads it; texts are made once, not per question. */
export interface ScriptForm {
  /** The letter of its step; a capital for the form with numbers that most rules can leave out. */
  readonly kind: 'b' | 'B' | 'f' | 'c' | 'C' | 's' | 'q' | 'l'
  /** What a stored state says about its rule: a letter, what states must share to mean the same, ",", the limit, ";". */
  readonly name: string
  /** The numbers of the rule in the order in which its step reads them, without those that go with the time. */
  readonly numbers: readonly string[]
  /** Levels per unit of cost. */
  readonly unit: number
  /** Milliseconds a state is kept after it was written; 0 where the step says how long. */
  readonly lifeMs: number
  /** Further numbers of the step at a time; undefined for most. */
  readonly timed?: (nowUs: number) => readonly string[]
}

/** The life of a stored state that equals a new one after `us`: so long and a tenth more, at least 1 s and at most 10 s. */
export function lifeMs(us: number): number {
  return Math.ceil(us / 1_000 + Math.min(10_000, Math.max(1_000, us / 10_000)))
}

/**
 * `same`: states and charges mean the same under both rules, so a charge under one can be refunded under the other.
 * `converts`: states convert without loss (buckets of other numbers), single charges do not. `none`: only what is used
 * can be carried over (windows of another length, another algorithm).
 */
export type Kinship = 'same' | 'converts' | 'none'

/** A state at one decision; what each number means is the rule's own. Of a list, `prior` is the permit. */
export interface Snapshot {
  /** Stored time in ticks after the time of the decision: 0 or a small number for most. */
  readonly lead: number
  readonly level: number
  readonly prior: number
}

/** The state in which `cost` units were charged. */
export interface Charge extends Snapshot {
  /** Stored time, in ticks. */
  readonly origin: number
  readonly cost: number
}

/** A clock that is ahead by more than this is broken: stored time up to here wins over now, later time is rebased. */
export const graceUs = 60_000_000

/** {@link Rule.adopt} from a rule that is not kin. */
export function raise(
  rule: Rule,
  state: Float64Array,
  at: number,
  nowUs: number,
  from: Rule,
  fromState: Float64Array,
  fromAt: number,
): Float64Array {
  const now = Math.floor(nowUs / rule.tickUs)
  const missing = from.used(fromState, fromAt, Math.floor(nowUs / from.tickUs)) - rule.used(state, at, now)
  return missing > 0 ? rule.charge(state, at, now, missing, 0) : state
}
