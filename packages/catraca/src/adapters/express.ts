import type { AnyGuard } from '../http/guard.ts'
import type { RateLimitOptions } from '../http/simple-limit.ts'
import type { Middleware, NodeRequest } from './exchange/messages.ts'
import { type MountOptions, middleware } from './exchange/middleware.ts'

/**
 * A middleware for Express 4 and 5. With `{ limit, window }` one limit per address by a sliding counter; with a guard the
 * whole policy document. Routes are compared with the full path, also in a mounted router. `request.rateLimit` is the
 * decision. What `identify`, `key` or `cost` throw goes to Express's error handling; the request does not go on.
 *
 * Body policies need a parser before: `app.use(express.json())`.
 *
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit<Q extends NodeRequest = NodeRequest>(
  what: RateLimitOptions<Q> | AnyGuard<Q>,
  mount?: MountOptions<Q>,
): Middleware<Q> {
  return middleware(what, mount)
}
