import { Fraction, whole } from './fraction.ts'
import type { Law } from './judge.ts'

/** Counts by the number of their part since the epoch. */
export interface PartCounts {
  /** The part of the newest admission; undefined for a key never seen. */
  readonly newest: bigint | undefined
  readonly counts: ReadonlyMap<bigint, bigint>
}

/**
 * A window counted in clock-aligned parts: estimate = the counts of the parts that lie in (t − W, t] as a whole, the
 * current one among them, + that of the part before × the share of it that is still inside, taken before counting; a
 * request passes when estimate + cost − 1 < limit, and only then is counted.
 */
export function subCounterLaw(limit: bigint, windowUs: bigint, parts: bigint): Law<PartCounts> {
  const partUs = windowUs / parts
  return {
    capacity: limit,
    denial: 'limited',
    fresh: { newest: undefined, counts: new Map() },
    standsAt: ({ newest }) => (newest === undefined ? undefined : newest * partUs),
    movedTo: ({ newest = 0n, counts }, at) => {
      const here = at / partUs
      return { newest: here, counts: new Map([...counts].map(([part, count]) => [part - newest + here, count])) }
    },
    admits: ({ counts }, at, cost) => {
      const here = at / partUs
      let estimate = whole(0n)
      for (const [part, count] of counts) {
        if (part > here - parts) estimate = estimate.plus(whole(count))
        else if (part === here - parts) {
          const left = new Fraction(partUs - (at % partUs), partUs)
          estimate = estimate.plus(whole(count).times(left))
        }
      }
      return estimate.plus(whole(cost - 1n)).compare(whole(limit)) < 0n
    },
    admit: ({ counts }, at, cost) => {
      const here = at / partUs
      const kept = [...counts].filter(([part]) => part >= here - parts)
      return { newest: here, counts: new Map([...kept, [here, (counts.get(here) ?? 0n) + cost]]) }
    },
    clearAt: ({ newest }) => (newest === undefined ? undefined : whole((newest + parts + 1n) * partUs)),
  }
}
