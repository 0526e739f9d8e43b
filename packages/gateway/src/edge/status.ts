import { type AnyGuard, statusAnswer } from 'catraca/http'
import type { Explanation } from 'catraca/policy'
import type { Asked } from './asked.ts'
import type { EdgeRequest, EdgeResponse } from './messages.ts'
import { answerProblem, answerWhole } from './problem.ts'

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
  answerWhole(asked.raw, response, statusAnswer(explanations))
}
