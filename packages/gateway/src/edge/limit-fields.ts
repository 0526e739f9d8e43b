import type { Decision } from 'catraca'

/** Structured fields carry integers of at most 15 digits. */
const maxInteger = 999_999_999_999_999n

/**
 * The `RateLimit-Policy` and `RateLimit` header fields of one bucket.
 *
 * The policy says q = what can pass at once and w = whole seconds in which an empty bucket fills. `RateLimit` says
 * r = what would pass now and t: refused, the seconds to wait; admitted, w, so that r ÷ t never asks for more than the
 * mean rate.
 */
export class LimitFields {
  /** Value of `RateLimit-Policy`. */
  readonly policy: string
  private readonly name: string
  private readonly fillSeconds: string

  /** @param name Policy name. @param limit Units per window. @param burst Capacity in units. */
  constructor(name: string, limit: number, windowMs: number, burst: number) {
    this.name = `"${name}"`
    this.fillSeconds = String(fillSeconds(limit, windowMs, burst))
    this.policy = `${this.name};q=${burst};w=${this.fillSeconds}`
  }

  /** Both fields with the state a decision left, in the flat form of `writeHead`. */
  of(decision: Decision): string[] {
    const state = decision.allowed
      ? `${this.name};r=${decision.remaining};t=${this.fillSeconds}`
      : `${this.name};r=0;t=${Math.ceil(decision.retryAfterMs / 1_000)}`
    return ['RateLimit-Policy', this.policy, 'RateLimit', state]
  }
}

/** Exact, because burst × window can exceed 2^53. */
function fillSeconds(limit: number, windowMs: number, burst: number): bigint {
  const needed = BigInt(burst) * BigInt(Math.round(windowMs * 1_000))
  const perSecond = BigInt(limit) * 1_000_000n
  const seconds = (needed + perSecond - 1n) / perSecond
  return seconds > maxInteger ? maxInteger : seconds
}
