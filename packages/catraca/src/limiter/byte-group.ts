import { tokenBucket } from '../algorithms/token-bucket/token-bucket.ts'
import { later, nowUs } from '../core/clock.ts'
import { CatracaError, show } from '../core/errors.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { Rule } from '../core/rule.ts'

/** Options of a rate of bytes. */
export interface ByteGroupOptions {
  /**
   * Bytes per second that pass at most while a burst does: a whole number from 1 to 10^12. Without it a burst passes as
   * fast as its reader takes it.
   */
  peakBytesPerSecond?: number
}

/** Streams wait at least about so long for bytes to come together, so that timers do not cost more than the bytes. */
const sliceUs = 50_000
/** What a timer can sleep. */
const longestMs = 2 ** 31 - 1
const family = ['token-bucket', 'gcra', 'leaky-meter']

/** A bucket with its state. */
class Gate {
  readonly rule: Rule
  /** Bytes that come back in a slice of time, rounded up: at most the bucket. */
  readonly slice: number
  /** Bytes that were charged and have not passed. */
  spare = 0
  private state: Float64Array

  constructor(rule: Rule, full: boolean) {
    const { limit = 0, windowMs = 0 } = rule.options as { limit?: number; windowMs?: number }
    this.rule = rule
    this.slice = Math.min(rule.limit, Math.ceil((limit * sliceUs) / 1_000 / windowMs))
    this.state = new Float64Array(rule.width)
    if (!full) this.charge(nowUs(), rule.limit)
  }

  room(us: number): number {
    return this.spare + this.rule.remaining(this.state, 0, this.tick(us))
  }

  /** Bytes that there will be a slice of time later. */
  reach(us: number): number {
    return Math.min(this.rule.limit, this.room(us) + this.slice)
  }

  /** µs until so many bytes pass. */
  waitUs(us: number, bytes: number): number {
    if (bytes <= this.spare) return 0
    const now = this.tick(us)
    return (now + this.rule.wait(this.state, 0, now, bytes - this.spare)) * this.rule.tickUs - us
  }

  take(us: number, bytes: number): void {
    const old = Math.min(this.spare, bytes)
    this.spare -= old
    this.charge(us, bytes - old)
  }

  /** Charges bytes that are to pass a little later, so that the bucket refills meanwhile as if they were passing. */
  reserve(us: number, bytes: number): void {
    if (bytes <= this.spare) return
    this.charge(us, bytes - this.spare)
    this.spare = bytes
  }

  private charge(us: number, bytes: number): void {
    this.state = this.rule.charge(this.state, 0, this.tick(us), bytes, 0)
  }

  private tick(us: number): number {
    return Math.floor(us / this.rule.tickUs)
  }
}

/** A stream that waits for its turn. */
interface Turn {
  readonly pass: (bytes: number) => void
}

/**
 * Bytes per time for several streams together, made by {@link byteGroup}. Whoever waits gets an equal share each time
 * bytes have come back, about every 50 ms, whatever the sizes of its chunks, so nobody starves. One timer.
 */
export class ByteGroup {
  private readonly gates: readonly Gate[]
  private readonly turns: Turn[] = []
  /** Bytes that are waited for; 0 for none. */
  private goal = 0
  private stop: (() => void) | undefined
  private waits = false

  /** @internal Use {@link byteGroup}. */
  constructor(rule: Rule, options: ByteGroupOptions = {}) {
    if (!family.includes(rule?.algorithm)) {
      const allowed = 'a rule with a bucket: tokenBucket, gcra or leakyMeter'
      const found = rule?.algorithm === undefined ? show(rule) : rule.algorithm
      throw invalid('shape.rule', rule, `shape.rule is ${found}; allowed: ${allowed}`)
    }
    rejectUnknown(['peakBytesPerSecond'], options, 'shape')
    const { peakBytesPerSecond: peak } = options
    this.gates = [new Gate(rule, true), ...(peak === undefined ? [] : [peakGate(peak)])]
  }

