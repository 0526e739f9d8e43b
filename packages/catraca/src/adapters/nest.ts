import { type CanActivate, type ExecutionContext, HttpException, SetMetadata } from '@nestjs/common'
import type { Answer } from '../http/answers.ts'
import { admit, NodeAsked } from './exchange/exchange.ts'
import { setFields } from './exchange/fields.ts'
import type { NodeRequest, NodeResponse } from './exchange/messages.ts'
import { isOver } from './exchange/over.ts'
import { answerRefusal } from './exchange/refusal.ts'
import { forgetForged, tell } from './exchange/told.ts'
import { spareUnreadBody } from './exchange/unread-body.ts'
import { type Gate, gateOf, type Pass } from './mount/gate.ts'
import type { MountOptions, RouteOptions, SimpleOptions, What } from './mount/options.ts'
import { RouteGates } from './mount/route-gates.ts'

const metadata = 'catraca:rate-limit'

/** Other numbers for a route or a controller; beside them the options of the limit before it hold. */
export function RateLimit<Q extends NodeRequest = NodeRequest, S = NodeResponse>(
  limit: SimpleOptions<Q, S>,
): MethodDecorator & ClassDecorator {
  // Throws where it stands, not at the first request.
  gateOf(limit)
  return SetMetadata(metadata, limit)
}

/** No limit for a route or a controller. */
export function SkipRateLimit(): MethodDecorator & ClassDecorator {
  return SetMetadata(metadata, false)
}

/**
 * A guard for NestJS 11 over HTTP, on Express: `app.useGlobalGuards(rateLimit({ limit: 100, window: '1m' }))`, `@UseGuards`, or
 * `{ provide: APP_GUARD, useValue: rateLimit(…) }`. With `{ limit, window }` one limit per address by a sliding counter; with
 * a guard of `createGuard` the whole policy document. `request.rateLimit` is the decision. A refusal is an `HttpException`
 * with the answer, for the filters of the application, as `application/json`; what `identify`, `key` or `cost` throw goes to them too.
 *
 * Nest asks guards only for routes that exist, and after middleware has read the body. Requests of other kinds, such as
 * messages of WebSockets or GraphQL, pass.
 *
 * @param mount For a guard of `createGuard`: `skip`, `cost` and `settle`, which otherwise stand with the numbers.
 */
export function rateLimit<Q extends NodeRequest = NodeRequest, S = NodeResponse>(
  what: What<Q, S>,
  mount?: MountOptions<Q, S>,
): CanActivate {
  const gates = new RouteGates(what, mount)
  return {
    canActivate(context) {
      if (context.getType() !== 'http') return true
      const gate = gates.of(limitOf(context), () => `${context.getClass().name}.${context.getHandler().name}`)
      const request = context.switchToHttp().getRequest<Q>()
      if (gate?.tells === true) forgetForged(request)
      const pass = gate?.ask(new NodeAsked(request, request, request.originalUrl ?? request.url), request.rateLimit)
      if (gate === undefined || pass === undefined) return true
      const go = (known: Pass) => goOn(gate, known, request, context.switchToHttp().getResponse<S>())
      return pass instanceof Promise ? pass.then(go) : go(pass)
    },
  }
}

function limitOf<Q, S>(context: ExecutionContext): RouteOptions<Q, S> | undefined {
  // Nest brings it.
  const metadataOf = Reflect as unknown as { getMetadata(key: string, of: object): RouteOptions<Q, S> | undefined }
  return metadataOf.getMetadata(metadata, context.getHandler()) ?? metadataOf.getMetadata(metadata, context.getClass())
}

function goOn<Q extends NodeRequest, S>(gate: Gate<Q, S>, pass: Pass, request: Q, answer: S): true | Promise<never> {
  const response = answer as unknown as NodeResponse
  if (isOver(request, response)) {
    gate.refund(pass)
    return nothing()
  }
  request.rateLimit = pass.decision
  if (!pass.allowed) return refuse(request, response, gate.answerOf(pass))
  if (pass.told !== undefined) tell(request, pass.told)
  admit(gate, pass, request, response, request, () => answer)
  return true
}

/** By Nest's own exception where it can carry the answer. */
function refuse(request: NodeRequest, response: NodeResponse, answer: Answer): Promise<never> {
  const { status, fields, body } = answer
  const isJson = fields.some((text, at) => text === 'Content-Type' && /\bjson\b/.test(fields[at + 1] as string))
  if (typeof body !== 'string' || status < 400 || !isJson) {
    answerRefusal(request, response, answer)
    return nothing()
  }
  spareUnreadBody(request, response)
  // Nest calls the bodies of exceptions plain JSON, and warns of every other word.
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at] !== 'Content-Type') setFields(response, fields.slice(at, at + 2))
  }
  request.resume()
  throw new HttpException(JSON.parse(body) as Record<string, unknown>, status)
}

/** The request is over: no handler, no filter has anything left to do. */
function nothing(): Promise<never> {
  return new Promise(() => {})
}
