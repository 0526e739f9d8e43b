import type { Decision } from '../core/decision.ts'
import { CatracaError } from '../core/errors.ts'
import { checkFunction } from '../http/simple-limit.ts'
import { type Gate, gateOf, isGuard, type Pass } from './mount/gate.ts'
import type { MountOptions, What } from './mount/options.ts'
import { Admission } from './web/admission.ts'
import { WebAsked } from './web/asked.ts'
import { responseOf } from './web/fields.ts'
import { type WebRequest, type WebResponse, web } from './web/messages.ts'
import { requestFor } from './web/told.ts'

/** Where the address of a caller stands: the arguments are those of the handler. */
export type AddressOf<Q, Rest extends readonly unknown[]> = (request: Q, ...rest: Rest) => string | undefined

/** What a handler gets: after the request the decision, undefined for requests that were not counted. */
export type DecidedHandler<Q, S, Rest extends readonly unknown[]> = (
  request: Q,
  decision: Decision | undefined,
  ...rest: Rest
) => S | Promise<S>

/** What a platform calls: a request, and what the platform gives beside it. Can be put behind another limit. */
export interface LimitedHandler<Q, S, Rest extends readonly unknown[]> {
  (request: Q, ...rest: Rest): S | Promise<S>
  readonly limited: true
}

/** Where the address of a caller stands, and for a guard what is said where it is mounted. */
export interface FetchOptions<Q, S, Rest extends readonly unknown[]> extends MountOptions<Q, S> {
  /**
   * The address of the other end of the connection, as the platform tells it. Not needed for one limit whose `key` says
   * whom to count. A request without one is an error, `CATRACA_ADDRESS_MISSING`.
   */
  address?: AddressOf<Q, Rest>
}

/** Puts a limit before a handler. */
export interface Limiting<Q, S, Rest extends readonly unknown[]> {
  <R extends Rest, P extends Q = Q, T extends S = S>(handler: LimitedHandler<P, T, R>): LimitedHandler<P, T, R>
  <R extends Rest, P extends Q = Q, T extends S = S>(handler: DecidedHandler<P, T, R>): LimitedHandler<P, T, R>
}

type Serve<Q, S> = (request: Q, before: Decision | undefined, rest: readonly unknown[]) => S | Promise<S>

/** How a limited handler is called by an outer limit: with what that said. */
const inner = new WeakMap<object, Serve<never, unknown>>()

/**
 * Puts a limit before a handler of `Request` and `Response`, as they are in workers and in servers of the web's kind. With
 * `{ limit, window }` one limit per address by a sliding counter; with a guard the whole policy document. Needs no more than
 * the classes of the web. What `identify`, `key`, `cost` or `address` throw, the returned handler throws or rejects with.
 *
 * Answers at once where the limit and the handler do.
 *
 * @param options `address`, and for a guard `skip`, `cost` and `settle`, which otherwise stand with the numbers of the limit.
 * Throws `CATRACA_ADDRESS_MISSING` where nothing says whom to count.
 * @example
 * const address = (request: Request, server: Server) => server.requestIP(request)?.address
 * const limited = rateLimit({ limit: 100, window: '1m' }, { address })
 * Bun.serve({ fetch: limited((request, decision) => new Response(`${decision?.remaining} left`)) })
 */
export function rateLimit<
  Q extends WebRequest = WebRequest,
  S extends WebResponse = WebResponse,
  Rest extends readonly unknown[] = [],
>(what: What<Q, S>, options: FetchOptions<Q, S, Rest> = {}): Limiting<Q, S, Rest> {
  const { address, ...mount } = options
  checkFunction(address, 'options.address')
  const gate = gateOf(what, mount)
  if (address === undefined && (isGuard(what) || what.key === undefined)) throw addressMissing()
  const limiting = (handler: object): LimitedHandler<Q, S, readonly unknown[]> => {
    const next = callOf<Q, S>(handler)
    const serve: Serve<Q, S> = (request, before, rest) => {
      const asked = new WebAsked(request, request, () => address?.(request, ...(rest as Rest)))
      const pass = gate.ask(asked, before)
      if (pass === undefined) return next(seenBy(gate, request, undefined), before, rest)
      const go = (known: Pass): S | Promise<S> =>
        goOn(gate, known, request, (seen, decision) => next(seen, decision, rest))
      return pass instanceof Promise ? pass.then((known) => left(gate, known, request) ?? go(known)) : go(pass)
    }
    const limited = (request: Q, ...rest: readonly unknown[]): S | Promise<S> => serve(request, undefined, rest)
    inner.set(limited, serve)
    return Object.assign(limited, { limited: true as const })
  }
  return limiting
}

/** A handler in the form in which limits call it. */
function callOf<Q, S>(handler: object): Serve<Q, S> {
  const limited = inner.get(handler) as Serve<Q, S> | undefined
  const plain = handler as DecidedHandler<Q, S, readonly unknown[]>
  return limited ?? ((request, decision, rest) => plain(request, decision, ...rest))
}

/** An answer that nobody sees where the caller left meanwhile: then it is neither served nor charged. */
function left<Q extends WebRequest, S extends WebResponse>(gate: Gate<Q, S>, pass: Pass, request: Q): S | undefined {
  if (!request.signal.aborted) return undefined
  gate.refund(pass)
  return new web.Response(null, { status: 499 }) as S
}

function goOn<Q extends WebRequest, S extends WebResponse>(
  gate: Gate<Q, S>,
  pass: Pass,
  request: Q,
  next: (request: Q, decision: Decision | undefined) => S | Promise<S>,
): S | Promise<S> {
  if (!pass.allowed) return responseOf(gate.answerOf(pass), request.method) as S
  const admission = new Admission(gate, pass, request, request)
  const fail = (error: unknown): never => {
    admission.end()
    throw error
  }
  let response: S | Promise<S>
  try {
    response = next(seenBy(gate, request, pass), pass.decision)
  } catch (error) {
    return fail(error)
  }
  // Of any realm and any library.
  if (!isThenable(response)) return admission.finish(response)
  return Promise.resolve(response).then((known) => admission.finish(known), fail)
}

/** The request as the handler sees it. */
function seenBy<Q extends WebRequest>({ tells }: Gate<Q, never>, request: Q, pass: Pass | undefined): Q {
  return tells ? requestFor(request, pass?.told) : request
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown }).then === 'function'
}

function addressMissing(): CatracaError {
  const message =
    'nothing says where the address of a caller stands; allowed: options.address, a function, or for one limit its key'
  return new CatracaError('CATRACA_ADDRESS_MISSING', message, { path: 'options.address' })
}
