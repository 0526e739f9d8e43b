import { whole } from './fraction.ts'
import type { Law } from './judge.ts'

export interface Entry {
  readonly at: bigint
  readonly units: bigint
}

export type Entries = readonly Entry[]

/** Every admitted request counts while its age is below `lifeUs`; passes when their sum + cost ≤ limit. */
export function logLaw(limit: bigint, lifeUs: bigint, denial: 'limited' | 'concurrency'): Law<Entries> {
  const newest = (entries: Entries): bigint | undefined => entries.at(-1)?.at
  const live = (entries: Entries, at: bigint): Entries => entries.filter((entry) => at - entry.at < lifeUs)
  return {
    capacity: limit,
    denial,
    fresh: [],
    standsAt: newest,
    movedTo: (entries, at) => {
      const shift = at - (newest(entries) ?? at)
      return entries.map((entry) => ({ ...entry, at: entry.at + shift }))
    },
    admits: (entries, at, cost) => live(entries, at).reduce((sum, { units }) => sum + units, cost) <= limit,
    admit: (entries, at, cost) => [...live(entries, at), { at, units: cost }],
    clearAt: (entries) => {
      const last = newest(entries)
      return last === undefined ? undefined : whole(last + lifeUs)
    },
  }
}

/** Permits are held until they are as old as `ttlUs` or released. */
export function concurrencyLaw(limit: bigint, ttlUs: bigint): Law<Entries> {
  return logLaw(limit, ttlUs, 'concurrency')
}

/** The permits left after the holder of `permit` came back; none is taken twice, and an expired one not at all. */
export function released(entries: Entries, permit: Entry): Entries {
  return entries.filter((entry) => entry !== permit)
}
