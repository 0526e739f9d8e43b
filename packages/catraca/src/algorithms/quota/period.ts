import { daysFrom, daysInMonth, monthOf, type Zone } from './zone.ts'

export type PeriodName = 'day' | 'week' | 'month' | 'year'

/** Where the periods of a quota begin, as wall time. */
export interface Anchor {
  year: number
  month: number
  day: number
  /** Milliseconds after midnight. */
  timeMs: number
}

/** A period [startMs, endMs) as instants. */
export interface Period {
  startMs: number
  endMs: number
}

const dayMs = 86_400_000
const anchorPattern = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d))?$/

/** Reads `2027-01-31` or `2027-01-31T06:00`; undefined when it is not a date that exists. */
export function parseAnchor(text: string): Anchor | undefined {
  const match = anchorPattern.exec(text)
  if (match === null) return undefined
  const [year, month, day, hour, minute] = match.slice(1).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
  ]
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month) || hour > 23 || minute > 59) return undefined
  return { year, month, day, timeMs: (hour * 60 + minute) * 60_000 }
}

/** Midnight, Monday, the first of the month, the first of January. */
export const defaultAnchors: Readonly<Record<PeriodName, Anchor>> = {
  day: { year: 1970, month: 1, day: 1, timeMs: 0 },
  week: { year: 1970, month: 1, day: 5, timeMs: 0 },
  month: { year: 1970, month: 1, day: 1, timeMs: 0 },
  year: { year: 1970, month: 1, day: 1, timeMs: 0 },
}

/** The period that holds an instant. A day that the zone skipped has no length and holds none. */
export function periodAt(name: PeriodName, zone: Zone, anchor: Anchor, instantMs: number): Period {
  const start = (index: number): number => zone.instantOf(wallStart(name, anchor, index))
  let index = nearIndex(name, anchor, zone.wallAt(instantMs))
  while (start(index) > instantMs) index--
  while (start(index + 1) <= instantMs) index++
  return { startMs: start(index), endMs: start(index + 1) }
}

/** Wall time at which period number `index` begins; the anchor begins number 0. Short months end the period early. */
function wallStart(name: PeriodName, anchor: Anchor, index: number): number {
  const { year, month, day, timeMs } = anchor
  if (name === 'day' || name === 'week') {
    return (daysFrom(year, month, day) + index * (name === 'day' ? 1 : 7)) * dayMs + timeMs
  }
  const months = month - 1 + index * (name === 'month' ? 1 : 12)
  const [toYear, toMonth] = [year + Math.floor(months / 12), (((months % 12) + 12) % 12) + 1]
  return daysFrom(toYear, toMonth, Math.min(day, daysInMonth(toYear, toMonth))) * dayMs + timeMs
}

/** A period number that is right or one off. */
function nearIndex(name: PeriodName, anchor: Anchor, wallMs: number): number {
  const days = Math.floor(wallMs / dayMs)
  if (name === 'day' || name === 'week') {
    return Math.floor((days - daysFrom(anchor.year, anchor.month, anchor.day)) / (name === 'day' ? 1 : 7))
  }
  const { year, month } = monthOf(days)
  return name === 'month' ? (year - anchor.year) * 12 + month - anchor.month : year - anchor.year
}
