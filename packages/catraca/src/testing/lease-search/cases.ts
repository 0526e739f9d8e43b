import { fixedWindow } from '../../algorithms/fixed-window/fixed-window.ts'
import { slidingCounter } from '../../algorithms/sliding-counter/sliding-counter.ts'
import { slidingLog } from '../../algorithms/sliding-log/sliding-log.ts'
import { tokenBucket } from '../../algorithms/token-bucket/token-bucket.ts'
import type { LeaseTerms } from '../../core/decision.ts'
import type { Rule } from '../../core/rule.ts'

/** A rule under terms of a lease, to be searched. */
export interface LeaseCase {
  readonly rule: Rule
  readonly terms: LeaseTerms
  readonly instances: number
}

interface Shape {
  readonly limit: number
  readonly windowMs: number
  readonly block: number
  readonly ttlMs: number
  readonly instances: number
}

/**
 * Windows shorter than a lease, of its length, and longer; limits of which leases are a small part, and nearly all. The
 * bound is met soonest where few instances share the key.
 */
const shapes: readonly Shape[] = [
  { limit: 20, windowMs: 1_000, block: 6, ttlMs: 2_500, instances: 1 },
  { limit: 12, windowMs: 500, block: 10, ttlMs: 2_000, instances: 1 },
  { limit: 16, windowMs: 8_000, block: 6, ttlMs: 1_000, instances: 1 },
  { limit: 8, windowMs: 1_000, block: 4, ttlMs: 2_500, instances: 2 },
  { limit: 20, windowMs: 1_000, block: 5, ttlMs: 1_000, instances: 3 },
  { limit: 100, windowMs: 1_000, block: 10, ttlMs: 2_000, instances: 4 },
  { limit: 12, windowMs: 2_000, block: 10, ttlMs: 500, instances: 2 },
  { limit: 40, windowMs: 2_000, block: 4, ttlMs: 1_500, instances: 6 },
  { limit: 30, windowMs: 1_500, block: 3, ttlMs: 2_000, instances: 5 },
  { limit: 6, windowMs: 500, block: 8, ttlMs: 1_000, instances: 2 },
  { limit: 50, windowMs: 60_000, block: 10, ttlMs: 1_000, instances: 3 },
  { limit: 25, windowMs: 60_000, block: 20, ttlMs: 2_000, instances: 4 },
]

const makers: Readonly<Record<string, (limit: number, window: number) => Rule>> = {
  'fixed window': (limit, window) => fixedWindow({ limit, window }),
  'fixed window from the first': (limit, window) => fixedWindow({ limit, window, anchor: 'first' }),
  'sliding counter': (limit, window) => slidingCounter({ limit, window }),
  'sliding counter in parts': (limit, window) => slidingCounter({ limit, window, subWindows: 4 }),
  'sliding log': (limit, window) => slidingLog({ limit, window }),
  'token bucket': (limit, window) => tokenBucket({ limit, window }),
}

/** Cases worth a search, by the kind of rule. GCRA and leaky meter are the token bucket under other names. */
export const leaseCases: Readonly<Record<string, readonly LeaseCase[]>> = Object.fromEntries(
  Object.entries(makers).map(([name, make]) => [
    name,
    shapes.map(({ limit, windowMs, block, ttlMs, instances }) => ({
      rule: make(limit, windowMs),
      terms: { block, ttlUs: ttlMs * 1_000 },
      instances,
    })),
  ]),
)
