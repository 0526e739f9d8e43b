import { type Decision, refusal } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'

/** µs after which `cost` units start that are charged at `nowUs`; 0 at once, Infinity never: see {@link Rule.startsIn}. */
export function startUsOf(rule: Rule, state: Float64Array, at: number, nowUs: number, cost: number): number {
  const now = Math.floor(nowUs / rule.tickUs)
  const ticks = rule.startsIn?.(state, at, now, cost) ?? Infinity
  return ticks === 0 ? 0 : (now + ticks) * rule.tickUs - nowUs
}

/**
 * The refusal of a shaper that would let a request start after `startUs`, later than allowed: it passes once the queue is
 * short enough, or never, where its own units alone take longer.
 */
export function tooLate(one: Decision, startUs: number, maxWaitUs: number): Decision {
  const { rule } = one.source
  const shortest = (rule.startsIn?.(new Float64Array(rule.width), 0, 0, one.cost) ?? Infinity) * rule.tickUs
  const never = shortest > maxWaitUs
  return refusal(one, never ? 'impossible' : rule.denial, never ? Infinity : startUs - maxWaitUs)
}
