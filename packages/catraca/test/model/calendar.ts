import type { Calendar, Period } from './window.ts'

/** The options of a quota and the calendar they mean, worked out from the civil calendar and a zone's published offsets. */
export interface NamedCalendar {
  readonly period: 'day' | 'week' | 'month' | 'year'
  readonly timeZone?: string
  readonly anchor?: string
  readonly calendar: Calendar
  readonly longestUs: number
  readonly shortestUs: number
  /** Instants in µs between which histories start. */
  readonly from: number
  readonly to: number
}

/** Milliseconds that wall clocks are ahead of UTC at an instant in ms. */
type Offset = (ms: number) => number

const hourMs = 3_600_000
const dayMs = 24 * hourMs

const utc = (text: string): number => Date.parse(`${text}Z`)

/** Offsets in hours from given instants on. */
function table(first: number, ...changes: readonly (readonly [string, number])[]): Offset {
  return (ms) => changes.reduce((hours, [from, next]) => (ms >= utc(from) ? next : hours), first) * hourMs
}

/** Summer time from the second Sunday of March to the first of November, at two o'clock. In force since 2007. */
const newYork: Offset = (ms) => {
  const year = new Date(ms).getUTCFullYear()
  const sunday = (month: number, which: number): number =>
    1 + ((7 - new Date(Date.UTC(year, month, 1)).getUTCDay()) % 7) + 7 * (which - 1)
  const begins = Date.UTC(year, 2, sunday(2, 2), 7)
  const ends = Date.UTC(year, 10, sunday(10, 1), 6)
  return (ms >= begins && ms < ends ? -4 : -5) * hourMs
}

/** The clock goes from 24:00 to 1:00 in spring and from 24:00 to 23:00 in autumn: midnight is missing, or an hour later. */
const saoPaulo = table(
  -3,
  ['2016-10-16T03:00', -2],
  ['2017-02-19T02:00', -3],
  ['2017-10-15T03:00', -2],
  ['2018-02-18T02:00', -3],
  ['2018-11-04T03:00', -2],
  ['2019-02-17T02:00', -3],
)
/** There was no 30 December 2011. */
const apia = table(
  -11,
  ['2011-09-24T14:00', -10],
  ['2011-12-30T10:00', 14],
  ['2012-03-31T14:00', 13],
  ['2012-09-29T14:00', 14],
)
/** Summer time of half an hour. */
const lordHowe = table(
  10.5,
  ['2026-10-03T15:30', 11],
  ['2027-04-03T15:00', 10.5],
  ['2027-10-02T15:30', 11],
  ['2028-04-01T15:00', 10.5],
)
const kolkata: Offset = () => 5.5 * hourMs

/** Numbers periods: `of` gives the period of a wall time, `start` the wall time at which a period begins. */
interface Numbering {
  of(wallMs: number): number
  start(period: number): number
}

function every(spanMs: number, anchorMs: number): Numbering {
  return {
    of: (wallMs) => Math.floor((wallMs - anchorMs) / spanMs),
    start: (period) => anchorMs + period * spanMs,
  }
}

/** Every `months` months on the day and time of the anchor, or on the last day of a month that lacks it. */
function everyMonths(months: number, anchorMs: number): Numbering {
  const anchor = new Date(anchorMs)
  const time = anchorMs % dayMs
  const start = (period: number): number => {
    const month = anchor.getUTCMonth() + period * months
    const lastDay = new Date(Date.UTC(anchor.getUTCFullYear(), month + 1, 0)).getUTCDate()
    return Date.UTC(anchor.getUTCFullYear(), month, Math.min(anchor.getUTCDate(), lastDay)) + time
  }
  const of = (wallMs: number): number => {
    const wall = new Date(wallMs)
    const years = wall.getUTCFullYear() - anchor.getUTCFullYear()
    let period = Math.ceil((years * 12 + wall.getUTCMonth() - anchor.getUTCMonth()) / months) + 1
    while (start(period) > wallMs) period--
    return period
  }
  return { of, start }
}

