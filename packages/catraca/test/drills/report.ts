import { appendFileSync } from 'node:fs'
import type { Outcome } from './outcome.ts'

const columns = [
  ['fault', 27],
  ['decisions', 9],
  ['over the limit, of its bound', 41],
  ['longest', 7],
  ['outage', 7],
  ['recovery', 8],
  ['per s', 5],
  ['lag', 4],
  ['idle', 4],
] as const
const legend = columns.map(([title, width]) => title.padEnd(width)).join(' ')

let begun = false

/** One row of the table; also a line of JSON in the file that CATRACA_DRILLS_ROWS names. */
export function print(outcome: Outcome): void {
  if (!begun) console.log(`${legend} events`)
  begun = true
  console.log(rowOf(outcome))
  const file = process.env['CATRACA_DRILLS_ROWS']
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(outcome)}\n`)
}

function rowOf(outcome: Outcome): string {
  const { fault, decisions, worst, longestMs, outageMs, recoveryMs, perSecond, lagMs, idle, events } = outcome
  const { side, policy, key, over, bound } = worst
  const cells = [
    fault,
    String(decisions),
    `${over > 0 ? '+' : ''}${over.toFixed(0)} of ${bound} (${side}: ${policy} ${key})`,
    longestMs.toFixed(0),
    outageMs?.toFixed(2) ?? '-',
    recoveryMs?.toFixed(0) ?? '-',
    String(perSecond),
    lagMs.toFixed(0),
    idle.toFixed(1),
  ]
  const told = Object.entries(events).map(([name, count]) => `${count} ${name}`)
  return `${cells.map((cell, at) => cell.padEnd(columns[at]?.[1] ?? 0)).join(' ')} ${told.join(', ') || '-'}`
}
