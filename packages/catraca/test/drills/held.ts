import { fixedWindow, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { leaseBounds } from '../../src/stores/lease/terms.ts'
import { instances, type Law, type PlannedLimiter } from './plan.ts'

/**
 * Units of a key that instances may use after the store charged them, beyond what the law admits: 0 where they end with
 * the window of the rule.
 *
 * What is allowed for the log itself: nothing. Take a span of a rule whose units are kept, by the instants that the
 * workers log (worker-clock.mjs). Who waited for the store is logged when it was charged. A unit in hand is logged when it
 * was taken or by a microsecond or two later, never earlier, so it is charged before it is logged, and what is admitted in
 * the span was charged in it or before it began, the latter of units that were in hand or under way when it began, less
 * those microseconds. A question takes longer than that to the store, so that what it brings was under way then.
 */
export function heldBy({ lease }: PlannedLimiter, law: Law): number {
  return lease === undefined ? 0 : leaseBounds(ruleOf(law), lease, instances).over
}

export function ruleOf({ kind, limit, windowMs, burst = limit }: Law): Rule {
  if (kind === 'bucket') return tokenBucket({ limit, window: windowMs, burst })
  if (kind === 'log') return slidingLog({ limit, window: windowMs })
  if (kind === 'counter') return slidingCounter({ limit, window: windowMs })
  return fixedWindow({ limit, window: windowMs, anchor: kind === 'first' ? 'first' : 'clock' })
}
