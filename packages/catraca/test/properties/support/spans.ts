import type { Specimen } from './subjects.ts'

/** Units that were admitted at an instant, or that start at it. */
export interface Passed {
  readonly at: number
  readonly units: number | bigint
}

/** The most units in any half-open span of `us` that starts at an instant of the list. */
export function mostWithin(passed: readonly Passed[], us: bigint): bigint {
  const sorted = passed.toSorted((a, b) => a.at - b.at)
  let most = 0n
  let inside = 0n
  let end = 0
  sorted.forEach(({ at, units }, index) => {
    for (; end < sorted.length && BigInt((sorted[end] as Passed).at - at) < us; end++) {
      inside += BigInt((sorted[end] as Passed).units)
    }
    if (sorted[index - 1]?.at !== at && inside > most) most = inside
    inside -= BigInt(units)
  })
  return most
}

/**
 * As {@link mostWithin} for requests that start when the last of their units leaves a queue: of the first request of a
 * span the other units left before it.
 */
export function mostStarting(starts: readonly Passed[], us: bigint): bigint {
  let most = 0n
  starts.forEach(({ at }, first) => {
    const rest = starts.slice(first + 1).filter((start) => start.at >= at && BigInt(start.at - at) < us)
    const units = rest.reduce((sum, start) => sum + BigInt(start.units), 1n)
    if (units > most) most = units
  })
  return most
}

/** Lengths of time over which a rule's bound is looked at, in whole ticks. */
export function spansOf({ spanUs, edgeAfter, from, rule }: Specimen): bigint[] {
  const interval = edgeAfter(edgeAfter(from)) - edgeAfter(from)
  const lengths = [1, interval, spanUs / 3, spanUs / 2, spanUs - 1, spanUs, spanUs + 1, 2 * spanUs, 3.7 * spanUs]
  return lengths.map((us) => BigInt(Math.ceil(us / rule.tickUs) * rule.tickUs))
}

/** The instant as a rule with long ticks sees it. */
export function seenAt({ rule }: Specimen, us: number): number {
  return us - (us % rule.tickUs)
}

/** When the units of an admitted request go on: at once, or one by one up to the delay of the last, to the µs. */
export function unitsOf({ gapUs }: Specimen, at: number, units: number, delayUs: number): Passed[] {
  if (gapUs === undefined) return [{ at, units }]
  return Array.from({ length: units }, (_, before) => ({ at: at + delayUs - Math.floor(before * gapUs), units: 1 }))
}
