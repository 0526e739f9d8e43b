/** Wall time of a zone as milliseconds since 1970-01-01T00:00 of that wall clock; instants are ms since the epoch. */
export interface Zone {
  wallAt(instantMs: number): number
  /** The first instant at which the wall clock shows `wallMs` or later: the end of the gap when that time was skipped. */
  instantOf(wallMs: number): number
}

const dayMs = 86_400_000
const fields = {
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
} as const

/** The zone of an IANA name, or undefined when this runtime does not know it. */
export function zoneOf(name: string): Zone | undefined {
  if (name === 'UTC') return { wallAt: (instant) => instant, instantOf: (wall) => wall }
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', {
      ...fields,
      era: 'short',
      calendar: 'gregory',
      hourCycle: 'h23',
      timeZone: name,
    })
  } catch {
    return undefined
  }
  const wallAt = (instantMs: number): number => {
    const seconds = Math.floor(instantMs / 1_000) * 1_000
    const part: Record<string, number> = {}
    for (const { type, value } of format.formatToParts(seconds)) part[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
    return daysFrom(year, month, day) * dayMs + ((hour * 60 + minute) * 60 + second) * 1_000 + (instantMs - seconds)
  }
  return { wallAt, instantOf: (wall) => firstInstant(wallAt, wall) }
}

/**
 * Offsets lie within a day of UTC, and no zone moves its offset twice within two days of a boundary, so one offset
 * before and one after are the only candidates. The earlier instant wins when a wall time happens twice.
 */
function firstInstant(wallAt: (instantMs: number) => number, wallMs: number): number {
  const before = wallMs - dayMs * 1.5
  const after = wallMs + dayMs * 1.5
  const candidates = [before, after].map((probe) => wallMs - (wallAt(probe) - probe)).toSorted((a, b) => a - b)
  for (const instant of candidates) if (wallAt(instant) === wallMs) return instant
  // The wall time was skipped: find the instant at which the clock jumped over it.
  let [low, high] = [before, after]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (wallAt(middle) < wallMs) low = middle
    else high = middle
  }
  return high
}

/** Days from 1970-01-01 to a date of the Gregorian calendar; month 1 to 12. Years run from March so that the leap day is last. */
export function daysFrom(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

/** Year and month (1 to 12) of a number of days since 1970-01-01. */
export function monthOf(days: number): { year: number; month: number } {
  let year = 1970 + Math.floor(days / 365.2425)
  while (daysFrom(year, 1, 1) > days) year--
  while (daysFrom(year + 1, 1, 1) <= days) year++
  let month = 12
  while (daysFrom(year, month, 1) > days) month--
  return { year, month }
}

export function daysInMonth(year: number, month: number): number {
  return month === 12 ? 31 : daysFrom(year, month + 1, 1) - daysFrom(year, month, 1)
}
