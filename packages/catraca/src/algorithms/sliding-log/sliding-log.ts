import type { Duration } from '../../core/duration.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import type { Kinship, Rule } from '../../core/rule.ts'
import { Ring } from '../ring/ring.ts'

/** Options of {@link slidingLog}. */
export interface SlidingLogOptions {
  /** Units in any window: a whole number from 1 to 10^7. Each admitted request of the last window is kept. */
  limit: number
  window: Duration
}

export const parameters: Parameters = {
  limit: { kind: 'integer', unit: 'units', min: 1, max: 1e7, words: 'units in any window' },
  window: { kind: 'duration', words: 'length of the window, which ends now' },
}

/**
 * Keeps the instant of every admitted request; a request passes when those of the last window, (t − W, t], leave room.
 * Bound: never more than the limit in any half-open window, exactly. Memory: 24 bytes per admitted request in the window.
 */
export function slidingLog(options: SlidingLogOptions): Rule {
  const checked = checkOptions(parameters, options, 'slidingLog')
  return new SlidingLog(checked['limit'] as number, checked['window'] as number)
}

class SlidingLog extends Ring {
  readonly algorithm = 'sliding-log'
  readonly denial = 'limited' as const
  readonly holds = false
  readonly lease = 'kept'
  readonly options: Readonly<Record<string, string | number>>

  constructor(limit: number, windowUs: number) {
    super('l', limit, windowUs)
    this.options = { limit, windowMs: windowUs / 1_000 }
  }

  override kinship(from: Rule): Kinship {
    return from instanceof SlidingLog && from.life === this.life ? 'same' : 'none'
  }
}
