import { type Duration, durationText } from '../../core/duration.ts'
import { CatracaError } from '../../core/errors.ts'
import { ceilDiv, floorDiv, maxExact, scaleUp } from '../../core/integer.ts'
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
import { SubWindows } from './sub-windows.ts'

/** Options of {@link slidingCounter}. */
export interface SlidingCounterOptions {
  /** Units per window: a whole number from 1 to 10^12. */
  limit: number
  window: Duration
  /**
   * Parts in which the window is counted: a whole number from 1 to 60, into which the window divides in whole µs. More of
   * them come nearer to the log, for 8 bytes per part and key. Default 1.
   */
  subWindows?: number
}

export const parameters: Parameters = {
  limit: { kind: 'integer', unit: 'units', min: 1, max: 1e12, words: 'units per window' },
  window: { kind: 'duration', words: 'length of the window that slides' },
  subWindows: { kind: 'integer', unit: 'parts', min: 1, max: 60, default: 1, words: 'parts in which it is counted' },
}

/**
 * Estimates a sliding window from two counts: estimate = previous × (1 − elapsed ÷ window) + current, taken before
 * counting; a request of cost c passes when estimate + c − 1 < limit.
 *
 * Bounds. After a full previous window at most floor(limit × e) + 1 pass in the first share e of the next: with the
 * previous count at its limit the estimate leaves room limit × e. Over any half-open window at most 2 × limit pass: such
 * a span meets two windows, each of which counts at most its limit. The log is exact where this is not; with `subWindows`
 * the second limit comes back over one part of the window and not over all of it ({@link SubWindows}).
 */
export function slidingCounter(options: SlidingCounterOptions): Rule {
  const { limit, window, subWindows } = checkOptions(parameters, options, 'slidingCounter') as Record<string, number>
  return subWindows === 1 ? new SlidingCounter(limit as number, window as number) : inParts(limit, window, subWindows)
}

function inParts(limit = 0, windowUs = 0, parts = 0): Rule {
  if (windowUs % parts === 0) return new SubWindows(limit, windowUs, parts, fit(limit, windowUs / parts))
  const path = 'slidingCounter.subWindows'
  const message = `${path} is ${parts}; allowed: a number that divides the window of ${durationText(windowUs)} into whole µs`
  throw new CatracaError('CATRACA_OPTION_INVALID', message, { path, value: parts })
}

/** State: `origin`, the start of the current window, `level`, its count, and `prior`, the count of the one before. */
class SlidingCounter implements Rule {
  readonly algorithm = 'sliding-counter'
  readonly limit: number
  readonly tickUs: number
  readonly graceTicks: number
  readonly width = 3 as const
  readonly denial = 'limited' as const
  readonly holds = false as const
  readonly lease = 'window' as const
  readonly options: Readonly<Record<string, string | number>>
  readonly script: ScriptForm
  private readonly window: number

  constructor(limit: number, windowUs: number) {
    this.tickUs = fit(limit, windowUs)
    this.limit = limit
    this.window = windowUs / this.tickUs
    this.graceTicks = graceUs / this.tickUs
    this.options = { limit, windowMs: windowUs / 1_000 }
    this.script = {
      kind: this.tickUs === 1 ? 'c' : 'C',
      name: `c${this.tickUs},${this.window},${limit};`,
      numbers: [limit, this.window, ...(this.tickUs === 1 ? [] : [this.tickUs])].map(String),
      unit: 1,
      lifeMs: lifeMs(2 * windowUs),
    }
  }

  take(state: Float64Array, at: number, now: number, cost: number): number {
    const { limit, window } = this
    if (cost > limit) return -Infinity
    const origin = state[at] as number
    const start = this.start(origin, now)
    const current = this.current(origin, state[at + 1] as number, now)
    const prior = this.before(origin, state[at + 1] as number, state[at + 2] as number, now)
    const weighed = prior * (window - Math.max(0, now - start))
    const room = limit - current - cost
    if (weighed >= (room + 1) * window) return now - this.passesAt(start, current, prior, cost)
    state[at] = start
    state[at + 1] = current + cost
    state[at + 2] = prior
    return Math.max(0, room - floorDiv(weighed, window))
  }

