import { eventOf, events } from './events.mjs'

/**
 * @typedef {object} Report
 * @property {number} id From 1.
 * @property {string} title
 * @property {string} month
 * @property {number} rows How many sales it has.
 */

/**
 * One report for each month of a year.
 * @type {readonly Report[]}
 */
export const reports = Array.from({ length: 12 }, (_, index) => {
  const month = `2026-${String(index + 1).padStart(2, '0')}`
  return { id: index + 1, title: `Sales of ${month}`, month, rows: 3_000 + ((index * 517) % 2_000) }
})

const rowsPerChunk = 250
const columns = ['sale', 'day', 'event', 'title', 'city', 'seats', 'total_cents']

/**
 * The report as CSV, in pieces: it is never in memory as a whole.
 * @param {Report} report
 */
export function* csv(report) {
  yield `${columns.join(',')}\r\n`
  for (let first = 0; first < report.rows; first += rowsPerChunk) {
    const length = Math.min(rowsPerChunk, report.rows - first)
    yield Array.from({ length }, (_, index) => `${row(report, first + index)}\r\n`).join('')
  }
}

/** A sale, the same every time. Nothing in it needs quotes. */
function row({ id, month }, index) {
  const event = eventOf(1 + ((index * 31 + id * 7) % events.length))
  const day = String(1 + ((index * 5 + id) % 28)).padStart(2, '0')
  const seats = 1 + ((index + id) % 4)
  const sale = id * 100_000 + index
  return [sale, `${month}-${day}`, event.id, event.title, event.city, seats, seats * event.priceCents].join(',')
}
