import type { Context, Env, MiddlewareHandler, Next } from 'hono'
import type { Decision } from '../core/decision.ts'
import { checkFunction } from '../http/simple-limit.ts'
import { admit, NodeAsked } from './exchange/exchange.ts'
import type { NodeRequest, NodeResponse } from './exchange/messages.ts'
import { isOver } from './exchange/over.ts'
import { spareUnreadBody } from './exchange/unread-body.ts'
import { type Asked, type Gate, gateOf, type Pass } from './mount/gate.ts'
import type { MountOptions, What } from './mount/options.ts'
import { toldHeader } from './mount/told.ts'
import { Admission } from './web/admission.ts'
import { bodyOf, WebAsked } from './web/asked.ts'
import { responseOf } from './web/fields.ts'
import { requestFor } from './web/told.ts'

declare module 'hono' {
  interface ContextVariableMap {
    /** Set by `rateLimit`: the decision that binds; undefined for requests that were not counted. */
    rateLimit: Decision | undefined
  }
}

/** Where the address of a caller stands, and for a guard what is said where it is mounted. */
export interface HonoOptions<C> extends MountOptions<C, Response> {
  /**
   * The address of the other end of the connection. Default: that of the socket, on Node. On other platforms one limit
   * needs it or a `key`, a guard needs it; a request without an address is an error, `CATRACA_ADDRESS_MISSING`.
   */
  address?: (context: C) => string | undefined
}

/** As in Hono's own types: the environment is that of the application. */
// oxlint-disable-next-line typescript/no-explicit-any
type AnyEnv = any

/** What the server for Node gives beside a request. */
interface NodeParts {
  incoming: NodeRequest
  outgoing: NodeResponse
}

/**
 * A middleware for Hono on any platform. With `{ limit, window }` one limit per address by a sliding counter; with a guard
 * the whole policy document. `c.get('rateLimit')` is the decision. What `identify`, `key`, `cost` or `address` throw goes to
 * `app.onError`; the request does not go on.
 *
 * @param options `address`, and for a guard `skip`, `cost` and `settle`, which otherwise stand with the numbers of the limit.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit<E extends Env = AnyEnv>(
  what: What<Context<E>, Response>,
  options: HonoOptions<Context<E>> = {},
): MiddlewareHandler<E> {
  const { address, ...mount } = options
  checkFunction(address, 'options.address')
  const gate = gateOf<Context<E>, Response>(what, mount)
  return (c, next) => {
    const node = nodeParts(c)
    const asked = node === undefined ? webAsked(c, address) : new NodeHonoAsked(c, node.incoming, address)
    const pass = gate.ask(asked, c.get('rateLimit'))
    // Hono waits for what it is given, so that what is at hand needs no promise.
    const go = (known: Pass | undefined) => goOn(gate, known, c, node, next) as Promise<Response | void>
    return pass instanceof Promise ? pass.then((known) => left(gate, known, c, node) ?? go(known)) : go(pass)
  }
}

/** An answer that nobody sees where the caller left meanwhile: then it is neither served nor charged. */
function left<E extends Env>(
  gate: Gate<Context<E>, Response>,
  pass: Pass,
  c: Context<E>,
  node: NodeParts | undefined,
): Promise<Response> | undefined {
  if (node === undefined ? !c.req.raw.signal.aborted : !isOver(node.incoming, node.outgoing)) return undefined
  gate.refund(pass)
  return Promise.resolve(c.body(null, 408))
}

function goOn<E extends Env>(
  gate: Gate<Context<E>, Response>,
  pass: Pass | undefined,
  c: Context<E>,
  node: NodeParts | undefined,
  next: Next,
): Promise<Response | void> | Response {
  // A guard speaks to the service by a header, which callers must not write.
  if (gate.tells && (pass?.told !== undefined || isForged(node))) c.req.raw = requestFor(c.req.raw, pass?.told)
  if (pass === undefined) return next()
  c.set('rateLimit', pass.decision)
  if (!pass.allowed) {
    if (node !== undefined) spareUnreadBody(node.incoming, node.outgoing)
    return responseOf(gate.answerOf(pass), c.req.method) as unknown as Response
  }
  if (node !== undefined) {
    admit(gate, pass, node.incoming, node.outgoing, c, () => c.res)
    return next()
  }
  const admission = new Admission<Context<E>, Response>(gate, pass, c.req.raw, c)
  return next().then(
    () => {
      const finished = admission.finish(c.res)
      if (finished === c.res) return
      // Or the fields of the old answer would be written over those of the new one.
      c.res = undefined
      c.res = finished
    },
    (error: unknown) => {
      admission.end()
      throw error
    },
  )
}

/** A request on Node: header fields are read from where Node has them, since a `Headers` costs more than the limit. */
class NodeHonoAsked<E extends Env> extends NodeAsked<Context<E>> {
  private readonly address: ((context: Context<E>) => string | undefined) | undefined

  constructor(c: Context<E>, request: NodeRequest, address: ((context: Context<E>) => string | undefined) | undefined) {
    super(c, request, c.req.url)
    this.address = address
  }

  override get peer(): string | undefined {
    return this.address === undefined ? super.peer : this.address(this.raw)
  }

  override body(): unknown {
    return jsonOf(this.raw)
  }
}

class WebHonoAsked<E extends Env> extends WebAsked<Context<E>> {
  override body(): Promise<unknown> | undefined {
    return jsonOf(this.raw)
  }
}

function jsonOf({ req }: Context): Promise<unknown> | undefined {
  // Hono remembers a body that somebody read before.
  return req.raw.bodyUsed ? req.json().catch(() => undefined) : bodyOf(req.raw)
}

function webAsked<E extends Env>(
  c: Context<E>,
  address: ((context: Context<E>) => string | undefined) | undefined,
): Asked<Context<E>> {
  return new WebHonoAsked(c, c.req.raw, () => address?.(c))
}

function nodeParts(c: Context): NodeParts | undefined {
  const parts = c.env as Partial<NodeParts> | undefined
  return parts?.incoming !== undefined && parts.outgoing !== undefined ? (parts as NodeParts) : undefined
}

function isForged(node: NodeParts | undefined): boolean {
  return node === undefined || node.incoming.headers[toldHeader] !== undefined
}
