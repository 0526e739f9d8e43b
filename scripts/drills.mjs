import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from './build.mjs'
import { fail, root, say, setup, setupRedis, tool } from './setup.mjs'

const usage = `usage: npm run drills -- [--json] [--quick] [PATTERN]

Three processes share a real Redis under load while it is killed, stopped, cut off, filled, flushed, failed over, moved
and its clock is set. Every decision is judged against the exact limit and the bound of the fault. Takes some minutes.

  --json     prints one line of JSON per fault in place of the table
  --quick    short phases, as in npm test
  PATTERN    only faults whose test has this in its name
  --help     prints this
`

const { values, positionals } = read()
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}

setup()
build()
await setupRedis()
const rowsFile = join(root, '.cache/drills.jsonl')
mkdirSync(join(root, '.cache'), { recursive: true })
rmSync(rowsFile, { force: true })
say(values.quick ? 'drills, in short' : 'drills; this takes some minutes')
const pattern = positionals.length === 0 ? [] : ['-t', positionals.join(' ')]
const quiet = ['--silent', '--reporter', 'default', '--color=false']
const { status, stdout, stderr } = spawnSync(
  tool('vitest'),
  ['run', 'packages/catraca/test/drills', ...quiet, ...pattern],
  {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, CATRACA_DRILLS: values.quick ? 'quick' : 'full', CATRACA_DRILLS_ROWS: rowsFile },
    maxBuffer: 64 * 2 ** 20,
  },
)
const rows = existsSync(rowsFile)
  ? readFileSync(rowsFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  : []
if (values.json) for (const row of rows) console.log(JSON.stringify(row))
else console.log(table(rows))
if (status !== 0) {
  process.stderr.write(`${stdout}${stderr}`)
  fail('a drill failed')
}

function read() {
  const options = { json: { type: 'boolean' }, quick: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } }
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch (error) {
    return fail(`${error.message}\n${usage}`)
  }
}

/** `over`: units admitted beyond the limit of the key for which most of the bound was used. Times in ms. */
function table(rows) {
  const lines = [
    ['fault', 'decisions', 'over', 'bound', 'longest', 'in the outage', 'recovery', 'per s', 'events', ''],
    ...rows.map((row) => [
      row.fault,
      String(row.decisions),
      row.worst.over.toFixed(0),
      String(row.worst.bound),
      row.longestMs.toFixed(0),
      row.outageMs?.toFixed(1) ?? '-',
      row.recoveryMs?.toFixed(0) ?? '-',
      String(row.perSecond),
      eventsOf(row.events),
      row.faults.length === 0 ? 'held' : 'FAILED',
    ]),
  ]
  const widths = lines[0].map((_, column) => Math.max(...lines.map((cells) => cells[column].length)))
  return lines
    .map((cells) =>
      cells
        .map((cell, at) => cell.padEnd(widths[at]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function eventsOf(events) {
  return (
    Object.entries(events)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ') || '-'
  )
}
