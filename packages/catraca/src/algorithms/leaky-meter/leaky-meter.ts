import type { Duration } from '../../core/duration.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import type { ReservingRule } from '../../core/rule.ts'
import { Bucket, bucketParameters } from '../bucket/bucket.ts'

/** Options of {@link leakyMeter}. */
export interface LeakyMeterOptions {
  /** Units that come back per window: a whole number from 1 to 10^12. */
  limit: number
  /** Time in which `limit` units come back, evenly. */
  window: Duration
  /** Units that can pass at once after idleness. Default: `limit`. */
  burst?: number
}

export const parameters: Parameters = bucketParameters

/**
 * A leaky bucket as a meter: each request pours its cost in, `limit` per `window` leak out, what would overflow is refused. The same decisions as `tokenBucket`.
 * In any half-open span of T at most burst + limit × T ÷ window units pass. Time and memory per key are constant.
 */
export function leakyMeter(options: LeakyMeterOptions): ReservingRule {
  return new Bucket('leaky-meter', 'leakyMeter', checkOptions(parameters, options, 'leakyMeter'))
}
