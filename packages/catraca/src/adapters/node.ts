import type { NodeRequest, NodeResponse } from './exchange/messages.ts'
import { middleware } from './exchange/middleware.ts'
import { answerRefusal } from './exchange/refusal.ts'
import { failure } from './mount/failure.ts'
import type { MountOptions, What } from './mount/options.ts'

/** A request handler as `createServer` of `node:http` takes it. */
export type Handler<Q, S> = (request: Q, response: S) => void

/** Puts a limit before a handler. */
export type Limiting<Q, S> = <R extends Q, T extends S>(handler: Handler<R, T>) => Handler<R, T>

/** Where errors of the functions of a limit go; their answer is 500. */
export interface ErrorOption {
  onError?: (error: unknown) => void
}

/**
 * Puts a limit before a handler of `node:http`: `createServer(rateLimit({ limit: 100, window: '1m' })(handler))`. With
 * `{ limit, window }` one limit per address by a sliding counter; with a guard the whole policy document.
 * `request.rateLimit` is the decision. When `identify`, `key` or `cost` throw the answer is 500, and the error is given to
 * `onError`; the handler is not called.
 *
 * @param mount For a guard: `skip`, `cost` and `settle`, which otherwise stand with the numbers of the limit.
 */
export function rateLimit<Q extends NodeRequest = NodeRequest, S extends NodeResponse = NodeResponse>(
  what: What<Q, S>,
  mount: MountOptions<Q, S> & ErrorOption = {},
): Limiting<Q, S> {
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
