import { type Duration, durationText } from '../../core/duration.ts'
import { CatracaError } from '../../core/errors.ts'
import { ceilDiv, floorDiv, maxExact } from '../../core/integer.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import { type Charge, graceUs, type Outcome, type Rule, type Snapshot } from '../../core/rule.ts'

/** Options of {@link slidingCounter}. */
export interface SlidingCounterOptions {
  /** Units per window: a whole number from 1 to 10^12. */
  limit: number
  window: Duration
}

export const parameters: Parameters = {
  limit: { kind: 'integer', unit: 'units', min: 1, max: 1e12, words: 'units per window' },
  window: { kind: 'duration', words: 'length of the window that slides' },
}

/**
 * Estimates a sliding window from two counts: estimate = previous × (1 − elapsed ÷ window) + current, taken before
 * counting; a request of cost c passes when estimate + c − 1 < limit.
 *
 * Bounds. After a full previous window at most floor(limit × e) + 1 pass in the first share e of the next: with the
 * previous count at its limit the estimate leaves room limit × e. Over any half-open window at most 2 × limit pass: such
 * a span meets two windows, each of which counts at most its limit. The log is exact where this is not.
 */
export function slidingCounter(options: SlidingCounterOptions): Rule {
  const checked = checkOptions(parameters, options, 'slidingCounter')
  return new SlidingCounter(checked['limit'] as number, checked['window'] as number)
}

/** State: `origin`, the start of the current window, `level`, its count, and `prior`, the count of the one before. */
class SlidingCounter implements Rule {
  readonly algorithm = 'sliding-counter'
  readonly limit: number
  readonly tickUs: number
  readonly width = 3 as const
  readonly denial = 'limited' as const
  readonly holds = false as const
  readonly options: Readonly<Record<string, string | number>>
  private readonly window: number
  private readonly graceTicks: number

  constructor(limit: number, windowUs: number) {
    this.tickUs = fit(limit, windowUs)
    this.limit = limit
    this.window = windowUs / this.tickUs
    this.graceTicks = graceUs / this.tickUs
    this.options = { limit, windowMs: windowUs / 1_000 }
  }

  evaluate(state: Float64Array, at: number, now: number, cost: number, out: Outcome): void {
    const { window, limit } = this
    let start = state[at] as number
    let current = state[at + 1] as number
    let prior = state[at + 2] as number
    out.rebase = 0
    if (now >= start + window) {
      prior = now < start + 2 * window ? current : 0
      current = 0
      start = Math.floor(now / window) * window
    } else if (start - now > this.graceTicks) {
      out.rebase = start - now
      start = Math.floor(now / window) * window
    }
    const share = window - Math.max(0, now - start)
    // estimate + cost − 1 < limit, multiplied by the window: both sides whole and below 2^53.
    out.allowed = cost <= limit && prior * share < (limit - current - cost + 1) * window
    out.origin = start
    out.prior = prior
    out.level = out.allowed ? current + cost : current
    out.wait = out.allowed ? 0 : cost > limit ? Infinity : this.passesAt(start, current, prior, cost) - now
  }

  commit(state: Float64Array, at: number, _cost: number, _charged: boolean, out: Outcome): Float64Array {
    state[at] = out.origin
    state[at + 1] = out.level
    state[at + 2] = out.prior
    return state
  }

  refund(state: Float64Array, at: number, now: number, charge: Charge, units: number): number {
    if (state[at] !== charge.origin || now >= charge.origin + this.window) return 0
    const give = Math.min(units, state[at + 1] as number)
    state[at + 1] = (state[at + 1] as number) - give
    return give
  }

  endsAt(state: Float64Array, at: number): number {
    return (state[at] as number) + ((state[at + 1] as number) > 0 ? 2 : 1) * this.window
  }

  /** The greatest c with estimate + c − 1 < limit. As only the previous count is weighed, the fraction drops out. */
  remaining(snapshot: Snapshot, now: number): number {
    const share = this.window - Math.max(0, now - snapshot.origin)
    return Math.max(0, this.limit - snapshot.level - floorDiv(snapshot.prior * share, this.window))
  }

  resetTicks(snapshot: Snapshot, now: number): number {
    if (snapshot.level > 0) return snapshot.origin + 2 * this.window - now
    return snapshot.prior > 0 ? snapshot.origin + this.window - now : 0
  }

  delayTicks(): number {
    return 0
  }

  /** The first tick at which `cost` passes if nobody else asks. The estimate never rises by itself, so it is one tick. */
  private passesAt(start: number, current: number, prior: number, cost: number): number {
    const elapsed = this.firstElapsed(prior, this.limit - current - cost + 1)
    if (elapsed < this.window) return start + elapsed
    return start + this.window + this.firstElapsed(current, this.limit - cost + 1)
  }

  /** The first elapsed tick e with prior × (window − e) < room × window: e > window − room × window ÷ prior. */
  private firstElapsed(prior: number, room: number): number {
    if (room <= 0) return this.window
    if (prior === 0) return 0
    return Math.max(0, this.window - ceilDiv(room * this.window, prior) + 1)
  }
}

/** The finest tick at which twice the limit times the window, the largest product, stays below 2^53. */
function fit(limit: number, windowUs: number): number {
  for (const tickUs of [1, 1_000, 1_000_000]) {
    if (windowUs % tickUs !== 0) break
    if ((2 * limit + 1) * (windowUs / tickUs) <= maxExact) return tickUs
  }
  throw new CatracaError(
    'CATRACA_RULE_TOO_FINE',
    `slidingCounter of ${limit} per ${durationText(windowUs)} cannot be counted exactly in whole numbers; ` +
      'allowed: a smaller limit, a shorter window, or a window in whole seconds',
    { path: 'slidingCounter', value: { limit, window: durationText(windowUs) } },
  )
}
