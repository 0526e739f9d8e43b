import type { Random } from '../core/random.ts'

/**
 * The wait in milliseconds that callers are told: later than `waitMs` by 10 to 20 %, so that those refused together do not
 * come back together. Whole, never below the wait, at most 2^53 − 1 so that every client can read it.
 *
 * @param random Numbers in [0, 1).
 */
export function spreadMs(waitMs: number, random: Random): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.ceil(waitMs * (1.1 + 0.1 * random())))
}

/**
 * The value of `Retry-After` for a wait: whole seconds, rounded up, at least 1, because some clients read 0 as no limit at
 * all and retry at once.
 */
export function retryAfterSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}
