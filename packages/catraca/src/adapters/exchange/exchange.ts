import type { Signal } from '../../limiter/signal.ts'
import type { Asked, Gate, Pass } from '../mount/gate.ts'
import { settleUp } from '../mount/settle.ts'
import { copyAnswer } from './copy.ts'
import { headerOf, setFields } from './fields.ts'
import { omitWhereShared } from './head.ts'
import type { NodeRequest, NodeResponse } from './messages.ts'
import { isWhole, leavingOf, onceOver } from './over.ts'

/** A request of `node:http` as a gate sees it; `raw` is what the framework made of it. */
export class NodeAsked<Q> implements Asked<Q> {
  readonly raw: Q
  readonly method: string
  readonly target: string
  units = 1
  protected readonly request: NodeRequest

  constructor(raw: Q, request: NodeRequest, target: string | undefined) {
    this.raw = raw
    this.request = request
    this.method = request.method ?? 'GET'
    this.target = target ?? '/'
  }

  get peer(): string | undefined {
    return this.request.socket.remoteAddress
  }

  get signal(): Signal {
    return leavingOf(this.request.socket)
  }

  header(name: string): string | undefined {
    return headerOf(this.request, name)
  }

  body(): unknown {
    return this.request.body
  }
}

/**
 * What is to be done with an admitted request before its handler is called: header fields, and what follows when
 * the answer is over.
 *
 * @param raw @param answer The request and the answer of the framework, as `settle` gets them.
 */
export function admit<Q, S>(
  gate: Gate<Q, S>,
  pass: Pass,
  request: NodeRequest,
  response: NodeResponse,
  raw: Q,
  answer: () => S,
): void {
  const fields = gate.fieldsOf(pass)
  setFields(response, fields)
  follow(gate, pass, request, response, raw, answer, fields)
}

/** What follows when an answer is over, or its head is sent, whoever sets the fields. */
export function follow<Q, S>(
  gate: Gate<Q, S>,
  pass: Pass,
  request: NodeRequest,
  response: NodeResponse,
  raw: Q,
  answer: () => S,
  fields: readonly string[],
): void {
  if (pass.holds || gate.settles !== undefined) {
    onceOver(request, response, () => {
      if (gate.settles !== undefined && isWhole(response)) settleUp(gate, pass, raw, answer())
      if (pass.holds) gate.release(pass)
    })
  }
  if (gate.omits) omitWhereShared(response, fields)
  if (pass.keep !== undefined) copyAnswer(request, response, pass)
}
