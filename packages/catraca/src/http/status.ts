import type { Explanation } from '../policy/explain.ts'
import type { ReadyAnswer } from '../policy/verdict.ts'

/** True for a question about the limits of the caller. */
export function isStatus(path: string, method: string, target: string): boolean {
  if (!target.startsWith(path) || (method !== 'GET' && method !== 'HEAD')) return false
  return target.length === path.length || target[path.length] === '?'
}

/**
 * Tells a caller its own limits and what is left of them, as JSON, from what a guard's `status` gave. Policies of
 * everybody together, and those that count others than this caller, are left out; so are those whose key this request
 * lacks. No cache may keep it.
 */
export function statusAnswer(explanations: readonly Explanation[]): ReadyAnswer {
  const own = explanations.filter(({ notAsked, key }) => {
    const asOthers = notAsked === 'off' || notAsked === 'other identity'
    return !asOthers && key.every(({ part, value }) => part !== 'service' && value !== undefined)
  })
  const body = `${JSON.stringify({ policies: own.map(told) })}\n`
  return { status: 200, fields: ['Content-Type', 'application/json', 'Cache-Control', 'no-store'], body }
}

function told({ policy, says, rule, cost, mode, plan, scope }: Explanation): Record<string, unknown> {
  const { limit, remaining, resetAfterMs } = says
  return {
    policy,
    rule: rule.en,
    ...(plan !== undefined && { plan }),
    scope,
    cost,
    mode,
    limit,
    used: Math.max(0, limit - remaining),
    remaining,
    resetAfterMs: Number.isFinite(resetAfterMs) ? resetAfterMs : null,
  }
}
