import { ceilDiv, floorDiv, scaleUp } from '../../core/integer.ts'
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

/** Place of the newest count in a list; before it stands the start of its part. */
const first = 1

/**
 * A sliding counter whose window is counted in `parts` parts of equal length: estimate = the parts that the window covers
 * whole + the oldest one × the share of it that is still inside; a request of cost c passes when estimate + c − 1 < limit.
 *
 * Bounds, of a part p = window ÷ parts and half-open spans.
 * - At most `limit` in any span of window − p. It meets at most `parts` parts that follow each other; when the last unit
 *   of them passed, all of them counted in full, and full + cost ≤ limit follows from the rule.
 * - At most `limit` × (1 + e) + 1 in any span of one window that ends at the share e of a part. It begins at the share e
 *   of the part `parts` before, whose count is a ≤ limit. When the last unit passed, the estimate, with at least 1 − e of
 *   a, was below limit + 1: the rest of the span is less than limit + 1 − a × (1 − e), and with a less than
 *   limit + 1 + a × e. So 2 × limit in a whole window, as with one part; but no longer all at once: the second limit
 *   comes back evenly over the last p of the window, where one part gives it back over all of the window.
 * - The estimate is off from the log by less than what the oldest part counts: of even traffic limit ÷ parts.
 *
 * State: a list, the start of the newest part in which units are counted, and `parts` + 1 counts, the newest first; the
 * newest is 0 only where all are. Snapshot: `level`, units in use, rounded down; `origin`, that start.
 */
export class SubWindows implements Rule {
  readonly algorithm = 'sliding-counter'
  readonly limit: number
  readonly tickUs: number
  readonly graceTicks: number
  readonly width = 0 as const
  readonly denial = 'limited' as const
  readonly holds = false as const
  readonly lease = 'window' as const
  readonly options: Readonly<Record<string, string | number>>
  readonly script: ScriptForm
  private readonly parts: number
  /** Length of a part in ticks. */
  private readonly part: number

  /** @param windowUs A multiple of `parts` ticks. */
  constructor(limit: number, windowUs: number, parts: number, tickUs: number) {
    this.limit = limit
    this.tickUs = tickUs
    this.graceTicks = graceUs / tickUs
    this.parts = parts
    this.part = windowUs / parts / tickUs
    this.options = { limit, windowMs: windowUs / 1_000, subWindows: parts }
    this.script = {
      kind: 's',
      name: `s${tickUs},${this.part},${parts},${limit};`,
      numbers: [limit, this.part, parts, tickUs].map(String),
      unit: 1,
      lifeMs: lifeMs(windowUs + windowUs / parts),
    }
  }

  wait(list: Float64Array, _at: number, now: number, cost: number): number {
    const { limit, part } = this
    if (cost > limit) return Infinity
    const start = this.start(list, now)
    const age = this.age(list, start, now)
    // The first part that is to come, or the current one, in which those inside as a whole leave room: at last in none.
    let later = 0
    while (limit - this.whole(list, age + later) - cost < 0) later++
    const room = limit - this.whole(list, age + later) - cost + 1
    const elapsed = firstElapsed(this.oldest(list, age + later), room, part)
    if (later === 0 && elapsed <= Math.max(0, now - start)) return 0
    return start + later * part + elapsed - now
  }

  remaining(list: Float64Array, at: number, now: number): number {
    return Math.max(0, this.limit - this.levelAt(list, at, now))
  }

  charge(list: Float64Array, _at: number, now: number, cost: number): Float64Array {
    const start = this.start(list, now)
    // Nothing to be brought to now but a state of a broken clock: parts are as of their own time.
    if (cost === 0 && !this.isBroken(list, now)) return list
    const age = this.age(list, start, now)
    const state = list.length === 0 ? new Float64Array(first + this.parts + 1) : list
    if (age > 0) {
      state.copyWithin(first + age, first)
      state.fill(0, first, Math.min(first + age, state.length))
    }
    state[0] = start
    state[first] = (state[first] as number) + cost
    return state
  }

  /** Gives back what a part counts while the window covers it whole; of a part that leaves, less than that would come back. */
  refund(list: Float64Array, _at: number, now: number, charge: Charge, units: number): number {
    if (list.length === 0) return 0
    const start = this.start(list, now)
    const index = ((list[0] as number) - charge.origin) / this.part
    if (!(Number.isInteger(index) && index >= 0 && index + this.age(list, start, now) < this.parts)) return 0
    const counted = list[first + index] as number
    const give = Math.min(units, counted)
    list[first + index] = counted - give
    this.trim(list)
    return give
  }

