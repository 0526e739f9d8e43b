import type { AnyGuard } from '../http/guard.ts'
import type { RateLimitOptions } from '../http/simple-limit.ts'
import { answerRefusal } from './exchange/exchange.ts'
import type { NodeRequest, NodeResponse } from './exchange/messages.ts'
import { type MountOptions, middleware } from './exchange/middleware.ts'

/** A request handler as `createServer` of `node:http` takes it. */
export type Handler<Q, S> = (request: Q, response: S) => void

/**
 * Puts a limit before a handler of `node:http`: `createServer(rateLimit({ limit: 100, window: '1m' })(handler))`. With
 * `{ limit, window }` one limit per address by a sliding counter; with a guard the whole policy document.
 * `request.rateLimit` is the decision. When `identify`, `key` or `cost` throw the answer is 500, and the error is given to
 * `onError`; the handler is not called.
 */
export function rateLimit<Q extends NodeRequest = NodeRequest>(
  what: RateLimitOptions<Q> | AnyGuard<Q>,
  mount: MountOptions<Q> & { onError?: (error: unknown) => void } = {},
): <R extends Q, S extends NodeResponse>(handler: Handler<R, S>) => Handler<R, S> {
  const { onError, ...rest } = mount
  const pass = middleware(what, rest)
  return (handler) => (request, response) => {
    pass(request, response, (error) => {
      if (error === undefined) {
        handler(request, response)
        return
      }
      onError?.(error)
      if (!response.headersSent) answerRefusal(request, response, failure)
    })
  }
}

const failure = {
  status: 500,
  fields: ['Cache-Control', 'no-store', 'Content-Type', 'application/problem+json'],
  body: '{"type":"about:blank","title":"Internal Server Error","status":500}\n',
}
