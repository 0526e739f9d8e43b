import type { Duration } from '../../core/duration.ts'
import { scaleUp } from '../../core/integer.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import {
  type Charge,
  graceUs,
  type Kinship,
  lifeMs,
  type Rule,
  raise,
  type ScriptForm,
  type Snapshot,
} from '../../core/rule.ts'

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
  readonly graceTicks = graceUs
  readonly width = 2 as const
  readonly denial = 'limited' as const
  readonly holds = false as const
  readonly lease = 'window' as const
  readonly options: Readonly<Record<string, string | number>>
  readonly script: ScriptForm
  private readonly window: number
  private readonly first: boolean

  constructor(limit: number, windowUs: number, first: boolean) {
    this.limit = limit
    this.window = windowUs
    this.first = first
    this.options = { limit, windowMs: windowUs / 1_000, anchor: first ? 'first' : 'clock' }
    this.script = {
      kind: 'f',
      name: `${first ? 'F' : 'f'}${windowUs},${limit};`,
      numbers: [`${limit}`, `${windowUs}`, first ? '1' : '0'],
      unit: 1,
      lifeMs: lifeMs(windowUs),
    }
  }

  wait(state: Float64Array, at: number, now: number, cost: number): number {
    const origin = state[at] as number
    if (this.count(origin, state[at + 1] as number, now) + cost <= this.limit) return 0
    return cost > this.limit ? Infinity : this.start(origin, state[at + 1] as number, now) + this.window - now
  }

  remaining(state: Float64Array, at: number, now: number): number {
    return Math.max(0, this.limit - this.count(state[at] as number, state[at + 1] as number, now))
  }

  charge(state: Float64Array, at: number, now: number, cost: number): Float64Array {
    const origin = state[at] as number
    const level = state[at + 1] as number
    state[at] = this.start(origin, level, now)
    state[at + 1] = this.count(origin, level, now) + cost
    return state
  }

  refund(state: Float64Array, at: number, now: number, charge: Charge, units: number): number {
    if (state[at] !== charge.origin || now >= charge.origin + this.window) return 0
    const give = Math.min(units, state[at + 1] as number)
    state[at + 1] = (state[at + 1] as number) - give
    return give
  }

  originAt(state: Float64Array, at: number): number {
    return state[at] as number
  }

  levelAt(state: Float64Array, at: number): number {
    return state[at + 1] as number
  }

  endsAt(state: Float64Array, at: number): number {
    return (state[at] as number) + this.window
  }

  used(state: Float64Array, at: number, now: number): number {
    return this.count(state[at] as number, state[at + 1] as number, now)
  }

  kinship(from: Rule): Kinship {
    return from instanceof FixedWindow && from.window === this.window && from.first === this.first ? 'same' : 'none'
  }

  /** Windows of one length and anchor count together, each up to its own limit, so none admits more than the largest. */
  adopt(
    state: Float64Array,
    at: number,
    nowUs: number,
    from: Rule,
    fromState: Float64Array,
    fromAt: number,
  ): Float64Array {
    if (this.kinship(from) === 'none') return raise(this, state, at, nowUs, from, fromState, fromAt)
    state[at] = fromState[fromAt] as number
    state[at + 1] = fromState[fromAt + 1] as number
    return state
  }

  rescale(state: Float64Array, at: number, from: Rule): void {
    state[at + 1] = scaleUp(state[at + 1] as number, from.limit, this.limit)
  }

  resetTicks(snapshot: Snapshot, now: number): number {
    const { lead, level } = snapshot
    const origin = now + lead
    return this.count(origin, level, now) === 0 ? 0 : this.start(origin, level, now) + this.window - now
  }

  delayTicks(): number {
    return 0
  }

  /** Units counted in the window of `now`. */
  private count(origin: number, level: number, now: number): number {
    return now >= origin + this.window ? 0 : level
  }

  /** Start of the window in which a request at `now` is counted. */
  private start(origin: number, level: number, now: number): number {
    const current = now < origin + this.window && origin - now <= graceUs
    if (current && !(this.first && level === 0)) return origin
    return this.first ? now : startOf(now, this.window)
  }
}

/** Exact for epoch-scale times: a quotient of whole numbers below 2^52 is never rounded up to the next whole number. */
function startOf(now: number, window: number): number {
  return Math.floor(now / window) * window
}
