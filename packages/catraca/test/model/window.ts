import { whole } from './fraction.ts'
import type { Law } from './judge.ts'

/** A period as instants: start included, end not. */
export interface Period {
  readonly start: bigint
  readonly end: bigint
}

/** The period that holds an instant. */
export type Calendar = (at: bigint) => Period

export interface Counted {
  readonly period: Period | undefined
  readonly count: bigint
}

/** Windows that do not overlap, the same for all keys: passes when count + cost ≤ limit. */
export function periodLaw(limit: bigint, calendar: Calendar, denial: 'limited' | 'quota'): Law<Counted> {
  const countAt = ({ period, count }: Counted, at: bigint): bigint =>
    period === undefined || at >= period.end ? 0n : count
  return {
    capacity: limit,
    denial,
    fresh: { period: undefined, count: 0n },
    standsAt: ({ period }) => period?.start,
    movedTo: ({ count }, at) => ({ period: calendar(at), count }),
    admits: (state, at, cost) => countAt(state, at) + cost <= limit,
    admit: (state, at, cost) => ({ period: calendar(at), count: countAt(state, at) + cost }),
    clearAt: ({ period }) => (period === undefined ? undefined : whole(period.end)),
  }
}

/** Windows [kW, (k+1)W) since the epoch, each `offsetUs` later. */
export function clockWindows(windowUs: bigint, offsetUs = 0n): Calendar {
  return (at) => {
    const start = ((at - offsetUs) / windowUs) * windowUs + offsetUs
    return { start, end: start + windowUs }
  }
}

/** A window starts with the first request of a key that is in none. */
export function firstWindowLaw(limit: bigint, windowUs: bigint): Law<Counted> {
  const open = (state: Counted, at: bigint): Counted =>
    state.period === undefined || at >= state.period.end
      ? { period: { start: at, end: at + windowUs }, count: 0n }
      : state
  return {
    capacity: limit,
    denial: 'limited',
    fresh: { period: undefined, count: 0n },
    standsAt: ({ period }) => period?.start,
    movedTo: ({ count }, at) => ({ period: { start: at, end: at + windowUs }, count }),
    admits: (state, at, cost) => open(state, at).count + cost <= limit,
    admit: (state, at, cost) => {
      const { period, count } = open(state, at)
      return { period, count: count + cost }
    },
    clearAt: ({ period }) => (period === undefined ? undefined : whole(period.end)),
  }
}
