import { afterPoll, elapsedMs, later } from '../../core/clock.ts'

/** Something that is waited for. */
export interface Waiting {
  /** True when it was answered. */
  done: boolean
  /** Monotonic ms at which it is given up. */
  dueMs: number
  /** It was not answered in time. */
  expire(): void
}

/**
 * One timer for all that is waited for, as all of it is given the same time: a list in the order of its ends. Ends are
 * seen up to a tenth of the time late.
 *
 * An end that has come is looked at again after the next poll phase, in which answers that had arrived are read. A timer
 * that comes late by more than the time itself says that this process stood still: then everything gets its time anew.
 */
export class Deadlines {
  private readonly timeoutMs: number
  private readonly stepMs: number
  private readonly paused: (pauseMs: number) => void
  private waiting: Waiting[] = []
  private first = 0
  private dueMs = 0
  private armed = false

  constructor(timeoutMs: number, paused: (pauseMs: number) => void) {
    this.timeoutMs = timeoutMs
    this.stepMs = Math.max(1, timeoutMs / 10)
    this.paused = paused
  }

  add(one: Waiting): void {
    one.dueMs = elapsedMs() + this.timeoutMs
    this.waiting.push(one)
    if (!this.armed) this.arm()
  }

  private arm(): void {
    this.armed = true
    this.dueMs = elapsedMs() + this.stepMs
    later(this.stepMs, () => this.look())
  }

  private look(): void {
    const now = elapsedMs()
    const pauseMs = now - this.dueMs
    if (pauseMs > this.timeoutMs) {
      for (let index = this.first; index < this.waiting.length; index++) {
        const one = this.waiting[index] as Waiting
        if (!one.done) one.dueMs = now + this.timeoutMs
      }
      this.paused(pauseMs)
    }
    this.forget()
    if ((this.waiting[this.first]?.dueMs ?? Infinity) <= now) afterPoll(() => this.end(now))
    else this.next()
  }

  private end(now: number): void {
    this.forget()
    while ((this.waiting[this.first]?.dueMs ?? Infinity) <= now) {
      const one = this.waiting[this.first] as Waiting
      one.done = true
      one.expire()
      this.forget()
    }
    this.next()
  }

  private next(): void {
    if (this.first < this.waiting.length) this.arm()
    else {
      this.waiting = []
      this.first = 0
      this.armed = false
    }
  }

  /** Lets go of what was answered, oldest first. */
  private forget(): void {
    while (this.waiting[this.first]?.done === true) this.first++
    if (this.first < 1_024 || this.first * 2 < this.waiting.length) return
    this.waiting = this.waiting.slice(this.first)
    this.first = 0
  }
}
