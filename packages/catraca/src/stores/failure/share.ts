import { slidingCounter } from '../../algorithms/sliding-counter/sliding-counter.ts'
import { isCatracaError } from '../../core/errors.ts'
import type { Rule } from '../../core/rule.ts'
import { makeRule, optionsOf, type RuleOptions } from '../rule-form.ts'

/** Options that are a number of units, which instances divide among themselves. */
const divided = ['limit', 'burst', 'capacity']

/**
 * What one of `instances` may admit of a rule while the shared store is gone: the same rule with limit, burst and
 * capacity divided, rounded down, at least 1 each. So all of them together admit what the rule does, or one unit each
 * where there are more instances than units.
 *
 * A bucket whose share cannot be counted exactly in whole numbers gets a smaller one that can. Costs some µs.
 */
export function shareOf(rule: Rule, instances: number): Rule {
  if (instances === 1) return rule
  const options = optionsOf(rule)
  for (const name of divided) {
    const units = options[name]
    if (typeof units === 'number') options[name] = Math.max(1, Math.floor(units / instances))
  }
  for (let step = 1; step <= (options['limit'] as number); step *= 10) {
    const limit = Math.floor((options['limit'] as number) / step) * step
    const share = tryMake(rule.algorithm, { ...options, limit })
    if (share !== undefined) return share
  }
  // One unit per window is exact for every window.
  const least = Object.keys(options).filter((name) => divided.includes(name))
  return makeRule(rule.algorithm, { ...options, ...Object.fromEntries(least.map((name) => [name, 1])) })
}

function tryMake(algorithm: string, options: RuleOptions): Rule | undefined {
  try {
    return makeRule(algorithm, options)
  } catch (error) {
    if (isCatracaError(error) && error.code === 'CATRACA_RULE_TOO_FINE') return undefined
    throw error
  }
}

/** One instance's part of the ceiling over all keys: at least 1 unit per window. */
export function ceilingShare(ceiling: { readonly limit: number; readonly windowUs: number }, instances: number): Rule {
  const limit = Math.max(1, Math.floor(ceiling.limit / instances))
  return slidingCounter({ limit, window: ceiling.windowUs / 1_000 })
}
