import { durationText } from '../../core/duration.ts'
import { CatracaError } from '../../core/errors.ts'
import { ceilDiv, greatestCommonDivisor, maxExact, scaleUp } from '../../core/integer.ts'
import type { Checked, Parameters } from '../../core/parameters.ts'
import {
  type Charge,
  graceUs,
  type Kinship,
  lifeMs,
  type Rule,
  type ScriptForm,
  type Snapshot,
} from '../../core/rule.ts'

/** The options of the bucket family. */
export const bucketParameters = {
  limit: { kind: 'integer', unit: 'units', min: 1, max: 1e12, words: 'units that come back per window' },
  window: { kind: 'duration', words: 'time in which `limit` units come back, evenly' },
  burst: {
    kind: 'integer',
    unit: 'units',
    min: 1,
    max: 1e12,
    default: 'limit',
    words: 'units that can pass at once after idleness: the capacity',
  },
} as const satisfies Parameters

/**
 * Token bucket, GCRA and leaky meter are one rule; a leaky queue admits the same requests and delays them.
 *
 * State: `origin`, the tick up to which the bucket has drained, and `level`, what is used. One unit of cost is `unit`
 * levels and a tick drains `rate` levels, the refill as a reduced fraction `limit / window = rate / unit`, so that the
 * level after any number of ticks is a whole number and nothing is ever rounded. `prior` adds up the levels given back;
 * past 2^53 that sum is rounded up, which errs against the caller by less than the sum × 2^-51.
 *
 * Bound: in any half-open span of T ticks at most burst + limit × T ÷ window units pass. Proof: a pass raises the level
 * by cost × unit and never above burst × unit; a tick lowers it by at most `rate`; so what passes in T ticks is at most
 * what fits at its start, burst × unit, plus T × rate, all divided by `unit`.
 */
export class Bucket implements Rule {
  readonly algorithm: string
  readonly limit: number
  readonly tickUs: number
  readonly graceTicks: number
  readonly width = 3 as const
  readonly denial = 'limited' as const
  readonly holds = false as const
  readonly reserves = true as const
  readonly lease: 'kept' | 'never'
  readonly options: Readonly<Record<string, string | number>>
  readonly script: ScriptForm
  private readonly shapes: boolean
  private readonly unit: number
  private readonly rate: number
  private readonly capacity: number

  constructor(algorithm: string, where: string, checked: Checked, shapes = false) {
    const limit = checked['limit'] as number
    const windowUs = checked['window'] as number
    const burst = checked['burst'] as number
    const exact = fit(limit, windowUs, burst)
    if (exact === undefined) throw tooFine(where, limit, windowUs, burst)
    this.algorithm = algorithm
    this.limit = burst
    this.options = { limit, windowMs: windowUs / 1_000, burst }
    this.shapes = shapes
    this.lease = shapes ? 'never' : 'kept'
    this.tickUs = exact.tickUs
    this.unit = exact.unit
    this.rate = exact.rate
    this.capacity = burst * exact.unit
    this.graceTicks = graceUs / exact.tickUs
    const plain = exact.tickUs === 1 && exact.rate === 1
    this.script = {
      kind: plain ? 'b' : 'B',
      name: `b${exact.tickUs},${exact.unit},${exact.rate},${burst};`,
      numbers: [this.capacity, ...(plain ? [] : [exact.rate, exact.tickUs])].map(String),
      unit: exact.unit,
      lifeMs: lifeMs(ceilDiv(this.capacity, exact.rate) * exact.tickUs),
    }
  }

