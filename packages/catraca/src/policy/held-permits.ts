import { later, nowUs } from '../core/clock.ts'
import type { Decision } from '../core/decision.ts'

/** The longest time a timer can wait. */
const maxTimerMs = 2 ** 31 - 1
/** Looks per life of a permit: it is renewed at the first one after a third of its life. */
const looksPerLife = 12

/**
 * Permits of a shared store that are held. Each is renewed when a third of its `permitTtl` is over, again and again until
 * it is given back: an answer may take longer, and an instance that died renews nothing. One timer for all, which does not
 * keep the process alive; none while nothing is held.
 */
export class HeldPermits {
  private readonly renew: (decision: Decision) => void
  /** The time of the last renewal, µs. */
  private readonly renewedUs = new Map<Decision, number>()
  private cancel: (() => void) | undefined
  private periodMs = Infinity
  private stopped = false

  constructor(renew: (decision: Decision) => void) {
    this.renew = renew
  }

  add(decision: Decision): void {
    this.renewedUs.set(decision, nowUs())
    this.arm(lifeMs(decision) / looksPerLife)
  }

  /** False for one that is not held, or was given back before. */
  remove(decision: Decision): boolean {
    const held = this.renewedUs.delete(decision)
    if (this.renewedUs.size === 0) this.disarm()
    return held
  }

  /** Ends the renewals. */
  stop(): void {
    this.stopped = true
    this.disarm()
  }

  private look(): void {
    this.disarm()
    const now = nowUs()
    let shortestMs = Infinity
    for (const [decision, renewedUs] of this.renewedUs) {
      const life = lifeMs(decision)
      shortestMs = Math.min(shortestMs, life)
      const ageUs = now - renewedUs
      // A clock that was moved back says nothing of the age.
      if (ageUs >= 0 && ageUs * 3 < life * 1_000) continue
      this.renewedUs.set(decision, now)
      this.renew(decision)
    }
    this.arm(shortestMs / looksPerLife)
  }

  private arm(ms: number): void {
    if (ms >= this.periodMs || this.stopped) return
    this.cancel?.()
    this.periodMs = ms
    this.cancel = later(Math.min(Math.max(ms, 1), maxTimerMs), () => this.look())
  }

  private disarm(): void {
    this.cancel?.()
    this.cancel = undefined
    this.periodMs = Infinity
  }
}

function lifeMs({ source }: Decision): number {
  return Number(source.rule.options['permitTtlMs'])
}
