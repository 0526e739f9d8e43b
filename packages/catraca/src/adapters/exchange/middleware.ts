import { type Gate, gateOf, type Pass } from '../mount/gate.ts'
import type { MountOptions, What } from '../mount/options.ts'
import { admit, NodeAsked } from './exchange.ts'
import type { Middleware, NodeRequest, NodeResponse } from './messages.ts'
import { isOver } from './over.ts'
import { answerRefusal } from './refusal.ts'
import { forgetForged, tell } from './told.ts'

/** A middleware of one limit, or of a guard. */
export function middleware<Q extends NodeRequest, S extends NodeResponse>(
  what: What<Q, S>,
  mount?: MountOptions<Q, S>,
): Middleware<Q, S> {
  const gate = gateOf(what, mount)
  return (request, response, next) => {
    let pass: Pass | Promise<Pass> | undefined
    try {
      if (gate.tells) forgetForged(request)
      pass = gate.ask(new NodeAsked(request, request, request.originalUrl ?? request.url), request.rateLimit)
    } catch (error) {
      next(error)
      return
    }
    // Out here, what the handler throws is not taken for an error of the limit.
    if (pass === undefined) next()
    else if (pass instanceof Promise) pass.then((known) => goOn(gate, known, request, response, next), next)
    else goOn(gate, pass, request, response, next)
  }
}

function goOn<Q extends NodeRequest, S extends NodeResponse>(
  gate: Gate<Q, S>,
  pass: Pass,
  request: Q,
  response: S,
  next: () => void,
): void {
  if (isOver(request, response)) {
    gate.refund(pass)
    return
  }
  request.rateLimit = pass.decision
  if (!pass.allowed) {
    answerRefusal(request, response, gate.answerOf(pass))
    return
  }
  if (pass.told !== undefined) tell(request, pass.told)
  admit(gate, pass, request, response, request, () => response)
  next()
}
