import { afterPoll, elapsedMs, later } from '../core/clock.ts'

/** Something that is waited for. */
export interface Waiting {
  /** True when it was answered or given up. */
  done: boolean
  /** Monotonic ms at which it is given up. */
  dueMs: number
  /** What was sent next. */
  next: Waiting | undefined
  /** It was not answered in time. */
  expire(): void
}

/**
 * One timer for all that is waited for, as all of it is given the same time: a list in the order of its ends, which lets
 * go of what is answered. Ends are seen up to two tenths of the time late.
 *
 * An end that has come is looked at again after the next poll phase, in which answers that had arrived are read. A timer
 * that comes late by more than the time itself says that this process stood still: then everything gets its time anew.
 */
export class Deadlines {
  private readonly timeoutMs: number
  private readonly stepMs: number
  private readonly paused: (pauseMs: number) => void
  private first: Waiting | undefined
  private last: Waiting | undefined
  /** When the timer should come. */
  private lookMs = 0
  private armed = false

  constructor(timeoutMs: number, paused: (pauseMs: number) => void) {
    this.timeoutMs = timeoutMs
    this.stepMs = Math.max(1, timeoutMs / 10)
    this.paused = paused
  }

  add(one: Waiting): void {
    if (!this.armed) this.arm()
    // From the next look on, so that the clock is not read for each call.
    one.dueMs = this.lookMs + this.timeoutMs
    if (this.last === undefined) this.first = one
    else this.last.next = one
    this.last = one
  }

  /** Lets go of what was answered, oldest first. Called at each answer, so that nothing is kept longer than it waits. */
  forget(): void {
    while (this.first?.done === true) {
      const { next } = this.first
      // What is gone must not point at what is not: once old, it would keep all that came after it.
      this.first.next = undefined
      this.first = next
    }
    if (this.first === undefined) this.last = undefined
  }

  private arm(): void {
    this.armed = true
    this.lookMs = elapsedMs() + this.stepMs
    later(this.stepMs, () => this.look())
  }

  private look(): void {
    const now = elapsedMs()
    const pauseMs = now - this.lookMs
    if (pauseMs > this.timeoutMs) {
      for (let one = this.first; one !== undefined; one = one.next) one.dueMs = now + this.timeoutMs
      this.paused(pauseMs)
    }
    this.forget()
    if ((this.first?.dueMs ?? Infinity) <= now) afterPoll(() => this.end(now))
    else this.rearm()
  }

  private end(now: number): void {
    this.forget()
    while (this.first !== undefined && this.first.dueMs <= now) {
      const one = this.first
      one.done = true
      this.forget()
      one.expire()
    }
    this.rearm()
  }

  private rearm(): void {
    if (this.first === undefined) this.armed = false
    else this.arm()
  }
}