  take(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.limit) return -Infinity
    const elapsed = now - (state[at] as number)
    const over = this.over(elapsed, state[at + 1] as number, cost)
    if (over > 0) return -(ceilDiv(over, this.rate) + this.lead(elapsed))
    state[at] = now + this.lead(elapsed)
    state[at + 1] = over + this.capacity
    // The capacity is at most 2^52, where rounding never lifts a quotient of whole numbers to the next whole number.
    return Math.floor((0 - over) / this.unit)
  }

  wait(state: Float64Array, at: number, now: number, cost: number): number {
    if (cost > this.limit) return Infinity
    const elapsed = now - (state[at] as number)
    const over = this.over(elapsed, state[at + 1] as number, cost)
    return over <= 0 ? 0 : ceilDiv(over, this.rate) + this.lead(elapsed)
  }

  /**
   * A reservation is a debt: what is charged before it is due drains in its turn, and starts when the level has come down
   * to the capacity. So the bound of the class holds for what starts, too: at each start the level, less what starts
   * later, is at most the capacity, and in between the level drains at the rate. A debt above 2^53 is not lent.
   */
  startsIn(state: Float64Array, at: number, now: number, cost: number): number {
    const ticks = this.wait(state, at, now, cost)
    const elapsed = now - (state[at] as number)
    const level = this.drained(elapsed, state[at + 1] as number) + cost * this.unit
    if (!this.shapes) return level <= maxExact ? ticks : Infinity
    return ticks > 0 ? Infinity : ceilDiv(level, this.rate) + this.lead(elapsed)
  }

  remaining(state: Float64Array, at: number, now: number): number {
    const over = this.over(now - (state[at] as number), state[at + 1] as number, 0)
    return over < 0 ? Math.floor((0 - over) / this.unit) : 0
  }

  charge(state: Float64Array, at: number, now: number, cost: number): Float64Array {
    const elapsed = now - (state[at] as number)
    state[at + 1] = this.drained(elapsed, state[at + 1] as number) + cost * this.unit
    state[at] = now + this.lead(elapsed)
    return state
  }

  /**
   * Charges drain first in, first out. A charge that raised the level to `charge.level` still occupies what lies above
   * all that has drained, and above all that was given back, since; that much can be given back, fractions of a unit too.
   *
   * So what was taken less what was given back keeps the bound of the class: over a span from a on it can only be passed
   * by refunds of charges from before a, and those are parts of the level at a, which took the same room away. Refunds of
   * later charges are counted as if they lay below, which errs against the caller.
   *
   * Of a reservation that has not started nothing has drained but what was given back below it. Who reserved behind it
   * keeps the time it was given, and what starts then must be in the level, which the refill would empty meanwhile were
   * too much given back: it cannot as long as what was given back since, what was charged behind and the charge itself
   * are at most the capacity. Beyond that a reservation can be given back only while nobody is behind it.
   */
  refund(state: Float64Array, at: number, now: number, charge: Charge, units: number): number {
    const elapsed = Math.max(0, now - charge.origin)
    const refunded = state[at + 2] as number
    // Less than at the charge: the state ended since, and with it what was charged.
    const since = this.shapes ? 0 : Math.max(0, refunded - charge.prior)
    const top = charge.level - elapsed * this.rate
    const own = top - since
    if (own <= 0) return 0
    const level = this.drained(now - (state[at] as number), state[at + 1] as number)
    const wanted = Math.min(units, charge.cost) * this.unit
    if (top > this.capacity && level > own && level - own + since + wanted > this.capacity) return 0
    // Who queues behind keeps the time it was given, so a place in the middle of a queue cannot be given to another.
    if (this.shapes && level > own) return 0
    const give = Math.min(wanted, own, level)
    this.charge(state, at, now, 0)
    state[at + 1] = level - give
    state[at + 2] = sumUp(refunded, give)
    return give / this.unit
  }

  originAt(state: Float64Array, at: number): number {
    return state[at] as number
  }

  levelAt(state: Float64Array, at: number): number {
    return state[at + 1] as number
  }

  endsAt(state: Float64Array, at: number): number {
    return (state[at] as number) + ceilDiv(state[at + 1] as number, this.rate)
  }

  used(state: Float64Array, at: number, now: number): number {
    return ceilDiv(this.drained(now - (state[at] as number), state[at + 1] as number), this.unit)
  }

  /** All buckets, as far as they count: a level is a fraction of a unit in each. */
  kinship(from: Rule): Kinship {
    if (!(from instanceof Bucket)) return 'none'
    const same =
      from.tickUs === this.tickUs &&
      from.unit === this.unit &&
      from.rate === this.rate &&
      from.capacity === this.capacity &&
      from.shapes === this.shapes
    return same ? 'same' : 'converts'
  }

  /**
   * What is used stays used to the level, rounded up by less than one level. A smaller bucket may so be in debt, as deep
   * as the larger one was: the debt must not be cut, or who comes back to the larger one finds room there.
   *
   * Bound: over kin, at most (largest burst) + (greatest rate) × T in any half-open span of T. The proof of the class
   * holds with one level in units for all of them: a pass never raises it above the burst of its own bucket, each instant
   * is drained once, by one of the rates, and a conversion never lowers it. With ticks of several lengths the instants
   * of the span are those that the longest of them sees. Through a queue that is what is admitted; what was queued under
   * a slower rate leaves beside what is queued later, so what leaves may exceed the rate by one capacity.
   *
   * Depth of a debt: levels up to 2^53 are exact, as {@link Bucket.drained} is, and a sum that passes 2^53 stands for a
   * refusal whatever it is rounded to. A deeper one (over 2^53 ÷ unit units, which the numbers of the two rules must
   * differ by many powers of ten for) is kept rounded up by more than all rounding until it is paid: see {@link scaleUp}.
   */
  adopt(
    state: Float64Array,
    at: number,
    nowUs: number,
    from: Rule,
    fromState: Float64Array,
    fromAt: number,
  ): Float64Array {
    const now = Math.floor(nowUs / this.tickUs)
    if (!(from instanceof Bucket)) {
      const used = from.used(fromState, fromAt, Math.floor(nowUs / from.tickUs))
      this.charge(state, at, now, 0)
      state[at + 1] = Math.max(state[at + 1] as number, scaleUp(used, 1, this.unit))
      return state
    }
    const origin = fromState[fromAt] as number
    const level = fromState[fromAt + 1] as number
    const prior = fromState[fromAt + 2] as number
    if (this.kinship(from) === 'same') {
      state[at] = origin
      state[at + 1] = level
      state[at + 2] = prior
      return state
    }
    // The latest instant not after now that both rules can tell, so that none is drained twice; where the state is of a
    // later one, that is rounded up to a tick of this rule and waited for, as any stored time ahead of now.
    const tickUs = Math.max(from.tickUs, this.tickUs)
    const seen = Math.max(origin, (Math.floor(nowUs / tickUs) * tickUs) / from.tickUs)
    const time = Math.ceil((seen * from.tickUs) / this.tickUs)
    const broken = origin - Math.floor(nowUs / from.tickUs) > from.graceTicks
    state[at] = broken ? time : Math.min(time, now + this.graceTicks)
    state[at + 1] = scaleUp(from.drained(seen - origin, level), from.unit, this.unit)
    // A charge from before is in levels of then, and was drained at rates it does not know. A whole capacity more counts
    // as given back since, so that nothing of it is given back when the state has returned to its rule.
    state[at + 2] = sumUp(scaleUp(prior, from.unit, this.unit), this.capacity)
    return state
  }

  rescale(state: Float64Array, at: number, from: Rule): void {
    state[at + 1] = scaleUp(state[at + 1] as number, from.limit, this.limit)
  }

  resetTicks(snapshot: Snapshot): number {
    const level = this.drained(-snapshot.lead, snapshot.level)
    return level === 0 ? 0 : ceilDiv(level, this.rate) + this.lead(-snapshot.lead)
  }

  delayTicks({ lead, level }: Snapshot, _now: number, cost: number): number {
    if (!this.shapes) return 0
    return ceilDiv(this.drained(-lead, level) + cost * this.unit, this.rate) + this.lead(-lead)
  }

  /** By how much a level would pass the capacity with `cost` more units; at most 0 when they fit. */
  private over(elapsed: number, level: number, cost: number): number {
    return this.drained(elapsed, level) + cost * this.unit - this.capacity
  }

  /**
   * What is left of a level after `elapsed` ticks. A stored time ahead of now has drained nothing yet. Where the product
   * is not exact it is above 2^53, and so is its rounded value: above every level.
   */
  private drained(elapsed: number, level: number): number {
    if (elapsed <= 0) return level
    const gone = elapsed * this.rate
    return level > gone ? level - gone : 0
  }

  /** Ticks by which a stored time that wins is ahead of now. */
  private lead(elapsed: number): number {
    return elapsed < 0 && -elapsed <= this.graceTicks ? -elapsed : 0
  }
}

