/** Units that start at a time. */
export interface Started {
  readonly atUs: number
  readonly units: number
}

/** Most units that start in any half-open span of a length: each span is moved until it begins at a start. */
export function mostWithin(started: readonly Started[], windowUs: number): number {
  const sorted = started.toSorted((a, b) => a.atUs - b.atUs)
  let most = 0
  let units = 0
  let first = 0
  for (const { atUs, units: more } of sorted) {
    units += more
    for (let oldest = sorted[first]; oldest !== undefined && oldest.atUs <= atUs - windowUs; oldest = sorted[first]) {
      units -= oldest.units
      first++
    }
    most = Math.max(most, units)
  }
  return most
}
