import type { Duration } from '../../core/duration.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import type { ReservingRule } from '../../core/rule.ts'
import { Bucket, bucketParameters } from '../bucket/bucket.ts'

/** Options of {@link leakyQueue}. */
export interface LeakyQueueOptions {
  /** Requests that leave the queue per window: a whole number from 1 to 10^12. */
  limit: number
  /** Time in which `limit` requests leave, evenly spaced. */
  window: Duration
  /** Places in the queue: a whole number from 1 to 10^12. */
  capacity: number
}

export const parameters: Parameters = {
  limit: { ...bucketParameters.limit, words: 'requests that leave the queue per window, evenly spaced' },
  window: bucketParameters.window,
  capacity: { kind: 'integer', unit: 'places', min: 1, max: 1e12, words: 'places in the queue' },
}

/**
 * A leaky bucket as a queue, a shaper: an admitted request gets a place and starts `delayMs` later, one every
 * window ÷ limit, the first one interval after it arrives at an empty queue. A request that finds no place is refused.
 * Longest delay: capacity × window ÷ limit. What leaves never exceeds the rate.
 *
 * The rule is the bucket's. A queue whose last request leaves in `level ÷ rate` ticks holds ceil(level ÷ unit) requests,
 * and ceil(level ÷ unit) + cost ≤ capacity exactly when level + cost × unit ≤ capacity × unit, as cost and capacity are
 * whole. The delay is the time until the level that includes the request has drained.
 */
export function leakyQueue(options: LeakyQueueOptions): ReservingRule {
  const { capacity, ...rest } = checkOptions(parameters, options, 'leakyQueue')
  return new Bucket('leaky-queue', 'leakyQueue', { ...rest, burst: capacity }, true)
}
