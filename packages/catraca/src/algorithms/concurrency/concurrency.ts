import type { Duration } from '../../core/duration.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import type { Kinship, Rule } from '../../core/rule.ts'
import { Ring } from '../ring/ring.ts'

/** Options of {@link concurrency}. */
export interface ConcurrencyOptions {
  /** Permits that can be held at once: a whole number from 1 to 10^6. */
  limit: number
  /** A permit that is not released comes back after this time. Default `30s`. Longer than the longest request. */
  permitTtl?: Duration
}

export const parameters: Parameters = {
  limit: { kind: 'integer', unit: 'permits', min: 1, max: 1e6, words: 'permits that can be held at once' },
  permitTtl: { kind: 'duration', default: '30s', words: 'after which a permit that was not released comes back' },
}

/**
 * Limits how much is under way at once. An admitted request holds `cost` permits until `release`, or until `permitTtl`
 * has passed, so that a lost holder cannot keep them. Release after that, or twice, does nothing.
 * `retryAfterMs` is the latest possible end of the wait: holders may release earlier.
 */
export function concurrency(options: ConcurrencyOptions): Rule {
  const checked = checkOptions(parameters, options, 'concurrency')
  return new Concurrency(checked['limit'] as number, checked['permitTtl'] as number)
}

class Concurrency extends Ring {
  readonly algorithm = 'concurrency'
  readonly denial = 'concurrency' as const
  readonly holds = true
  readonly lease = 'never'
  readonly options: Readonly<Record<string, string | number>>

  constructor(limit: number, ttlUs: number) {
    super('p', limit, ttlUs)
    this.options = { limit, permitTtlMs: ttlUs / 1_000 }
  }

  /** A permit keeps its id and its end whatever the limit and the life of later ones. */
  override kinship(from: Rule): Kinship {
    return from instanceof Concurrency ? 'same' : 'none'
  }
}