  originAt(list: Float64Array): number {
    return isEmpty(list) ? 0 : (list[0] as number)
  }

  levelAt(list: Float64Array, _at: number, now: number): number {
    const age = this.age(list, this.start(list, now), now)
    return this.whole(list, age) + floorDiv(this.oldest(list, age) * this.share(list, now), this.part)
  }

  endsAt(list: Float64Array): number {
    return isEmpty(list) ? 0 : (list[0] as number) + (this.parts + 1) * this.part
  }

  used(list: Float64Array, _at: number, now: number): number {
    const age = this.age(list, this.start(list, now), now)
    return this.whole(list, age) + ceilDiv(this.oldest(list, age) * this.share(list, now), this.part)
  }

  /** Windows of one length in as many parts, in ticks that may differ; a charge tells its part in ticks. */
  kinship(from: Rule): Kinship {
    if (!(from instanceof SubWindows) || from.parts !== this.parts) return 'none'
    if (from.part * from.tickUs !== this.part * this.tickUs) return 'none'
    return from.tickUs === this.tickUs ? 'same' : 'converts'
  }

  /** Windows of one length and number of parts count together, each up to its own limit. */
  adopt(
    list: Float64Array,
    at: number,
    nowUs: number,
    from: Rule,
    fromState: Float64Array,
    fromAt: number,
  ): Float64Array {
    if (this.kinship(from) === 'none') return raise(this, list, at, nowUs, from, fromState, fromAt)
    const state = fromState.slice()
    // The start of a part of whole ticks is a whole number of them, the longer ones too.
    if (state.length > 0) state[0] = ((state[0] as number) * from.tickUs) / this.tickUs
    return state
  }

  rescale(list: Float64Array, _at: number, from: Rule): void {
    for (let index = first; index < list.length; index++) {
      list[index] = scaleUp(list[index] as number, from.limit, this.limit)
    }
  }

  resetTicks({ lead }: Snapshot, now: number): number {
    const start = lead > this.graceTicks ? Math.floor(now / this.part) * this.part - now : lead
    return Math.max(0, start + (this.parts + 1) * this.part)
  }

  delayTicks(): number {
    return 0
  }

  /** True when the stored time is ahead of a broken clock. */
  private isBroken(list: Float64Array, now: number): boolean {
    return this.originAt(list) - now > this.graceTicks
  }

  /** Start of the part in which a request at `now` is counted. */
  private start(list: Float64Array, now: number): number {
    const origin = this.originAt(list)
    if (now < origin + this.part && !this.isBroken(list, now)) return origin
    // Exact: a quotient of whole numbers below 2^52 is never rounded up to the next whole number.
    return Math.floor(now / this.part) * this.part
  }

  /** How many parts the newest count lies back; more than `parts` for none. A state of a broken clock is as of now. */
  private age(list: Float64Array, start: number, now: number): number {
    if (isEmpty(list)) return this.parts + 1
    return this.isBroken(list, now) ? 0 : Math.min(this.parts + 1, (start - (list[0] as number)) / this.part)
  }

  /** What the parts count that are inside as a whole when the newest count lies `age` parts back. */
  private whole(list: Float64Array, age: number): number {
    let sum = 0
    for (let index = first; index < first + this.parts - age; index++) sum += list[index] as number
    return sum
  }

  /** What the part counts that is leaving then. */
  private oldest(list: Float64Array, age: number): number {
    return age > this.parts || list.length === 0 ? 0 : (list[first + this.parts - age] as number)
  }

  /** Ticks of that part that are still inside. */
  private share(list: Float64Array, now: number): number {
    return this.part - Math.max(0, now - this.start(list, now))
  }

  /** After the newest count has become 0: lets the newest that is not be the first. */
  private trim(list: Float64Array): void {
    let empty = 0
    while (empty <= this.parts && list[first + empty] === 0) empty++
    if (empty === 0 || empty > this.parts) return
    list.copyWithin(first, first + empty)
    list.fill(0, list.length - empty)
    list[0] = (list[0] as number) - empty * this.part
  }
}

/** True for a list in which nothing is counted. */
function isEmpty(list: Float64Array): boolean {
  return list.length === 0 || list[first] === 0
}

/** The first elapsed tick e with oldest × (part − e) < room × part: e > part − room × part ÷ oldest. */
function firstElapsed(oldest: number, room: number, part: number): number {
  return oldest === 0 ? 0 : Math.max(0, part - ceilDiv(room * part, oldest) + 1)
}
