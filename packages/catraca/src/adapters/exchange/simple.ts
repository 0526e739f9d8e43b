import type { Decision } from '../../core/decision.ts'
import type { SimpleLimit } from '../../http/simple-limit.ts'
import { answerRefusal, headerOf, setFields } from './exchange.ts'
import type { NodeRequest, NodeResponse } from './messages.ts'

/** Passes one request through a single limit: sets the header fields and goes on, or answers the refusal. */
export function limited<Q extends NodeRequest>(
  limit: SimpleLimit<Q>,
  request: Q,
  response: NodeResponse,
  next: (error?: unknown) => void,
): void {
  let decision: Decision | undefined
  try {
    const target = request.originalUrl ?? request.url ?? '/'
    decision = limit.take(request, request.method ?? 'GET', target, request.socket.remoteAddress, (name) =>
      headerOf(request, name),
    )
  } catch (error) {
    next(error)
    return
  }
  if (decision === undefined) {
    next()
    return
  }
  request.rateLimit = decision
  if (decision.allowed) {
    setFields(response, limit.fieldsOf(decision))
    next()
  } else answerRefusal(request, response, limit.refusalOf(decision))
}
