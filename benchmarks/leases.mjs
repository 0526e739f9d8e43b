import { spawnSync } from 'node:child_process'
import { cpus } from 'node:os'
import {
  folder,
  machine,
  measure,
  median,
  options,
  prepare,
  progress,
  shuffled,
  table,
  versionOf,
  writePart,
} from './lib/bench.mjs'

/** What does a block of units save, in trips, in waiting and in decisions per second, beside asking each time? */
const { json, quick } = options('bench:leases')
prepare()
process.chdir(folder)
const { RedisProcess } = await import(new URL('../packages/gateway/dist/redis-server.js', import.meta.url).href)

const rounds = quick ? 1 : 2
const ttlMs = quick ? 1_000 : 10_000
const ms = quick ? 200 : 700
const loads = ['one hot key', '1k Zipf', '100k Zipf']
const blocks = ['exact', '1', '10', '50', '100']
const ways = ['tryTake', 'awaited']
const server = await RedisProcess.start()
if (cpus().length > 1) spawnSync('taskset', ['-p', '-c', '0', String(server.pid)])
const runs = new Map()
const pairs = loads.flatMap((load) => blocks.map((block) => [load, block]))
let done = 0
try {
  for (let round = 0; round < rounds; round++) {
    for (const [load, block] of shuffled(pairs)) {
      progress(done++, rounds * pairs.length, `round ${round + 1}: ${load}, block ${block}`)
      await server.command('FLUSHALL')
      const results = measure('leases/worker.mjs', [load, block, String(ttlMs), String(ms), String(server.port)])
      for (const way of ways) {
        const key = `${load}|${block}|${way}`
        runs.set(key, [...(runs.get(key) ?? []), ...results[way]])
      }
    }
  }
  progress(done, done, 'done')
  report()
} finally {
  await server.stop()
}

/** Median of what was measured. */
function of(load, block, way, what) {
  return median(runs.get(`${load}|${block}|${way}`).map((run) => run[what]))
}

function gain(load, block, way) {
  return of(load, block, way, 'perSecond') / of(load, 'exact', way, 'perSecond')
}

function report() {
  const atLeast = (bar, least, values) => ({ bar, values, met: values.every((value) => value >= least) })
  const atMost = (bar, most, values) => ({ bar, values, met: values.every((value) => value <= most) })
  const leased = blocks.slice(1)
  const bars = [
    atLeast('100k Zipf, block 100: ≥ 12x exact (tryTake)', 12, [gain('100k Zipf', '100', 'tryTake')]),
    atMost('100k Zipf, block 100: ≤ 0.02 trips per decision', 0.02, [of('100k Zipf', '100', 'tryTake', 'trips')]),
    atMost('100k Zipf, block 100: ≤ 0.01 of the decisions wait', 0.01, [of('100k Zipf', '100', 'tryTake', 'waiting')]),
    ...ways.map((way) =>
      atLeast(
        `one hot key, ${way}, blocks ${leased.join(', ')}: ≥ 1x exact`,
        1,
        leased.map((block) => gain('one hot key', block, way)),
      ),
    ),
  ]
  const data = { machine: machine(), rounds, ttlMs, ms, bars, runs: Object.fromEntries(runs) }
  if (json) {
    console.log(JSON.stringify(data, undefined, 2))
    return
  }
  const text = markdown(bars)
  console.log(text)
  if (!quick) writePart('leases', text)
}

function markdown(bars) {
  const rows = loads.flatMap((load) =>
    blocks.map((block) => [
      load,
      block,
      ...ways.flatMap((way) => [
        `${(of(load, block, way, 'perSecond') / 1_000).toFixed(0)}k`,
        `${gain(load, block, way).toFixed(1)}x`,
      ]),
      of(load, block, 'tryTake', 'trips').toFixed(3),
      `${(of(load, block, 'tryTake', 'waiting') * 100).toFixed(1)} %`,
    ]),
  )
  return [
    '## Leases: what does a block of units save, beside asking each time?',
    '',
    `\`npm run bench:leases\`, ${rounds} rounds in a new order each, medians. 64 callers per turn of the event loop, ioredis ` +
      `${versionOf('ioredis')}, loopback, the server on one core, the client on the other; after one lease time (${ttlMs / 1_000} s) ` +
      `of warm-up. ${machine()}. \`tryTake\`: callers take what is answered at once and wait for the rest; \`awaited\`: each ` +
      'awaits `take`. Trips count what is given back too.',
    '',
    table(
      ['bar', 'measured', 'met'],
      bars.map(({ bar, values, met }) => [
        bar,
        values.map((value) => value.toFixed(value < 0.1 ? 4 : 2)).join(', '),
        met ? 'yes' : '**no**',
      ]),
    ),
    '',
    table(['keys', 'block', 'tryTake/s', 'gain', 'awaited/s', 'gain', 'trips per decision', 'wait'], rows),
  ].join('\n')
}
