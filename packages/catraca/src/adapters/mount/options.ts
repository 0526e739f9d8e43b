import type { AnyGuard } from '../../http/guard.ts'
import type { RateLimitOptions } from '../../http/simple-limit.ts'

/**
 * What an admitted request really cost, in the units it asked for: 0 gives all back, undefined leaves it as charged. Called
 * once its answer was sent, so `(_, response) => (response.statusCode < 400 ? 0 : 1)` counts only failures. Not called for
 * refused requests, nor where the connection broke before the answer was complete: then the charge stays, as it does
 * when `settle` throws or gives something else than a whole number from 0, which is told as a warning.
 */
export type Settle<Q, S> = (request: Q, response: S) => number | undefined

/** What can be said about a guard where it is mounted. `Q` and `S` are the request and the response of the framework. */
export interface MountOptions<Q, S = unknown> {
  /** True for requests that are not counted. */
  skip?: (request: Q) => boolean
  /** Units a request costs, multiplied by the cost of each policy: a whole number from 1. Default 1. */
  cost?: number | ((request: Q) => number)
  /** What the request really cost, by its answer. Default: what it was charged. */
  settle?: Settle<Q, S>
}

/** Options of one limit: its numbers, whom it counts, and what a request really cost. */
export interface SimpleOptions<Q, S = unknown> extends RateLimitOptions<Q> {
  /** What the request really cost, by its answer. Default: what it was charged. */
  settle?: Settle<Q, S>
}

/** A guard of `createGuard`, by what no options have: so that functions among these know what they are given. */
export type GuardLike<Q> = Pick<AnyGuard<Q>, 'ask' | 'answerOf'>

/** What `rateLimit` takes: the numbers of one limit, or a guard. */
export type What<Q, S> = SimpleOptions<Q, S> | GuardLike<Q>

/** What a route says in place of the limit before it: other numbers, beside which the other options hold, or none. */
export type RouteOptions<Q, S> = false | SimpleOptions<Q, S>
