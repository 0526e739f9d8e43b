const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** A bucket in plain words: `600 requests per minute, 120 at once`. */
export function ruleWords(limit: number, windowMs: number, burst: number): string {
  return `${limit} request${limit === 1 ? '' : 's'} per ${windowWords(windowMs)}, ${burst} at once`
}

function windowWords(ms: number): string {
  for (const [unit, length] of units) {
    if (ms === length) return unit
    if (ms % length === 0) return `${ms / length} ${unit}s`
  }
  return `${ms} ms`
}
