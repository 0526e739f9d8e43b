import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import type { Decision } from '../core/decision.ts'
import { follow, NodeAsked } from './exchange/exchange.ts'
import { listOf } from './exchange/fields.ts'
import type { NodeRequest, NodeResponse } from './exchange/messages.ts'
import { isOver, onceOver } from './exchange/over.ts'
import { groupedFields } from './exchange/refusal.ts'
import { forgetForged, tell } from './exchange/told.ts'
import { spareUnreadBody } from './exchange/unread-body.ts'
import { isList } from './mount/field-names.ts'
import type { Gate, Pass } from './mount/gate.ts'
import type { MountOptions, RouteOptions, What } from './mount/options.ts'
import { RouteGates } from './mount/route-gates.ts'

type FastifyGate = Gate<FastifyRequest, FastifyReply>
type Done = (error?: Error) => void

/** What a route says in its `config` in place of the limit of the plugin: other numbers, or none. */
export type RouteLimit = RouteOptions<FastifyRequest, FastifyReply>

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `rateLimit`: the decision that binds; undefined for requests that were not counted. */
    rateLimit?: Decision | undefined
  }
  interface FastifyContextConfig {
    /** Another limit for this route in place of that of the plugin, or false for none. */
    rateLimit?: RouteLimit
  }
}

/**
 * A plugin for Fastify 5, to be registered before the routes: `await app.register(rateLimit({ limit: 100, window: '1m' }))`.
 * With `{ limit, window }` one limit per address by a sliding counter; with a guard the whole policy document. It holds for
 * the instance on which it is registered and for those inside, unknown routes too. `request.rateLimit` is the decision. What
 * `identify`, `key` or `cost` throw goes to Fastify's error handling; the request does not go on.
 *
 * It asks in the hook `onRequest`, before the body is read. Where a policy looks into the body, that one waits for the hook
 * `preHandler`, when it was parsed and validated.
 *
 * A route has `config: { rateLimit: { limit, window } }` for other numbers, beside which the options of the plugin hold, or
 * `config: { rateLimit: false }` for none. With a guard only `false` is allowed: its document has the rest.
 *
 * @param mount For a guard: `skip`, `cost` and `settle`, which otherwise stand with the numbers of the limit.
 */
export function rateLimit(
  what: What<FastifyRequest, FastifyReply>,
  mount?: MountOptions<FastifyRequest, FastifyReply>,
): FastifyPluginCallback {
  const gates = new RouteGates(what, mount)
  const plugin: FastifyPluginCallback = (app, _, done) => {
    if (!app.hasRequestDecorator('rateLimit')) app.decorateRequest('rateLimit')
    addHooks(app, gates)
    done()
  }
  // Its hooks are those of the instance on which it is registered, not of one inside.
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'catraca',
    [Symbol.for('plugin-meta')]: { name: 'catraca', fastify: '5.x' },
  })
}

function addHooks(app: FastifyInstance, gates: RouteGates<FastifyRequest, FastifyReply>): void {
  // Throws at the route, not at its first request.
  app.addHook(
    'onRoute',
    ({ config, method, url }) => void gates.of(config?.rateLimit, () => `${String(method)} ${url}`),
  )
  /** Requests whose policies wait for the body. */
  const waiting = new WeakMap<FastifyRequest, FastifyAsked>()
  const { readsBodies } = gates

  app.addHook('onRequest', (request, reply, done) => {
    const { config } = request.routeOptions
    const gate = gates.of(config?.rateLimit, () => `${request.method} ${config?.url}`)
    if (gate === undefined) {
      done()
      return
    }
    if (gate.tells) forgetForged(request.raw)
    const asked = new FastifyAsked(request)
    if (readsBodies) {
      asked.wait = () => {
        waiting.set(request, asked)
        onceOver(request.raw, reply.raw, () => asked.leave())
        done()
      }
    }
    let pass: Pass | Promise<Pass> | undefined
    try {
      pass = gate.ask(asked, request.rateLimit)
    } catch (error) {
      done(error as Error)
      return
    }
    if (pass === undefined) done()
    else if (!(pass instanceof Promise)) goOn(gate, pass, request, reply, done)
    else {
      pass.then(
        (known) => goOn(gate, known, request, reply, asked.go ?? done),
        (error: Error) => (asked.go ?? done)(error),
      )
    }
  })

  if (!readsBodies) return
  app.addHook('preHandler', (request, _, done) => {
    const asked = waiting.get(request)
    if (asked === undefined) done()
    else asked.give(request.body, done)
  })
}

/** A request whose body is not parsed yet when the guard asks for it. */
class FastifyAsked extends NodeAsked<FastifyRequest> {
  /** Goes on after the body was given. Undefined before. */
  go: Done | undefined
  /** Called when a policy wants the body: the request goes on to where it is parsed. */
  wait: () => void = nothing
  private resolve: ((body: unknown) => void) | undefined
  private reject: ((error: Error) => void) | undefined

  constructor(raw: FastifyRequest) {
    // What the router goes by, which `rewriteUrl` may have changed.
    super(raw, raw.raw, raw.raw.url)
  }

  override body(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
      this.wait()
    })
  }

  give(body: unknown, go: Done): void {
    this.go = go
    this.resolve?.(body)
  }

  /** The answer is over: a body that was not given by now never comes, and what was charged for it is given back. */
  leave(): void {
    this.go ??= nothing
    this.reject?.(new Error('the body was not parsed'))
  }
}

function nothing(): void {}

function goOn(gate: FastifyGate, pass: Pass, request: FastifyRequest, reply: FastifyReply, done: Done): void {
  const [incoming, outgoing]: [NodeRequest, NodeResponse] = [request.raw, reply.raw]
  if (reply.sent || isOver(incoming, outgoing)) {
    gate.refund(pass)
    return
  }
  request.rateLimit = pass.decision
  if (!pass.allowed) {
    refuse(gate, pass, request, reply)
    return
  }
  if (pass.told !== undefined) tell(incoming, pass.told)
  const fields = gate.fieldsOf(pass)
  // By Fastify's own way: beside fields that are set on Node's response all others take a slower one.
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string
    const outer = isList(name) ? listOf(reply.getHeader(name)) : ''
    reply.header(name, outer === '' ? fields[at + 1] : `${outer}, ${fields[at + 1]}`)
  }
  follow(gate, pass, incoming, outgoing, request, () => reply, fields)
  done()
}

/** By Fastify, so that its hooks run and what others set, such as CORS, goes out too. */
function refuse(gate: FastifyGate, pass: Pass, { raw }: FastifyRequest, reply: FastifyReply): void {
  const answer = gate.answerOf(pass)
  const fields = groupedFields(answer, (name) => reply.getHeader(name) ?? reply.raw.getHeader(name))
  spareUnreadBody(raw, reply.raw)
  reply.code(answer.status)
  for (let at = 0; at < fields.length; at += 2) reply.header(fields[at] as string, fields[at + 1])
  reply.serializer((text: unknown) => text as string).send(answer.body)
  raw.resume()
}