/** The first instant of a period is the first whose wall time is in it or later, as clocks may jump over its start. */
function calendarOf(numbering: Numbering, offset: Offset): Calendar {
  const periodAt = (ms: number): number => numbering.of(ms + offset(ms))
  const firstInstant = (period: number): number => {
    let before = numbering.start(period) - 2 * dayMs
    let inside = numbering.start(period) + 2 * dayMs
    while (inside - before > 1) {
      const middle = Math.floor((before + inside) / 2)
      if (periodAt(middle) >= period) inside = middle
      else before = middle
    }
    return inside
  }
  let last: Period | undefined
  return (at) => {
    if (last !== undefined && at >= last.start && at < last.end) return last
    const period = periodAt(Number(at / 1_000n))
    const start = BigInt(firstInstant(period)) * 1_000n
    let next = period
    let end: bigint
    do end = BigInt(firstInstant(++next)) * 1_000n
    while (end === start)
    last = { start, end }
    return last
  }
}

const midnight = Date.UTC(2024, 0, 1)
const numberings = {
  day: (anchorMs: number) => every(dayMs, anchorMs),
  week: (anchorMs: number) => every(7 * dayMs, anchorMs),
  month: (anchorMs: number) => everyMonths(1, anchorMs),
  year: (anchorMs: number) => everyMonths(12, anchorMs),
}
const longestHours = { day: 25, week: 24 * 7 + 1, month: 24 * 31 + 1, year: 24 * 366 + 1 }
const shortestHours = { day: 23, week: 24 * 7 - 1, month: 24 * 28 - 1, year: 24 * 365 - 1 }

interface Place {
  readonly timeZone?: string
  readonly anchor?: string
  readonly offset?: Offset
  readonly from?: string
  readonly to?: string
}

function named(period: NamedCalendar['period'], place: Place = {}): NamedCalendar {
  const { timeZone, anchor, offset = () => 0, from = '2024-01-01T00:00', to = '2030-12-31T00:00' } = place
  const anchorMs = anchor === undefined ? midnight : utc(anchor.includes('T') ? anchor : `${anchor}T00:00`)
  return {
    period,
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(anchor === undefined ? {} : { anchor }),
    calendar: calendarOf(numberings[period](anchorMs), offset),
    longestUs: longestHours[period] * hourMs * 1_000,
    shortestUs: shortestHours[period] * hourMs * 1_000,
    from: utc(from) * 1_000,
    to: utc(to) * 1_000,
  }
}

/** 1 January 2024 was a Monday. */
export const calendars: readonly NamedCalendar[] = [
  named('day'),
  named('week'),
  named('month'),
  named('year'),
  named('day', { anchor: '2027-01-01T06:30' }),
  named('week', { anchor: '2027-01-06T06:00' }),
  named('month', { anchor: '2027-01-31' }),
  named('month', { anchor: '2027-01-30T18:00' }),
  named('year', { anchor: '2024-02-29' }),
  named('week', { timeZone: 'Asia/Kolkata', offset: kolkata }),
  named('day', { timeZone: 'America/New_York', offset: newYork, from: '2027-02-20T00:00', to: '2027-03-20T00:00' }),
  named('day', { timeZone: 'America/New_York', offset: newYork, from: '2027-10-20T00:00', to: '2027-11-20T00:00' }),
  named('month', { timeZone: 'America/New_York', offset: newYork }),
  named('month', { timeZone: 'America/New_York', offset: newYork, anchor: '2027-03-14T02:30' }),
  named('day', { timeZone: 'America/Sao_Paulo', offset: saoPaulo, from: '2018-02-10T00:00', to: '2018-02-20T00:00' }),
  named('day', { timeZone: 'America/Sao_Paulo', offset: saoPaulo, from: '2018-10-28T00:00', to: '2018-11-06T00:00' }),
  named('day', { timeZone: 'Pacific/Apia', offset: apia, from: '2011-12-20T00:00', to: '2012-01-03T00:00' }),
  named('day', { timeZone: 'Australia/Lord_Howe', offset: lordHowe, from: '2027-03-28T00:00', to: '2027-04-06T00:00' }),
]