/** The sum of two whole numbers, rounded up where it is not exact. */
function sumUp(a: number, b: number): number {
  const sum = a + b
  return sum - a < b ? sum * (1 + Number.EPSILON) : sum
}

interface Exact {
  tickUs: number
  unit: number
  rate: number
}

/**
 * The finest tick at which the rule is exact: the window is a whole number of ticks, and twice the capacity (the deepest
 * debt that the rule itself lends) plus one tick's drain stays below 2^53.
 */
function fit(limit: number, windowUs: number, burst: number): Exact | undefined {
  for (const tickUs of [1, 1_000, 1_000_000]) {
    if (windowUs % tickUs !== 0) break
    const ticks = windowUs / tickUs
    const common = greatestCommonDivisor(limit, ticks)
    const unit = ticks / common
    const rate = limit / common
    if (2 * burst * unit + rate <= maxExact) return { tickUs, unit, rate }
  }
  return undefined
}

function tooFine(where: string, limit: number, windowUs: number, burst: number): CatracaError {
  return new CatracaError(
    'CATRACA_RULE_TOO_FINE',
    `${where} of ${limit} per ${durationText(windowUs)}, burst ${burst}, cannot be counted exactly in whole numbers; ` +
      'allowed: a smaller limit or burst, or a limit and window that share factors (such as 1000000 per 1s)',
    { path: where, value: { limit, window: durationText(windowUs), burst } },
  )
}
