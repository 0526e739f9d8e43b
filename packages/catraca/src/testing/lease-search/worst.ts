import type { Rule } from '../../core/rule.ts'
import { windowUsOf } from '../../stores/lease/terms.ts'
import type { Admission } from './log.ts'

/** The span in which a log is most beyond a rule. */
export interface Worst {
  /** Units beyond the rule; negative where it was not exhausted. */
  readonly over: number
  readonly fromUs: number
  readonly toUs: number
}

/**
 * The worst span of a log by the rule as it is worded, `ordered` by time. Written from the words, not from the code of the
 * rule; in whole numbers, so nothing is rounded.
 */
export function worstOf(rule: Rule, ordered: readonly Admission[]): Worst {
  const { limit } = rule
  const windowUs = windowUsOf(rule)
  switch (rule.algorithm) {
    case 'sliding-log':
      return logWorst(limit, windowUs, ordered)
    case 'sliding-counter':
      return rule.options['subWindows'] === undefined
        ? counterWorst(limit, windowUs, ordered)
        : partsWorst(limit, windowUs, rule.options['subWindows'] as number, ordered)
    case 'fixed-window':
      return rule.options['anchor'] === 'first'
        ? openedWorst(limit, windowUs, ordered)
        : clockWorst(limit, windowUs, ordered)
    default:
      return bucketWorst(limit, rule.options['limit'] as number, windowUs, ordered)
  }
}

/**
 * Burst + rate × T over every half-open span of T: a bucket that never refuses stands at most so high above its burst.
 * In units × µs, so that every number is whole.
 */
function bucketWorst(burst: number, rate: number, windowUs: number, ordered: readonly Admission[]): Worst {
  const worst = { over: -Infinity, fromUs: 0, toUs: 0 }
  let level = 0
  let beforeUs = 0
  let fromUs = 0
  for (const { us, cost } of ordered) {
    level -= (us - beforeUs) * rate
    if (level <= 0 || beforeUs === 0) {
      level = 0
      fromUs = us
    }
    level += cost * windowUs
    beforeUs = us
    const over = level / windowUs - burst
    if (over > worst.over) Object.assign(worst, { over, fromUs, toUs: us })
  }
  return worst
}

/** The limit in every half-open window. */
function logWorst(limit: number, windowUs: number, ordered: readonly Admission[]): Worst {
  const worst = { over: -Infinity, fromUs: 0, toUs: 0 }
  let first = 0
  let sum = 0
  for (const { us, cost } of ordered) {
    sum += cost
    while ((ordered[first] as Admission).us <= us - windowUs) sum -= (ordered[first++] as Admission).cost
    if (sum - limit > worst.over) Object.assign(worst, { over: sum - limit, fromUs: us - windowUs, toUs: us })
  }
  return worst
}

/** The limit in every window of the clock. */
function clockWorst(limit: number, windowUs: number, ordered: readonly Admission[]): Worst {
  const worst = { over: -Infinity, fromUs: 0, toUs: 0 }
  let fromUs = -Infinity
  let sum = 0
  for (const { us, cost } of ordered) {
    const startUs = Math.floor(us / windowUs) * windowUs
    sum = startUs === fromUs ? sum + cost : cost
    fromUs = startUs
    if (sum - limit > worst.over) Object.assign(worst, { over: sum - limit, fromUs, toUs: fromUs + windowUs })
  }
  return worst
}

/** The limit in every window as the centre opened it. */
function openedWorst(limit: number, windowUs: number, ordered: readonly Admission[]): Worst {
  const worst = { over: -Infinity, fromUs: 0, toUs: 0 }
  for (const fromUs of new Set(ordered.map(({ origin }) => origin))) {
    const toUs = fromUs + windowUs
    const sum = ordered.reduce((sum, { us, cost }) => (us >= fromUs && us < toUs ? sum + cost : sum), 0)
    if (sum - limit > worst.over) Object.assign(worst, { over: sum - limit, fromUs, toUs })
  }
  return worst
}

/**
 * Estimate before counting < limit, for every unit: previous × (W − elapsed) ÷ W + current + cost − 1 < limit, so in units
 * × µs that sum less the limit is at least one below 0. What is over is rounded up to whole units.
 */
function counterWorst(limit: number, windowUs: number, ordered: readonly Admission[]): Worst {
  const worst = { over: -Infinity, fromUs: 0, toUs: 0 }
  let fromUs = -Infinity
  let current = 0
  let previous = 0
  for (const { us, cost } of ordered) {
    const startUs = Math.floor(us / windowUs) * windowUs
    if (startUs !== fromUs) {
      previous = startUs === fromUs + windowUs ? current : 0
      current = 0
      fromUs = startUs
    }
    current += cost
    const beyond = previous * (startUs + windowUs - us) + (current - 1 - limit) * windowUs
    const over = Math.floor(beyond / windowUs) + 1
    if (over > worst.over) Object.assign(worst, { over, fromUs: fromUs - windowUs, toUs: us })
  }
  return worst
}

/** The same of a window in parts: those before × 1 + the one that leaves × what is inside of it + current + cost − 1 < limit. */
function partsWorst(limit: number, partUs: number, parts: number, ordered: readonly Admission[]): Worst {
  const worst = { over: -Infinity, fromUs: 0, toUs: 0 }
  const counts = new Map<number, number>()
  for (const { us, cost } of ordered) {
    const here = Math.floor(us / partUs)
    counts.set(here, (counts.get(here) ?? 0) + cost)
    let beyond = (counts.get(here - parts) ?? 0) * ((here + 1) * partUs - us) - (limit + 1) * partUs
    for (let part = here - parts + 1; part <= here; part++) beyond += (counts.get(part) ?? 0) * partUs
    const over = Math.floor(beyond / partUs) + 1
    if (over > worst.over) Object.assign(worst, { over, fromUs: (here - parts) * partUs, toUs: us })
  }
  return worst
}