  wait(state: Float64Array, at: number, now: number, cost: number): number {
    const { limit, window } = this
    if (cost > limit) return Infinity
    const origin = state[at] as number
    const start = this.start(origin, now)
    const current = this.current(origin, state[at + 1] as number, now)
    const prior = this.before(origin, state[at + 1] as number, state[at + 2] as number, now)
    const share = window - Math.max(0, now - start)
    // estimate + cost − 1 < limit, multiplied by the window: both sides whole and below 2^53.
    if (prior * share < (limit - current - cost + 1) * window) return 0
    return this.passesAt(start, current, prior, cost) - now
  }

  /** The greatest c with estimate + c − 1 < limit. As only the previous count is weighed, the fraction drops out. */
  remaining(state: Float64Array, at: number, now: number): number {
    const origin = state[at] as number
    const level = state[at + 1] as number
    const share = this.window - Math.max(0, now - this.start(origin, now))
    const weighed = floorDiv(this.before(origin, level, state[at + 2] as number, now) * share, this.window)
    return Math.max(0, this.limit - this.current(origin, level, now) - weighed)
  }

  charge(state: Float64Array, at: number, now: number, cost: number): Float64Array {
    const origin = state[at] as number
    const level = state[at + 1] as number
    state[at] = this.start(origin, now)
    state[at + 1] = this.current(origin, level, now) + cost
    state[at + 2] = this.before(origin, level, state[at + 2] as number, now)
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
    return (state[at] as number) + ((state[at + 1] as number) > 0 ? 2 : 1) * this.window
  }

  used(state: Float64Array, at: number, now: number): number {
    const origin = state[at] as number
    const level = state[at + 1] as number
    const share = this.window - Math.max(0, now - this.start(origin, now))
    const weighed = ceilDiv(this.before(origin, level, state[at + 2] as number, now) * share, this.window)
    return this.current(origin, level, now) + weighed
  }

  /** Windows of one length, in ticks that may differ; a charge tells its window in ticks. */
  kinship(from: Rule): Kinship {
    if (!(from instanceof SlidingCounter) || from.window * from.tickUs !== this.window * this.tickUs) return 'none'
    return from.tickUs === this.tickUs ? 'same' : 'converts'
  }

  /**
   * Windows of one length count together, each up to its own limit. Counts may be above the limit; the products that
   * then pass 2^53 are compared with smaller ones and refuse, as they should, whatever they are rounded to.
   */
  adopt(
    state: Float64Array,
    at: number,
    nowUs: number,
    from: Rule,
    fromState: Float64Array,
    fromAt: number,
  ): Float64Array {
    if (this.kinship(from) === 'none') return raise(this, state, at, nowUs, from, fromState, fromAt)
    // The start of a window of whole ticks is a whole number of them, the longer ones too.
    state[at] = ((fromState[fromAt] as number) * from.tickUs) / this.tickUs
    state[at + 1] = fromState[fromAt + 1] as number
    state[at + 2] = fromState[fromAt + 2] as number
    return state
  }

  rescale(state: Float64Array, at: number, from: Rule): void {
    state[at + 1] = scaleUp(state[at + 1] as number, from.limit, this.limit)
    state[at + 2] = scaleUp(state[at + 2] as number, from.limit, this.limit)
  }

  resetTicks({ lead, level, prior }: Snapshot, now: number): number {
    const origin = now + lead
    const ends = this.start(origin, now) + this.window - now
    if (this.current(origin, level, now) > 0) return ends + this.window
    return this.before(origin, level, prior, now) > 0 ? ends : 0
  }

  delayTicks(): number {
    return 0
  }

  /** Start of the window in which a request at `now` is counted. */
  private start(origin: number, now: number): number {
    const current = now < origin + this.window && origin - now <= this.graceTicks
    // Exact: a quotient of whole numbers below 2^52 is never rounded up to the next whole number.
    return current ? origin : Math.floor(now / this.window) * this.window
  }

  /** The count of that window. */
  private current(origin: number, level: number, now: number): number {
    return now < origin + this.window ? level : 0
  }

  /** The count of the window before it. */
  private before(origin: number, level: number, prior: number, now: number): number {
    if (now < origin + this.window) return prior
    return now < origin + 2 * this.window ? level : 0
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
