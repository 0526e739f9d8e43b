import { type Duration, durationText, durationUs } from '../../core/duration.ts'
import { CatracaError, show } from '../../core/errors.ts'
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
  /**
   * How much later than by the clock windows begin: a time shorter than the window, as text. `key` gives each key one of
   * 16 offsets, spread evenly over the window, so that not all who were refused come back at one instant. Default none.
   */
  offset?: Duration | 'key'
}

export const parameters: Parameters = {
  limit: { kind: 'integer', unit: 'units', min: 1, max: 1e15, words: 'units per window' },
  window: { kind: 'duration', words: 'length of a window' },
  anchor: { kind: 'choice', of: ['clock', 'first'], default: 'clock', words: 'where windows begin' },
  offset: {
    kind: 'text',
    like: '"key", or a duration such as "15s" that is shorter than the window, as text',
    default: '',
    words: 'how much later windows begin; `key`: by one of 16 spans, each key its own',
  },
}

/**
 * Counts in windows that do not overlap. Cheapest, and loosest.
 * Bound: at most 2 × limit in any half-open span of one window, since such a span meets at most two windows.
 */
export function fixedWindow(options: FixedWindowOptions): Rule {
  const { limit, window, anchor, offset } = checkOptions(parameters, options, 'fixedWindow')
  return new FixedWindow(
    limit as number,
    window as number,
    anchor === 'first',
    offsetOf(offset, window as number, anchor),
  )
}

function offsetOf(offset: unknown, windowUs: number, anchor: unknown): number | 'key' {
  if (offset === undefined) return 0
  const path = 'fixedWindow.offset'
  const us = offset === 'key' ? 0 : durationUs(offset, path)
  if (us < windowUs && anchor === 'clock') return offset === 'key' ? 'key' : us
  const allowed = anchor === 'clock' ? `less than the window of ${durationText(windowUs)}` : 'only with anchor: clock'
  const message = `${path} is ${show(offset)}; allowed: ${allowed}`
  throw new CatracaError('CATRACA_OPTION_INVALID', message, { path, value: offset })
}

/** Offsets among which keys are spread. */
const spreadOver = 16

/**
 * The rules that stand for one with an offset per key: as many with fixed offsets, variants of one policy, of which
 * {@link variantFor} says which a key is asked under. Of any other rule itself alone.
 */
export function variantsOf(rule: Rule): readonly Rule[] {
  return rule instanceof FixedWindow && rule.options['offset'] === 'key' ? rule.spread() : [rule]
}

/** The place of a key among {@link variantsOf} a rule: the same in every process and release. */
export function variantFor(key: string): number {
  // FNV-1a, and the end of MurmurHash3, since keys often differ in their last letter only.
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) & (spreadOver - 1)
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
  private readonly offset: number

  /** @param offset In µs. `key` is for {@link variantsOf}: asked itself, such a rule has none. */
  constructor(limit: number, windowUs: number, first: boolean, offset: number | 'key') {
    const us = offset === 'key' ? 0 : offset
    this.limit = limit
    this.window = windowUs
    this.first = first
    this.offset = us
    this.options = {
      limit,
      windowMs: windowUs / 1_000,
      anchor: first ? 'first' : 'clock',
      ...(offset !== 0 && { offset: offset === 'key' ? offset : durationText(offset) }),
    }
    this.script = {
      kind: 'f',
      name: us > 0 ? `o${windowUs}+${us},${limit};` : `${first ? 'F' : 'f'}${windowUs},${limit};`,
      numbers: [`${limit}`, `${windowUs}`, first ? '-1' : `${us}`],
      unit: 1,
      lifeMs: lifeMs(windowUs),
    }
  }

  /** The same with fixed offsets, from none to one sixteenth less than the window. */
  spread(): readonly Rule[] {
    return Array.from({ length: spreadOver }, (_, index) => {
      return new FixedWindow(this.limit, this.window, false, Math.floor((index * this.window) / spreadOver))
    })
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
    if (!(from instanceof FixedWindow) || from.window !== this.window) return 'none'
    return from.first === this.first && from.offset === this.offset ? 'same' : 'none'
  }

  /** Windows of one length, anchor and offset count together, each up to its own limit, so none admits more than the largest. */
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
    // A key never seen says 0, which may begin no window of an offset.
    if (current && !((this.first || this.offset > 0) && level === 0)) return origin
    return this.first ? now : startOf(now - this.offset, this.window) + this.offset
  }
}

/** Exact for epoch-scale times: a quotient of whole numbers below 2^52 is never rounded up to the next whole number. */
function startOf(now: number, window: number): number {
  return Math.floor(now / window) * window
}