  /**
   * Asks for bytes of this group; says how many may pass, at least 1, when they may. At most what comes back in about
   * 50 ms. Rejects with the reason of the signal when it is aborted before.
   *
   * @internal
   */
  ask(signal: Aborts): number | Promise<number> {
    if (this.turns.length === 0) {
      const now = nowUs()
      const slice = this.slice(now)
      if (this.room(now) >= slice) return this.grant(now, slice)
    }
    return new Promise((resolve, reject) => {
      const turn: Turn = {
        pass: (bytes) => {
          signal.removeEventListener('abort', abort)
          resolve(bytes)
        },
      }
      const abort = (): void => {
        this.turns.splice(this.turns.indexOf(turn), 1)
        if (this.turns.length === 0) {
          this.rest()
          this.goal = 0
        }
        reject(signal.reason)
      }
      signal.addEventListener('abort', abort, { once: true })
      this.turns.push(turn)
      if (!this.waits) this.pass()
    })
  }

  /** Takes back what was given to a stream and did not pass. @internal */
  giveBack(bytes: number): void {
    for (const gate of this.gates) gate.spare += bytes
  }

  /**
   * Gives those who wait equal shares of a slice once all of it is there, a byte to each of the first where there are more
   * streams than bytes; then waits for the next slice. Slices are not given in parts: who comes back first would get more.
   */
  private pass(): void {
    this.rest()
    const now = nowUs()
    while (this.turns.length > 0) {
      if (this.goal === 0) this.goal = this.slice(now)
      if (this.room(now) < this.goal) {
        this.sleep(now)
        return
      }
      const share = Math.max(1, Math.floor(this.goal / this.turns.length))
      for (const turn of this.turns.splice(0, this.goal)) turn.pass(this.grant(now, share))
      this.goal = 0
    }
  }

  private sleep(now: number): void {
    const { goal } = this
    const us = Math.max(...this.gates.map((gate) => gate.waitUs(now, goal)))
    const [bucket] = this.gates
    // The peak alone holds them back: they are on their way.
    if (bucket?.waitUs(now, goal) === 0) bucket.reserve(now, goal)
    this.waits = true
    this.stop = later(Math.min(longestMs, Math.max(1, Math.ceil(us / 1_000))), () => this.pass(), true)
  }

  private rest(): void {
    this.stop?.()
    this.stop = undefined
    this.waits = false
  }

  /** Bytes that are given at a time: what comes back in a slice of time, by the peak as long as the burst lasts. */
  private slice(now: number): number {
    return Math.min(Math.max(...this.gates.map(({ slice }) => slice)), ...this.gates.map((gate) => gate.reach(now)))
  }

  private room(now: number): number {
    return Math.min(...this.gates.map((gate) => gate.room(now)))
  }

  private grant(now: number, bytes: number): number {
    for (const gate of this.gates) gate.take(now, bytes)
    return bytes
  }
}

/** What is used of an `AbortSignal`. */
export interface Aborts {
  readonly aborted: boolean
  readonly reason?: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/**
 * A rate of bytes that several streams share, fairly: each call of `shape` with it is one of them.
 *
 * @param rule A bucket of bytes, such as `tokenBucket({ limit: 2_000_000, window: '1s', burst: 16_000_000 })`: at most
 * `burst` and then `limit` per `window` pass. A bucket smaller than what comes back in 50 ms wastes some of the rate, as
 * timers count in milliseconds.
 * @example
 * const downloads = byteGroup(tokenBucket({ limit: 1_000_000, window: '1s' }))
 * await pipeline(file, (bytes, options?: ShapeOptions) => shape(bytes, downloads, options), response)
 */
export function byteGroup(rule: Rule, options?: ByteGroupOptions): ByteGroup {
  return new ByteGroup(rule, options)
}

/** Begins empty, so that no more than the peak × t passes in the first t either. */
function peakGate(peak: unknown): Gate {
  if (!Number.isSafeInteger(peak) || (peak as number) < 1 || (peak as number) > 1e12) {
    const path = 'shape.peakBytesPerSecond'
    throw invalid(path, peak, `${path} is ${show(peak)}; allowed: a whole number of bytes from 1 to 1000000000000`)
  }
  const limit = peak as number
  // Two slices: a timer that is late costs no rate.
  return new Gate(tokenBucket({ limit, window: '1s', burst: Math.max(1, Math.ceil(limit / 10)) }), false)
}

function invalid(path: string, value: unknown, message: string): CatracaError {
  return new CatracaError('CATRACA_OPTION_INVALID', message, { path, value })
}
