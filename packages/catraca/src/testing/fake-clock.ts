import { type Duration, durationUs } from '../core/duration.ts'
import { CatracaError, show } from '../core/errors.ts'

/** Made by {@link fakeClock}. */
export interface FakeClock {
  /** Milliseconds since the epoch; may be set, also back. */
  now: number
  /** Moves on by a time such as `'30s'`, or by milliseconds. Says what time it is then. */
  advance(by: Duration): number
}

/**
 * A time that stands still until it is moved, for limits whose states are in memory. It is itself the options of a question:
 * `limiter.take('a', clock)`, `limiter.take('a', { ...clock, cost: 3 })`, `guard.ask({ ...request, ...clock })`. Nothing of
 * the machine's clock is touched.
 *
 * @param now Milliseconds since the epoch at which it begins. Default: the first instant of 2026.
 */
export function fakeClock(now: number = Date.UTC(2026, 0)): FakeClock {
  if (!Number.isFinite(now) || now < 0) {
    const message = `now is ${show(now)}; allowed: milliseconds since the epoch`
    throw new CatracaError('CATRACA_NOW_INVALID', message, { path: 'now', value: now })
  }
  const clock = { now }
  const advance = (by: Duration): number => {
    clock.now += durationUs(by, 'by') / 1_000
    return clock.now
  }
  // Not copied with the time: options of a question have no such name.
  return Object.defineProperty(clock, 'advance', { value: advance, enumerable: false }) as FakeClock
}
