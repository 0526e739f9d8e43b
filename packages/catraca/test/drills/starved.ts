import { leaseBounds } from '../../src/stores/lease/terms.ts'
import type { Line } from './fleet.ts'
import { ruleOf } from './held.ts'
import { commonKey, instances, keys, type Plan, policiesOf } from './plan.ts'

/** A window whose demand is so many times the limit was asked for to its end by all. */
const crowded = 1.5

/**
 * Leases that keep units from callers: the limit of a window less what all instances may hold when it ends must have been
 * admitted where more was asked for. Of the windows of the clock from one instant to another, in words.
 */
export function starved(plan: Plan, lines: readonly Line[], fromUs: number, toUs: number): string[] {
  const policies = policiesOf(plan)
  const windows = new Map<string, { asked: number; admitted: number; policy: number; key: number }>()
  for (const { policy, key, us, cost, allowed, degraded } of lines) {
    const { law, limiter } = policies[policy]!
    // Where several are asked together others may refuse.
    if (law.kind !== 'fixed' || limiter.lease === undefined || limiter.policies.length > 1 || degraded) continue
    const widthUs = law.windowMs * 1_000
    const start = Math.floor(us / widthUs) * widthUs
    if (start < fromUs || start + widthUs > toUs) continue
    const name = `${policy}:${key}:${start}`
    const window = windows.get(name) ?? { asked: 0, admitted: 0, policy, key }
    window.asked += cost
    if (allowed) window.admitted += cost
    windows.set(name, window)
  }
  return [...windows.values()].flatMap(({ asked, admitted, policy, key }) => {
    const { name, law, limiter } = policies[policy]!
    const { held } = leaseBounds(ruleOf(law), limiter.lease!, instances)
    if (asked < crowded * law.limit || admitted >= law.limit - instances * held) return []
    return [`${name} admitted ${admitted} of ${asked} for ${keys[key] ?? commonKey} in a window of ${law.limit}`]
  })
}
