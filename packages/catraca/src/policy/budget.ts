import { durationUs } from '../core/duration.ts'
import type { Rule } from '../core/rule.ts'
import type { CheckContext, Finding } from './findings.ts'
import type { Policies, Policy } from './policy.ts'

const dayUs = 86_400_000_000
const periodUs: Readonly<Record<string, number>> = { day: dayUs, week: 7 * dayUs, month: 30 * dayUs, year: 365 * dayUs }

/** The budgets that were given away, beside what the service can sustain. */
export interface Budget {
  /** Units per second that all clients together may ask for in the long run. */
  readonly soldPerSecond: number
  readonly capacityPerSecond: number
  /** Sold ÷ capacity. Above 1 the service was oversold, which is usual where clients do not peak together. */
  readonly ratio: number
  /** True when a policy holds all callers together to what the service can sustain. */
  readonly held: boolean
}

/** The sum of all budgets of a document that states its capacity and how many clients each plan has. */
export function budgetOf({ document, list, defaultPlan }: Policies): Budget | undefined {
  const { capacity } = document
  if (capacity?.clients === undefined) return undefined
  const general = list.filter(({ mode, routes, parts }) => {
    return mode === 'enforce' && routes === undefined && parts.length === 1 && parts[0]?.kind === 'client'
  })
  if (general.length === 0) return undefined
  let sold = 0
  for (const [plan, clients] of Object.entries(capacity.clients)) {
    const rates = general.map((policy) => perSecond(ruleFor(policy, plan, defaultPlan)))
    // A request must pass all policies, so the lowest rate is what the client has.
    sold += clients * Math.min(...rates)
  }
  const capacityPerSecond = (capacity.limit * 1e6) / durationUs(capacity.window, 'capacity.window')
  const held = list.some(({ mode, parts, base }) => {
    return mode === 'enforce' && parts[0]?.kind === 'service' && perSecond(base.rule) <= capacityPerSecond
  })
  return { soldPerSecond: sold, capacityPerSecond, ratio: sold / capacityPerSecond, held }
}

function ruleFor({ byPlan, base }: Policy, plan: string, defaultPlan: string | undefined): Rule {
  return (byPlan?.get(plan) ?? byPlan?.get(defaultPlan ?? '') ?? base).rule
}

/** Units per second in the long run; Infinity for rules that do not limit a rate. */
function perSecond({ options }: Rule): number {
  const { limit, windowMs, period } = options as { limit?: number; windowMs?: number; period?: string }
  if (limit === undefined) return Infinity
  if (windowMs !== undefined) return (limit * 1_000) / windowMs
  const length = periodUs[period ?? '']
  return length === undefined ? Infinity : (limit * 1e6) / length
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
