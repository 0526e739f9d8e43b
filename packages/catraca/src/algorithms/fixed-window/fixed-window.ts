import type { Duration } from '../../core/duration.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import { type Charge, graceUs, type Outcome, type Rule, type Snapshot } from '../../core/rule.ts'

/** Options of {@link fixedWindow}. */
export interface FixedWindowOptions {
  /** Units per window: a whole number from 1 to 10^15. */
  limit: number
  window: Duration
  /** `clock` (default): windows [kW, (k+1)W) since the epoch, the same for all keys. `first`: from a key's first request. */
  anchor?: 'clock' | 'first'
}

export const parameters: Parameters = {
  limit: { kind: 'integer', unit: 'units', min: 1, max: 1e15, words: 'units per window' },
  window: { kind: 'duration', words: 'length of a window' },
  anchor: { kind: 'choice', of: ['clock', 'first'], default: 'clock', words: 'where windows begin' },
}

/**
 * Counts in windows that do not overlap. Cheapest, and loosest.
 * Bound: at most 2 × limit in any half-open span of one window, since such a span meets at most two windows.
 */
export function fixedWindow(options: FixedWindowOptions): Rule {
  const checked = checkOptions(parameters, options, 'fixedWindow')
  return new FixedWindow(checked['limit'] as number, checked['window'] as number, checked['anchor'] === 'first')
}

/** State: `origin`, the start of the window, and `level`, the units counted in it. */
class FixedWindow implements Rule {
  readonly algorithm = 'fixed-window'
  readonly limit: number
  readonly tickUs = 1
  readonly width = 2 as const
  readonly denial = 'limited' as const
  readonly holds = false as const
  readonly options: Readonly<Record<string, string | number>>
  private readonly window: number
  private readonly first: boolean

  constructor(limit: number, windowUs: number, first: boolean) {
    this.limit = limit
    this.window = windowUs
    this.first = first
    this.options = { limit, windowMs: windowUs / 1_000, anchor: first ? 'first' : 'clock' }
  }

  evaluate(state: Float64Array, at: number, now: number, cost: number, out: Outcome): void {
    let start = state[at] as number
    let count = state[at + 1] as number
    out.rebase = 0
    if (now >= start + this.window || count === 0) {
      start = this.first ? now : Math.max(start, this.startOf(now))
      count = 0
    }
    if (start - now > graceUs) {
      out.rebase = start - now
      start = this.first ? now : this.startOf(now)
    }
    out.origin = start
    out.allowed = count + cost <= this.limit
    out.level = out.allowed ? count + cost : count
    out.wait = out.allowed ? 0 : cost > this.limit ? Infinity : start + this.window - now
  }

  commit(state: Float64Array, at: number, _cost: number, _charged: boolean, out: Outcome): Float64Array {
    state[at] = out.origin
    state[at + 1] = out.level
    return state
  }

  refund(state: Float64Array, at: number, now: number, charge: Charge, units: number): number {
    if (state[at] !== charge.origin || now >= charge.origin + this.window) return 0
    const give = Math.min(units, state[at + 1] as number)
    state[at + 1] = (state[at + 1] as number) - give
    return give
  }

  endsAt(state: Float64Array, at: number): number {
    return (state[at] as number) + this.window
  }

  remaining(snapshot: Snapshot): number {
    return Math.max(0, this.limit - snapshot.level)
  }

  resetTicks(snapshot: Snapshot, now: number): number {
    return snapshot.level === 0 ? 0 : snapshot.origin + this.window - now
  }

  delayTicks(): number {
    return 0
  }

  /** Exact for epoch-scale times: the quotient of whole numbers below 2^52 never rounds up to the next whole number. */
  private startOf(now: number): number {
    return Math.floor(now / this.window) * this.window
  }
}
