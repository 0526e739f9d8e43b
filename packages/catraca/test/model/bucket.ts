import { Fraction, greater, lesser, whole } from './fraction.ts'
import type { Law } from './judge.ts'

/** What the three names of one rule are made from. */
export interface Rate {
  readonly limit: bigint
  readonly windowUs: bigint
  readonly burst: bigint
}

export interface Tokens {
  readonly tokens: Fraction
  /** Time of the last change; undefined for a key never seen, whose bucket is full. */
  readonly at: bigint | undefined
}

export function tokensAt({ limit, windowUs, burst }: Rate, { tokens, at }: Tokens, now: bigint): Fraction {
  if (at === undefined) return whole(burst)
  return lesser(whole(burst), tokens.plus(new Fraction((now - at) * limit, windowUs)))
}

/** The bucket of two fields: tokens = min(burst, tokens + elapsed × rate); a request takes its cost or nothing. */
export function bucketLaw(rate: Rate): Law<Tokens> {
  const { limit, windowUs, burst } = rate
  const full = whole(burst)
  return {
    capacity: burst,
    denial: 'limited',
    fresh: { tokens: full, at: undefined },
    standsAt: ({ at }) => at,
    movedTo: ({ tokens }, at) => ({ tokens, at }),
    admits: (state, at, cost) => tokensAt(rate, state, at).compare(whole(cost)) >= 0n,
    admit: (state, at, cost) => ({ tokens: tokensAt(rate, state, at).minus(whole(cost)).reduced(), at }),
    clearAt: ({ tokens, at }) =>
      at === undefined ? undefined : whole(at).plus(full.minus(tokens).times(new Fraction(windowUs, limit))),
  }
}

export interface Level {
  readonly level: Fraction
  readonly at: bigint | undefined
}

export function levelAt({ limit, windowUs }: Rate, { level, at }: Level, now: bigint): Fraction {
  if (at === undefined) return whole(0n)
  return greater(whole(0n), level.minus(new Fraction((now - at) * limit, windowUs)))
}

/** The meter: the level leaks evenly; a request pours its cost in unless that would overflow the burst. */
export function meterLaw(rate: Rate): Law<Level> {
  const { limit, windowUs, burst } = rate
  return {
    capacity: burst,
    denial: 'limited',
    fresh: { level: whole(0n), at: undefined },
    standsAt: ({ at }) => at,
    movedTo: ({ level }, at) => ({ level, at }),
    admits: (state, at, cost) => levelAt(rate, state, at).plus(whole(cost)).compare(whole(burst)) <= 0n,
    admit: (state, at, cost) => ({ level: levelAt(rate, state, at).plus(whole(cost)).reduced(), at }),
    clearAt: ({ level, at }) =>
      at === undefined ? undefined : whole(at).plus(level.times(new Fraction(windowUs, limit))),
  }
}

export interface Arrival {
  /** The theoretical arrival time of the next request. */
  readonly due: Fraction | undefined
  readonly at: bigint | undefined
}

/** The generic cell rate algorithm: each unit is due one interval after the one before, and may come burst − 1 early. */
export function cellRateLaw({ limit, windowUs, burst }: Rate): Law<Arrival> {
  const intervals = (units: bigint): Fraction => new Fraction(units * windowUs, limit)
  const dueAfter = ({ due }: Arrival, at: bigint, cost: bigint): Fraction =>
    (due === undefined ? whole(at) : greater(due, whole(at))).plus(intervals(cost))
  return {
    capacity: burst,
    denial: 'limited',
    fresh: { due: undefined, at: undefined },
    standsAt: ({ at }) => at,
    movedTo: ({ due, at: from }, at) => ({ due: due?.plus(whole(at - (from ?? at))), at }),
    admits: (state, at, cost) => dueAfter(state, at, cost).minus(whole(at)).compare(intervals(burst)) <= 0n,
    admit: (state, at, cost) => ({ due: dueAfter(state, at, cost).reduced(), at }),
    clearAt: ({ due }) => due,
  }
}
