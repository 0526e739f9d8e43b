import type { Context, Middleware, Next } from 'koa'
import type { Decision } from '../core/decision.ts'
import { limitFieldNames } from '../http/dialects.ts'
import { admit, NodeAsked } from './exchange/exchange.ts'
import type { NodeRequest, NodeResponse } from './exchange/messages.ts'
import { isOver } from './exchange/over.ts'
import { groupedFields } from './exchange/refusal.ts'
import { forgetForged, tell } from './exchange/told.ts'
import { spareUnreadBody } from './exchange/unread-body.ts'
import { type Gate, gateOf, type Pass } from './mount/gate.ts'
import type { MountOptions, What } from './mount/options.ts'

declare module 'koa' {
  interface DefaultState {
    /** Set by `rateLimit`: the decision that binds; undefined for requests that were not counted. */
    rateLimit?: Decision | undefined
  }
}

/**
 * A middleware for Koa 2 and 3. With `{ limit, window }` one limit per address by a sliding counter; with a guard the whole
 * policy document. `ctx.state.rateLimit` is the decision. What `identify`, `key` or `cost` throw goes to Koa's error
 * handling; the request does not go on. An error that is thrown further in carries the header fields of the limit, since
 * Koa drops those that were set.
 *
 * Body policies need a parser before, which gives `ctx.request.body`.
 *
 * @param mount For a guard: `skip`, `cost` and `settle`, which otherwise stand with the numbers of the limit.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit(what: What<Context, Context>, mount?: MountOptions<Context, Context>): Middleware {
  const gate = gateOf(what, mount)
  return (ctx, next) => {
    if (gate.tells) forgetForged(ctx.req)
    const pass = gate.ask(new KoaAsked(ctx), ctx.state.rateLimit)
    if (pass === undefined) return next()
    return pass instanceof Promise ? pass.then((known) => goOn(gate, known, ctx, next)) : goOn(gate, pass, ctx, next)
  }
}

class KoaAsked extends NodeAsked<Context> {
  constructor(ctx: Context) {
    super(ctx, ctx.req, ctx.originalUrl)
  }

  override body(): unknown {
    return (this.raw.request as { body?: unknown }).body
  }
}

function goOn(gate: Gate<Context, Context>, pass: Pass, ctx: Context, next: Next): Promise<unknown> | undefined {
  const [incoming, outgoing]: [NodeRequest, NodeResponse] = [ctx.req, ctx.res]
  if (isOver(incoming, outgoing)) {
    gate.refund(pass)
    return undefined
  }
  ctx.state.rateLimit = pass.decision
  if (!pass.allowed) {
    const answer = gate.answerOf(pass)
    const fields = groupedFields(answer, (name) => ctx.res.getHeader(name))
    spareUnreadBody(incoming, outgoing)
    ctx.status = answer.status
    for (let at = 0; at < fields.length; at += 2) ctx.set(fields[at] as string, fields[at + 1] as string | string[])
    // Koa takes other bytes than those of a Buffer for an object.
    ctx.body = typeof answer.body === 'string' ? answer.body : Buffer.from(answer.body)
    incoming.resume()
    return undefined
  }
  if (pass.told !== undefined) tell(incoming, pass.told)
  admit(gate, pass, incoming, outgoing, ctx, () => ctx)
  return next().catch((error: unknown) => {
    throw withFields(error, ctx)
  })
}

/** Koa drops the fields that were set and sets those of the error. */
function withFields(error: unknown, { res }: Context): unknown {
  if (!(error instanceof Error)) return error
  const fields = Object.entries(res.getHeaders()).filter(([name]) => limitFieldNames.includes(name))
  const own = (error as { headers?: object }).headers
  return Object.assign(error, { headers: { ...Object.fromEntries(fields), ...own } })
}
