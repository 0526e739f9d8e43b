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
  /** The options the rule was made from, defaults filled in, durations in milliseconds. */
  readonly options: Readonly<Record<string, string | number>>

  /**
   * Asks for `cost` units and takes them if they pass: what would pass afterwards, or, refused, minus the ticks to wait.
   * The same as {@link Rule.wait}, {@link Rule.charge} and {@link Rule.remaining} one after the other, reading the state
   * once; a rule that does not mind has no such shortcut.
   */
  take?(state: Float64Array, at: number, now: number, cost: number): number
  /** Ticks until `cost` units would pass if nobody else asked: 0 when they pass now, Infinity when they never can. */
  wait(state: Float64Array, at: number, now: number, cost: number): number
  /** The most units that would pass at `now`; never negative. */
  remaining(state: Float64Array, at: number, now: number): number
  /** Units in use at `now`, rounded up; a bucket in debt has more than its limit. Where it is not there: see `usedUnits`. */
  used?(state: Float64Array, at: number, now: number): number
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

  /** Ticks after `now` at which a state equals that of a key never seen. */
  resetTicks(snapshot: Snapshot, now: number): number
  /**
   * Ticks after `now` before which an admitted request must not start; 0 except for a shaper. `cost` is what a request
   * that was only asked about would add to the snapshot.
   */
  delayTicks(snapshot: Snapshot, now: number, cost: number): number
}

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

/** What is used of a rule in units, rounded up, for another rule to go on from. */
export function usedUnits(rule: Rule, state: Float64Array, at: number, now: number): number {
  if (rule.used !== undefined) return rule.used(state, at, now)
  const remaining = rule.remaining(state, at, now)
  // A count that was carried over from a larger limit is above this one.
  return remaining > 0 ? rule.limit - remaining : Math.max(rule.limit, rule.levelAt(state, at, now))
}

/** A clock that is ahead by more than this is broken: stored time up to here wins over now, later time is rebased. */
export const graceUs = 60_000_000
