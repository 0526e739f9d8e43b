import type { Duration } from '../../core/duration.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import type { ReservingRule } from '../../core/rule.ts'
import { Bucket, bucketParameters } from '../bucket/bucket.ts'

/** Options of {@link tokenBucket}. */
export interface TokenBucketOptions {
  /** Units that come back per window: a whole number from 1 to 10^12. */
  limit: number
  /** Time in which `limit` units come back, evenly. */
  window: Duration
  /** Units that can pass at once after idleness. Default: `limit`. */
  burst?: number
}

export const parameters: Parameters = bucketParameters

/**
 * A bucket of `burst` tokens that refills evenly, `limit` per `window`; a request takes its cost or nothing. Starts full.
 * In any half-open span of T at most burst + limit × T ÷ window units pass. Time and memory per key are constant.
 */
export function tokenBucket(options: TokenBucketOptions): ReservingRule {
  return new Bucket('token-bucket', 'tokenBucket', checkOptions(parameters, options, 'tokenBucket'))
}
