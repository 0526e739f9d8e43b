import type { Rule } from '../core/rule.ts'

/** What a rule lets through at most. Each figure is derived where the rule is. */
export interface Bounds {
  /** Units at one instant. */
  readonly atOnce: number
  /** Units in any half-open span of `windowMs`; undefined where no span is fixed (quota by calendar, concurrency). */
  readonly perWindow?: number
  readonly windowMs?: number
  /** Milliseconds the last of a full queue waits. */
  readonly worstWaitMs?: number
}

/** The bounds of a rule, from its checked options. */
export function boundsOf(rule: Rule): Bounds {
  const { limit = rule.limit, windowMs } = rule.options as { limit?: number; windowMs?: number }
  const atOnce = rule.limit
  if (windowMs === undefined) return { atOnce }
  switch (rule.algorithm) {
    case 'fixed-window':
    case 'sliding-counter':
      return { atOnce, perWindow: 2 * limit, windowMs }
    case 'sliding-log':
      return { atOnce, perWindow: limit, windowMs }
    case 'leaky-queue':
      return { atOnce, perWindow: rule.limit + limit, windowMs, worstWaitMs: (rule.limit * windowMs) / limit }
    default:
      return { atOnce, perWindow: rule.limit + limit, windowMs }
  }
}
