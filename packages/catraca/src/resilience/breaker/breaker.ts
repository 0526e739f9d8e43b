/** What becomes of a call: it goes, it goes as the one that finds out, or it is not made. */
export type Go = 'go' | 'trial' | 'refuse'

/** Options of {@link Breaker}. */
export interface BreakerOptions {
  /** Failures in a row that open it: a whole number from 1. Default 5. */
  readonly failures?: number
  /** How long it stays open, in whole µs. Default 30 s. */
  readonly openUs?: number
}

/** `closed`: calls go. `open`: none do. `trial`: one is under way that decides. */
export type BreakerState = 'closed' | 'open' | 'trial'

/**
 * Stops calls to something that fails, and lets one at a time find out whether it works again.
 *
 * Closed, it counts failures in a row; a success in between begins the row anew. The last of `failures` opens it. `openUs`
 * later exactly one call goes as a trial and all others are still refused: a good trial closes it with nothing counted, a
 * bad one opens it for `openUs` again, counted from that failure. Who was told `trial` must report how it ended.
 *
 * Results of calls that began before it opened say nothing new and change nothing while it is open.
 * Time and memory: constant.
 */
export class Breaker {
  private readonly failures: number
  private readonly openUs: number
  private row = 0
  private openedUs = 0
  private current: BreakerState = 'closed'

  constructor({ failures = 5, openUs = 30_000_000 }: BreakerOptions = {}) {
    this.failures = failures
    this.openUs = openUs
  }

  get state(): BreakerState {
    return this.current
  }

  /** Failures in a row so far; 0 after a success. */
  get failuresInRow(): number {
    return this.row
  }

  /** The time, in µs, from which a trial may go; undefined while closed. */
  get reopensAtUs(): number | undefined {
    return this.current === 'closed' ? undefined : this.openedUs + this.openUs
  }

  /** A call wants to go. */
  ask(nowUs: number): Go {
    if (this.current === 'closed') return 'go'
    if (this.current === 'trial') return 'refuse'
    // A clock that was set back must not keep it open for longer than `openUs`.
    if (nowUs < this.openedUs) this.openedUs = nowUs
    if (nowUs - this.openedUs < this.openUs) return 'refuse'
    this.current = 'trial'
    return 'trial'
  }

  /** A call was answered. */
  succeed(): void {
    if (this.current === 'open') return
    this.current = 'closed'
    this.row = 0
  }

  /** A call failed. */
  fail(nowUs: number): void {
    if (this.current === 'open') return
    this.row++
    if (this.current === 'trial' || this.row >= this.failures) this.trip(nowUs)
  }

  /** Opens at once: a single answer told that calls are of no use. */
  trip(nowUs: number): void {
    this.current = 'open'
    this.openedUs = nowUs
  }
}
