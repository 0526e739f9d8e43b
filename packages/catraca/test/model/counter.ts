import { Fraction, whole } from './fraction.ts'
import type { Law } from './judge.ts'

export interface Counts {
  /** Number of the window since the epoch; undefined for a key never seen. */
  readonly window: bigint | undefined
  readonly current: bigint
  readonly previous: bigint
}

/**
 * Two counts of clock-aligned windows: estimate = previous × (1 − elapsed ÷ W) + current, taken before counting;
 * a request passes when estimate + cost − 1 < limit, and only then is counted.
 */
export function counterLaw(limit: bigint, windowUs: bigint): Law<Counts> {
  const countsAt = ({ window, current, previous }: Counts, at: bigint): Counts => {
    const here = at / windowUs
    if (window === here) return { window, current, previous }
    return { window: here, current: 0n, previous: window === here - 1n ? current : 0n }
  }
  return {
    capacity: limit,
    denial: 'limited',
    fresh: { window: undefined, current: 0n, previous: 0n },
    standsAt: ({ window }) => (window === undefined ? undefined : window * windowUs),
    movedTo: ({ current, previous }, at) => ({ window: at / windowUs, current, previous }),
    admits: (state, at, cost) => {
      const { current, previous } = countsAt(state, at)
      const weight = new Fraction(windowUs - (at % windowUs), windowUs)
      const estimate = whole(previous).times(weight).plus(whole(current))
      return estimate.plus(whole(cost - 1n)).compare(whole(limit)) < 0n
    },
    admit: (state, at, cost) => {
      const { window, current, previous } = countsAt(state, at)
      return { window, current: current + cost, previous }
    },
    clearAt: ({ window }) => (window === undefined ? undefined : whole((window + 2n) * windowUs)),
  }
}
