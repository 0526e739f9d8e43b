import type { Duration } from '../../core/duration.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import type { ReservingRule } from '../../core/rule.ts'
import { Bucket, bucketParameters } from '../bucket/bucket.ts'

/** Options of {@link gcra}. */
export interface GcraOptions {
  /** Units that come back per window: a whole number from 1 to 10^12. */
  limit: number
  /** Time in which `limit` units come back, evenly. */
  window: Duration
  /** Units that can pass at once after idleness. Default: `limit`. */
  burst?: number
}

export const parameters: Parameters = bucketParameters

/**
 * The generic cell rate algorithm: one theoretical arrival time per key. The same decisions as `tokenBucket`, by proof and by test.
 * In any half-open span of T at most burst + limit × T ÷ window units pass. Time and memory per key are constant.
 */
export function gcra(options: GcraOptions): ReservingRule {
  return new Bucket('gcra', 'gcra', checkOptions(parameters, options, 'gcra'))
}
