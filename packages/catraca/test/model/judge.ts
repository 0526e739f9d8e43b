import type { Fraction } from './fraction.ts'

/** A rule as it is worded, over a history in its simplest form. Instants are whole µs since the epoch. */
export interface Law<State> {
  /** The most that can pass at one instant. */
  readonly capacity: bigint
  /** What a refusal is called. */
  readonly denial: string
  /** The history of a key never seen. */
  readonly fresh: State
  /** The instant a history speaks of; undefined when it has nothing to say. */
  standsAt(state: State): bigint | undefined
  /** The same history, told of `at` instead of the instant it speaks of. */
  movedTo(state: State, at: bigint): State
  /** Whether `cost` (0 included) passes at an instant not before the one the history speaks of. */
  admits(state: State, at: bigint, cost: bigint): boolean
  /** The history after `cost` passed at `at`. */
  admit(state: State, at: bigint, cost: bigint): State
  /** The instant from which nothing of the history counts any more. */
  clearAt(state: State): Fraction | undefined
  /** When the request admitted last may start, where that is later than its admission. */
  startsAt?(state: State): Fraction
}

/** What the judge says to one request, in µs. */
export interface Answer {
  readonly reason: string
  readonly remaining: number
  readonly retryUs: number
  readonly resetUs: number
  readonly delayUs: number
  /** How far a broken clock was behind the history; 0 when it was not. */
  readonly steppedUs: number
}

const graceUs = 60_000_000n
const tooLongUs = 2n ** 70n

/** Judges the requests of one key by a law, exactly and slowly. */
export class Judge<State = unknown> {
  readonly law: Law<State>
  readonly tickUs: bigint
  state: State

  constructor(law: Law<State>, tickUs = 1) {
    this.law = law
    this.tickUs = BigInt(tickUs)
    this.state = law.fresh
  }

  take(nowUs: number, cost: number): Answer {
    return this.ask(BigInt(nowUs), BigInt(cost), true)
  }

  peek(nowUs: number, cost: number): Answer {
    return this.ask(BigInt(nowUs), BigInt(cost), false)
  }

  /** Takes notice of the time without a request: what is too far ahead of the clock moves back to it. */
  notice(nowUs: number): void {
    this.state = this.moved(this.floor(BigInt(nowUs)))
  }

  private ask(nowUs: bigint, cost: bigint, charge: boolean): Answer {
    const { law } = this
    const now = this.floor(nowUs)
    const before = this.moved(now)
    const aheadUs = before === this.state ? 0n : (law.standsAt(this.state) ?? now) - now
    const passes = law.admits(before, this.seen(before, now), cost)
    const after = passes ? law.admit(before, this.seen(before, now), cost) : before
    if (charge) this.state = after
    const left = charge ? after : before
    return {
      reason: passes ? 'ok' : cost > law.capacity ? 'impossible' : law.denial,
      remaining: Number(this.greatest(left, this.seen(left, now))),
      retryUs: passes ? 0 : this.earliest(before, nowUs, cost),
      resetUs: this.until(law.clearAt(left), nowUs),
      delayUs: passes && law.startsAt !== undefined ? this.until(law.startsAt(after), nowUs) : 0,
      steppedUs: Number(aheadUs),
    }
  }

  private moved(now: bigint): State {
    const aheadUs = (this.law.standsAt(this.state) ?? now) - now
    return aheadUs > graceUs ? this.law.movedTo(this.state, now) : this.state
  }

  /** Stored time wins over a clock that is behind it. */
  private seen(state: State, at: bigint): bigint {
    const stands = this.law.standsAt(state) ?? at
    return stands > at ? stands : at
  }

  /** The greatest cost that passes. What passes at some cost passes at every lower one. */
  private greatest(state: State, at: bigint): bigint {
    let passing = 0n
    let refused = this.law.capacity + 1n
    while (refused - passing > 1n) {
      const middle = (passing + refused) / 2n
      if (this.law.admits(state, at, middle)) passing = middle
      else refused = middle
    }
    return passing
  }

  /** The shortest wait after which `cost` passes. While nobody asks, what passes at an instant passes at every later one. */
  private earliest(state: State, nowUs: bigint, cost: bigint): number {
    if (cost > this.law.capacity) return Number.POSITIVE_INFINITY
    const passesAfter = (us: bigint): boolean => this.law.admits(state, this.seen(state, this.floor(nowUs + us)), cost)
    let refused = 0n
    let passing = 1n
    while (!passesAfter(passing)) {
      if (passing > tooLongUs) throw new Error(`a cost of ${cost} within the capacity never passes`)
      refused = passing
      passing *= 4n
    }
    while (passing - refused > 1n) {
      const middle = (passing + refused) / 2n
      if (passesAfter(middle)) passing = middle
      else refused = middle
    }
    return Number(passing)
  }

  /** µs until the first tick not before `instant`. */
  private until(instant: Fraction | undefined, nowUs: bigint): number {
    if (instant === undefined) return 0
    const tick = -this.floor(-instant.ceil())
    return tick <= nowUs ? 0 : Number(tick - nowUs)
  }

  private floor(us: bigint): bigint {
    const over = us % this.tickUs
    return us - (over < 0n ? over + this.tickUs : over)
  }
}
