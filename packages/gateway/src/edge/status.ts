import type { AnyGuard } from 'catraca/http'
import type { Explanation } from 'catraca/policy'
import type { Asked } from './asked.ts'
import type { EdgeRequest, EdgeResponse } from './messages.ts'
import { answerProblem } from './problem.ts'

const path = '/rate-limit'

/** True for `GET /rate-limit`, which the gateway answers itself. */
export function isStatus({ method, target }: Asked): boolean {
  if (!target.startsWith(path) || (method !== 'GET' && method !== 'HEAD')) return false
  return target.length === path.length || target[path.length] === '?'
}

/** Tells a caller its own limits and what is left of them. Costs nothing. */
export async function answerStatus(guard: AnyGuard<EdgeRequest>, asked: Asked, response: EdgeResponse): Promise<void> {
  let explanations: Explanation[]
  try {
    explanations = await guard.status(asked)
  } catch {
    answerProblem(asked.raw, response, 500, 'The limits cannot be told at the moment.')
    return
  }
  const own = explanations.filter(({ notAsked, key }) => {
    const asOthers = notAsked === 'off' || notAsked === 'other identity'
    return !asOthers && key.every(({ part, value }) => part !== 'service' && value !== undefined)
  })
  const body = Buffer.from(`${JSON.stringify({ policies: own.map(told) })}\n`)
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    'Content-Length': String(body.length),
  })
  response.end(body)
  asked.raw.resume()
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
