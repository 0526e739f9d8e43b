/**
 * The contract between a rule and the stores.
 *
 * A rule is a pure step over a small state: it reads a state and the time, and says what happens to a request. It has
 * no clock, no chance, no I/O. Time is counted in ticks of the rule (`tickUs` microseconds each); every number is a
 * whole number below 2^53, so all comparisons are exact.
 *
 * State lives where the store keeps it, as numbers from index `at`: `origin`, `level` and, with `width` 3, `prior`.
 * All zeros is the state of a key never seen. A rule with `width` 0 keeps a list instead: its state is an array of its
 * own ({@link Rule.commit} returns it, grown where needed), and the empty array is a key never seen.
 */
export interface Rule {
  /** The name in policies and headers, such as `token-bucket`. */
  readonly algorithm: string
  /** The most units that can pass at one instant. */
  readonly limit: number
  /** Microseconds per tick: 1, 1,000 or 1,000,000. */
  readonly tickUs: number
  /** Numbers of state per key: 2 or 3, or 0 for a list. */
  readonly width: 0 | 2 | 3
  /** What a refusal by this rule is called. */
  readonly denial: DenialReason
  /** True when admitted units are held until they are released (concurrency). */
  readonly holds: boolean
  /** The options the rule was made from, defaults filled in, durations in milliseconds. */
  readonly options: Readonly<Record<string, string | number>>

  /**
   * Says what `cost` units (0 to 2^53−1; 0 asks without taking) would meet at tick `now`, in `out`. Changes no state.
   * The snapshot in `out` is the state after the request: charged if it passes, uncharged if not.
   */
  evaluate(state: Float64Array, at: number, now: number, cost: number, out: Outcome): void
  /** Writes the snapshot of the last {@link Rule.evaluate} into the state; `charged` says whether its cost is taken. */
  commit(state: Float64Array, at: number, cost: number, charged: boolean, out: Outcome): Float64Array
  /**
   * Gives back up to `units` of an earlier charge while they still count, and says how many were given.
   * Never below what others have used; nothing once the charged window is over.
   */
  refund(state: Float64Array, at: number, now: number, charge: Charge, units: number): number
  /** The tick from which the state equals that of a key never seen. */
  endsAt(state: Float64Array, at: number): number
  /** Units that would pass at the instant of the snapshot. */
  remaining(snapshot: Snapshot, now: number): number
  /** Ticks after `now` at which a snapshot equals a key never seen. */
  resetTicks(snapshot: Snapshot, now: number): number
  /** Ticks after `now` before which an admitted request must not start; 0 except for a shaper. */
  delayTicks(snapshot: Snapshot, now: number): number
}

/** State in numbers; what each means is the rule's own. */
export interface Snapshot {
  readonly origin: number
  readonly level: number
  readonly prior: number
}

/** A snapshot taken when `cost` units were charged. */
export interface Charge extends Snapshot {
  readonly cost: number
}

/** Why a request was refused; `ok` is the reason of an admitted one. */
export type DenialReason =
  | 'limited'
  | 'impossible'
  | 'blocked'
  | 'concurrency'
  | 'quota'
  | 'queue-full'
  | 'ceiling'
  | 'store-closed'
  | 'aborted'
export type Reason = 'ok' | DenialReason

/** A clock that is ahead by more than this is broken: stored time up to here wins over now, later time is rebased. */
export const graceUs = 60_000_000

/** What {@link Rule.evaluate} says. One object is used over and over; nobody keeps it. */
export class Outcome implements Snapshot {
  allowed = false
  /** Ticks until the request would pass if nobody else asked; 0 when it passes, Infinity when it never can. */
  wait = 0
  origin = 0
  level = 0
  prior = 0
  /** Entries at the head of a list that no longer count. */
  drop = 0
  /** Ticks by which the stored time was ahead of a broken clock and was moved back; 0 when it was not. */
  rebase = 0
  /** The id that an admitted holder of permits gets; set by the caller before {@link Rule.evaluate}. */
  permit = 0
}
