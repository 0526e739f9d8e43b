import type { Decision } from '../core/decision.ts'
import type { Signal } from './signal.ts'

/** At once, or when the store has answered. */
export type Answer<T> = T | Promise<T>

/** How a refusal by a policy is waited for: with a reserved time, in the order of arrival, or not at all. */
export type Patience = 'reserve' | 'queue' | 'refuse'

/** What one who waits asks: a stack of policies, each with its key. Answers may be promises; none rejects. */
export interface Line {
  /** Names each policy with its key, in the order of the stack: who waits at one name waits in one line. */
  readonly places: readonly string[]
  /** The policy that gives each request its time, a leaky queue; undefined for most stacks. */
  readonly shaper: number | undefined
  patience(place: number): Patience
  /** Charges the whole stack, all or nothing. */
  take(): Answer<Decision>
  /** What {@link Line.take} would say. */
  peek(): Answer<Decision>
  /** Charges one policy if it starts at most `maxWaitUs` from now, as `Ledger.reserve`. */
  reserve(place: number, maxWaitUs: number): Answer<Decision>
  /** Charges all policies but one, all or nothing; asked only where there are others. */
  takeRest(place: number): Answer<Decision>
  /** Gives back what a decision charged; says how many units of the one policy came back. */
  giveBack(decision: Decision): Answer<number>
  /** A refusal for who gave up before anything was asked. */
  unasked(): Decision
}

/** How long one waits, and what ends it. */
export interface Patient {
  readonly maxWaitUs: number
  readonly signal: Signal | undefined
}
