import { Fraction, whole } from './fraction.ts'
import type { Law } from './judge.ts'

export interface Queue {
  /** When each unit in the queue leaves, in order. */
  readonly departures: readonly Fraction[]
  /** The last arrival that found places; undefined for a key never seen. */
  readonly at: bigint | undefined
}

/**
 * A queue of `capacity` places that one unit leaves every window ÷ limit: the first one interval after it arrives at an
 * empty queue. A place is free at the departure, and departures come before arrivals.
 */
export function queueLaw(limit: bigint, windowUs: bigint, capacity: bigint): Law<Queue> {
  const interval = new Fraction(windowUs, limit)
  const waiting = ({ departures }: Queue, at: bigint): readonly Fraction[] =>
    departures.filter((departure) => departure.compare(whole(at)) > 0n)
  return {
    capacity,
    denial: 'limited',
    fresh: { departures: [], at: undefined },
    standsAt: ({ at }) => at,
    movedTo: ({ departures, at: from }, at) => {
      const shift = whole(at - (from ?? at))
      return { departures: departures.map((departure) => departure.plus(shift)), at }
    },
    admits: (queue, at, cost) => BigInt(waiting(queue, at).length) + cost <= capacity,
    admit: (queue, at, cost) => {
      const departures = [...waiting(queue, at)]
      for (let unit = 0n; unit < cost; unit++) departures.push((departures.at(-1) ?? whole(at)).plus(interval))
      return { departures, at }
    },
    clearAt: ({ departures }) => departures.at(-1),
    startsAt: ({ departures }) => departures.at(-1) ?? whole(0n),
  }
}
