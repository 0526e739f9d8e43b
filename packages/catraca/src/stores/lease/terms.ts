import type { LeaseTerms } from '../../core/decision.ts'
import type { Rule } from '../../core/rule.ts'

/** Tenths of the block at which the next one is asked for in the background. */
export const refillTenths = 3
/** How long a lease lasts where nobody says. */
export const defaultTtlUs = 10_000_000

/**
 * H, the most units that an instance holds of one key once those who waited are served, those on their way to it
 * included: a whole block is asked for when three tenths of one are left, so 13 tenths of a block, rounded up.
 */
export function mostHeld(block: number): number {
  return Math.ceil(((10 + refillTenths) * block) / 10)
}

/** By how much leases can be wrong at most, in units of one key. */
export interface LeaseBounds {
  /** H of {@link mostHeld}. */
  readonly held: number
  /** More than the rule admits in any span of time. */
  readonly over: number
  /** Units that others hold while a caller is refused. */
  readonly under: number
}

/**
 * The bounds of a leased rule over `instances` processes.
 *
 * An admission that had to wait for the centre counts at the instant at which the centre charged it: nobody was told
 * before. Every other admission takes a unit that was charged earlier and was held since. Take any span.
 *
 * Over. What is admitted in the span was charged in it, or was held when it began. The centre charges in the span no more
 * than the rule admits. What is held when it began is, per instance, at most H: the units in hand and those on their way,
 * less those that waiters will be given, which count at the centre. What is put back in hand was taken since the last
 * question or answer, so it is of the same H; and of what leaving callers leave behind only so much stays that it is at
 * most H with what was taken meanwhile. So N × H more than the rule admits.
 *
 * Where a lease ends with the window of the rule (fixed window, sliding counter), nothing is held across its start: each
 * window admits only what was charged in it. A counter weighs the window before less and less, so what was within the
 * limit when it was charged is so when it is used. So nothing more, 0. Of a counter in parts that window is a part: what is
 * used in a part was charged in it, and of the parts before nothing weighs more when it is used than when it was charged.
 *
 * Under. A unit that was charged and not admitted is held by somebody, until its lease ends and it goes back. Who is
 * refused spends its own first, so the others hold what it lacks: (N − 1) × H. A unit whose message is lost, or whose
 * holder dies, comes back when the window ends or the bucket drains, as if it had been admitted.
 *
 * Clocks. A lease is judged by the monotonic clock of its instance from the sending of the question on, which is not after
 * the charge, and ends a thousandth early, twice what a clock may drift that is kept in time; so it ends in time
 * whatever the wall clock does and however long a process is paused.
 */
export function leaseBounds(rule: Rule, { block }: Pick<LeaseTerms, 'block'>, instances: number): LeaseBounds {
  const held = mostHeld(block)
  return { held, over: rule.lease === 'window' ? 0 : instances * held, under: (instances - 1) * held }
}

/**
 * The first instant of the monotonic clock at which a lease is over: after `ttlUs`, or with the window of its rule, of
 * which `windowLeftUs` was left when it was charged. A thousandth is left off for clocks that drift.
 */
export function leaseEndUs(sentUs: number, ttlUs: number, windowLeftUs: number): number {
  const lasts = Math.min(ttlUs, windowLeftUs)
  if (lasts === Infinity) return Infinity
  return sentUs + lasts - Math.ceil(lasts / 1_000)
}

/** The window with which the units of a rule end; of a sliding counter in parts a part. */
export function windowUsOf({ options }: Rule): number {
  const { windowMs, subWindows = 1 } = options as { windowMs: number; subWindows?: number }
  return (windowMs * 1_000) / subWindows
}

/** Microseconds until the window of a charge ends; Infinity for rules whose units do not end with a window. */
export function windowLeftUs(rule: Rule, origin: number, nowUs: number): number {
  if (rule.lease !== 'window') return Infinity
  return origin * rule.tickUs + windowUsOf(rule) - nowUs
}

/**
 * True where a lease lasts as long as anything that was charged counts, so that after one nothing of before is left. A
 * sliding counter weighs what was charged at the start of a window to the end of the next, or of a part to the end of as
 * many as a window has. It is counted from there on: a window with an offset began before it was first asked.
 */
export function outlastsRule(rule: Rule, { ttlUs }: LeaseTerms): boolean {
  let us = countsUs.get(rule)
  if (us === undefined) {
    const full = rule.charge(new Float64Array(rule.width), 0, 0, rule.limit, 0)
    us = rule.endsAt(full, 0) * rule.tickUs - rule.originAt(full, 0) * rule.tickUs
    countsUs.set(rule, us)
  }
  return us <= ttlUs
}

/** How long what was charged at once counts, by rule. */
const countsUs = new WeakMap<Rule, number>()
