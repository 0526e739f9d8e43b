import { CatracaError, show } from '../../core/errors.ts'
import { rejectUnknown } from '../../core/parameters.ts'
import { Guard } from '../../http/guard.ts'
import { type RateLimitOptions, SimpleLimit } from '../../http/simple-limit.ts'
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
  what: RateLimitOptions<Q> | Guard<Q>,
  mount: MountOptions<Q> = {},
): Middleware<Q> {
  if (!(what instanceof Guard)) {
    const limit = new SimpleLimit(what)
    return (request, response, next) => limited(limit, request, response, next)
  }
  rejectUnknown(['skip', 'cost'], mount, 'options')
  const { skip, cost = 1 } = mount
  if (typeof cost === 'number') checkUnits(cost)
  return (request, response, next) => {
    let asked: NodeGuardRequest<Q>
    try {
      if (skip?.(request) === true) {
        next()
        return
      }
      asked = new NodeGuardRequest(request, typeof cost === 'number' ? cost : checkUnits(cost(request)))
    } catch (error) {
      next(error)
      return
    }
    guarded(what, asked, response, next)
  }
}

function checkUnits(cost: unknown): number {
  if (Number.isSafeInteger(cost) && (cost as number) > 0) return cost as number
  const message = `cost is ${show(cost)}; allowed: a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`
  throw new CatracaError('CATRACA_COST_INVALID', message, { path: 'cost', value: cost })
}
