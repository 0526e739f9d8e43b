import { checkCost } from '../../core/cost.ts'
import { rejectUnknown } from '../../core/parameters.ts'
import { type AnyGuard, Guard } from '../../http/guard.ts'
import { checkFunction, type RateLimitOptions, SimpleLimit } from '../../http/simple-limit.ts'
import { guarded, NodeGuardRequest } from './exchange.ts'
import type { Middleware, NodeRequest } from './messages.ts'
import { limited } from './simple.ts'

/** What can be said about a guard where it is mounted. */
export interface MountOptions<Q> {
  /** True for requests that are not counted. */
  skip?: (request: Q) => boolean
  /** Units a request costs, multiplied by the cost of each policy: a whole number from 1. Default 1. */
  cost?: number | ((request: Q) => number)
}

/** A middleware of one limit, or of a guard. */
export function middleware<Q extends NodeRequest>(
  what: RateLimitOptions<Q> | AnyGuard<Q>,
  mount: MountOptions<Q> = {},
): Middleware<Q> {
  if (!(what instanceof Guard)) {
    const limit = new SimpleLimit(what)
    return (request, response, next) => limited(limit, request, response, next)
  }
  rejectUnknown(['skip', 'cost'], mount, 'options')
  const { skip, cost = 1 } = mount
  checkFunction(skip, 'options.skip')
  if (typeof cost !== 'function') checkCost(cost)
  return (request, response, next) => {
    let asked: NodeGuardRequest<Q> | undefined
    try {
      if (skip?.(request) !== true) {
        asked = new NodeGuardRequest(request, typeof cost === 'number' ? cost : checkCost(cost(request)))
      }
    } catch (error) {
      next(error)
      return
    }
    // Out there, what the handler throws is not taken for an error of `skip`.
    if (asked === undefined) next()
    else guarded(what, asked, response, next)
  }
}
