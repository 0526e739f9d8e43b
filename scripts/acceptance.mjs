import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { fail, root, run, setup, setupRedis, tool } from './setup.mjs'

/**
 * Who proves which acceptance check. A room is `finished` once its checks must all be there; a test proves a check by
 * running, passing and carrying `acceptance N` in its title.
 */
const owners = {
  engine: {
    finished: true,
    checks: '1-5 7 8 9 12-14 17-23 26-28 30 31 33-38 41-43 51-55 57 58 104-106 202 203 205 206-208 209 210 238',
  },
  'policy and first edge': {
    finished: true,
    checks: '29 50 94-98 100 101 111 113 114 116-118 121 122 124 125 127 174 177 180 182 236 237',
  },
  'shared store': {
    finished: true,
    checks: '6 15 16 24 62-86 90 92 147-150 152 153 155 156 209 222-225 239 240',
  },
  leases: { finished: true, checks: '87-89 151' },
  HTTP: {
    finished: true,
    checks: '9 32 93-96 99 102 103 107 112 119 120 123 126-131 136-143 145 146 168 170 172 204 209',
  },
  client: { finished: false, checks: '56 110 132-134 190-201 241' },
  'edge in full': {
    finished: false,
    checks: '93-103 105 106 109 111-113 117-131 136-144 147-153 175-182 185-189 204 211-221 235 242',
  },
  lab: {
    finished: false,
    checks: '25 37 44-49 57-61 69 70 72 73 87-89 108 109 115 144 151 154 189 194-196 201 206-208 211-219 226-234',
  },
  evidence: { finished: false, checks: '39 40 99 135 157-174 183' },
  docs: { finished: false, checks: '25 184' },
}
/** Checks that describe something this project does on purpose in another way. */
const waived = [10, 11, 91]
const total = 242

if (!process.argv.includes('--last')) {
  setup()
  build()
  await setupRedis()
  run(tool('vitest'), ['run', '-t', 'acceptance \\d'])
}

const proved = new Map()
for (const { title, state } of JSON.parse(readFileSync(join(root, '.cache/tests.json'), 'utf8'))) {
  if (state !== 'passed') continue
  for (const [, number] of title.matchAll(/acceptance (\d+)/g)) proved.set(Number(number), title)
}

let missing = 0
for (const [room, { finished, checks }] of Object.entries(owners)) {
  const numbers = expand(checks)
  const open = numbers.filter((number) => !proved.has(number))
  const state = finished ? 'finished' : 'to come'
  console.log(`${room.padEnd(22)} ${String(numbers.length - open.length).padStart(3)} of ${numbers.length}  ${state}`)
  if (finished && open.length > 0) {
    missing += open.length
    console.log(`  missing: ${open.join(', ')}`)
  }
}
console.log(`${proved.size} of ${total - waived.length} acceptance checks proved (${waived.length} waived)`)
if (missing > 0) fail(`${missing} checks of finished rooms have no passing test`)

function expand(text) {
  return text.split(' ').flatMap((part) => {
    const [from, to = from] = part.split('-').map(Number)
    return Array.from({ length: to - from + 1 }, (_, index) => from + index)
  })
}
