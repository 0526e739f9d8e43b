import type { Decision } from '../core/decision.ts'
import type { Middleware, NodeRequest, NodeResponse } from './exchange/messages.ts'
import { middleware } from './exchange/middleware.ts'
import type { MountOptions, What } from './mount/options.ts'

declare global {
  // Where Express keeps its types; without Express nobody looks there.
  namespace Express {
    interface Request {
      /** Set by `rateLimit`: the decision that binds; undefined for requests that were not counted. */
      rateLimit?: Decision | undefined
    }
  }
}

/**
 * A middleware for Express 4 and 5. With `{ limit, window }` one limit per address by a sliding counter; with a guard the
 * whole policy document. Routes are compared with the full path, also in a mounted router. `request.rateLimit` is the
 * decision. What `identify`, `key` or `cost` throw goes to Express's error handling; the request does not go on.
 *
 * Body policies need a parser before: `app.use(express.json())`.
 *
 * @param mount For a guard: `skip`, `cost` and `settle`, which otherwise stand with the numbers of the limit.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit<Q extends NodeRequest = NodeRequest, S extends NodeResponse = NodeResponse>(
  what: What<Q, S>,
  mount?: MountOptions<Q, S>,
): Middleware<Q, S> {
  return middleware(what, mount)
}
