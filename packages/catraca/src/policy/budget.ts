import { durationUs } from '../core/duration.ts'
import type { CheckContext, Finding } from './findings.ts'
import type { Policies, Policy, Variant } from './policy.ts'

const dayUs = 86_400_000_000
const periodUs: Readonly<Record<string, number>> = { day: dayUs, week: 7 * dayUs, month: 30 * dayUs, year: 365 * dayUs }

/** The budgets that were given away, beside what the service can sustain. */
export interface Budget {
  /** Requests per second that all clients together may make, for longer than a burst. */
  readonly soldPerSecond: number
  readonly capacityPerSecond: number
  /** Sold ÷ capacity. Above 1 the service was oversold, which is usual where clients do not peak together. */
  readonly ratio: number
  /** True when a policy holds all callers together to what the service can sustain. */
  readonly held: boolean
}

/** The sum of all budgets of a document that states its capacity and how many clients each plan has. */
export function budgetOf({ document, list }: Policies): Budget | undefined {
  const { capacity } = document
  if (capacity?.clients === undefined) return undefined
  const each = list.filter((policy) => {
    const { mode, routes, parts } = policy
    const general = mode === 'enforce' && routes === undefined && parts.length === 1 && parts[0]?.kind === 'client'
    return general && perSecond(policy, policy.base) < Infinity
  })
  if (each.length === 0) return undefined
  // A quota by calendar does not hold anybody at a busy hour: it counts only where nothing else limits the client.
  const rates = each.filter(({ base }) => base.rule.algorithm !== 'quota')
  const general = rates.length > 0 ? rates : each
  let sold = 0
  for (const [plan, clients] of Object.entries(capacity.clients)) {
    const all = general.map((policy) => perSecond(policy, policy.byPlan?.get(plan) ?? policy.base))
    // A request must pass all policies, so the lowest rate is what the client has.
    sold += clients * Math.min(...all)
  }
  const capacityPerSecond = (capacity.limit * 1e6) / durationUs(capacity.window, 'capacity.window')
  const held = list.some((policy) => {
    const { mode, routes, parts, identity, base, byPlan, byClient } = policy
    const all = routes === undefined && (identity === undefined || identity === 'client')
    if (mode !== 'enforce' || !all || parts[0]?.kind !== 'service') return false
    const variants = [base, ...(byPlan?.values() ?? []), ...(byClient?.values() ?? [])]
    return variants.every((variant) => perSecond(policy, variant) <= capacityPerSecond)
  })
  return { soldPerSecond: sold, capacityPerSecond, ratio: sold / capacityPerSecond, held }
}

/** Requests per second for longer than a burst; Infinity for rules that do not limit a rate. */
function perSecond({ cost }: Policy, { rule }: Variant): number {
  const { limit, windowMs, period } = rule.options as { limit?: number; windowMs?: number; period?: string }
  const lengthUs = windowMs === undefined ? periodUs[period ?? ''] : windowMs * 1_000
  return limit === undefined || lengthUs === undefined ? Infinity : (limit * 1e6) / lengthUs / cost
}

/** The check of the sum: a warning when more was sold than the service sustains and nothing holds all together. */
export function oversold(policies: Policies, _context: CheckContext): Pick<Finding, 'level' | 'place' | 'message'>[] {
  const budget = budgetOf(policies)
  if (budget === undefined) return []
  const { soldPerSecond, capacityPerSecond, ratio, held } = budget
  const words = `all budgets together are ${round(soldPerSecond)} per second, ${round(ratio)} times the capacity of ${round(capacityPerSecond)}`
  if (ratio <= 1 || held) return [{ level: 'note', place: ['capacity'], message: words }]
  const message = `${words}, and no policy holds all callers together to it; add a policy per service`
  return [{ level: 'warning', place: ['capacity'], message }]
}

function round(value: number): string {
  return String(Math.round(value * 100) / 100)
}
