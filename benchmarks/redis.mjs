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

/** What does a decision in Redis cost, beside rate-limiter-flexible and rate-limit-redis on the same client and server? */
const { json, quick } = options('bench:redis')
prepare()
process.chdir(folder)
const { RedisProcess } = await import(new URL('../packages/gateway/dist/redis-server.js', import.meta.url).href)

const callers = [1, 16, 64, 256]
const rounds = quick ? 1 : 3
const ms = quick ? 120 : 350
const clients = ['ioredis 5', 'ioredis 6', 'redis 6', 'redis 6, timeout 0']
const ops = [
  'ping',
  'incr',
  'catraca',
  'catraca counter',
  'catraca stack of 3',
  'catraca 3 calls',
  'catraca refused',
  'rate-limiter-flexible',
  'rate-limiter-flexible 3 calls',
  'rate-limiter-flexible refused',
  'rate-limit-redis',
]
const server = await RedisProcess.start()
if (cpus().length > 1) spawnSync('taskset', ['-p', '-c', '0', String(server.pid)])
const runs = new Map()
const pairs = clients.flatMap((client) => ops.map((op) => [client, op]))
let done = 0
try {
  for (let round = 0; round < rounds; round++) {
    for (const [client, op] of shuffled(pairs)) {
      progress(done++, rounds * pairs.length, `round ${round + 1}: ${client}, ${op}`)
      await server.command('FLUSHALL')
      const results = measure('redis/worker.mjs', [client, op, callers.join(), String(ms), String(server.port)])
      for (const result of results) {
        const key = keyOf(client, op, result.callers)
        runs.set(key, [...(runs.get(key) ?? []), result])
      }
    }
  }
  progress(done, done, 'done')
  const bytes = measure('redis/bytes.mjs', [String(server.port)])
  report(bytes)
} finally {
  await server.stop()
}

function keyOf(client, op, count) {
  return `${client}|${op}|${count}`
}

/** Median of what was measured. */
function of(client, op, count, what = 'perSecond') {
  return median(runs.get(keyOf(client, op, count)).map((run) => run[what]))
}

function ratio(client, op, peer, count) {
  return of(client, op, count) / of(client, peer, count)
}

function report(bytes) {
  const flexible = 'rate-limiter-flexible'
  const bar = (words, least, values) => ({ bar: words, least, values, met: values.every((value) => value >= least) })
  const atMost = (words, most, values) => ({ bar: words, most, values, met: values.every((value) => value <= most) })
  const both = ['ioredis 5', 'ioredis 6']
  const each = (list, counts, value) => list.flatMap((client) => counts.map((count) => value(client, count)))
  const bars = [
    bar(
      'ioredis, 16 callers: ≥ 1.0x rate-limiter-flexible',
      1,
      each(both, [16], (c, n) => ratio(c, 'catraca', flexible, n)),
    ),
    bar(
      'ioredis, 64 and 256 callers: ≥ 1.1x rate-limiter-flexible',
      1.1,
      each(both, [64, 256], (c, n) => ratio(c, 'catraca', flexible, n)),
    ),
    bar(
      'ioredis, 16 to 256 callers: ≥ 1.0x rate-limit-redis',
      1,
      each(both, [16, 64, 256], (c, n) => ratio(c, 'catraca', 'rate-limit-redis', n)),
    ),
    bar(
      'redis 6 as it comes, 16 and 64 callers: ≥ 2.3x rate-limiter-flexible',
      2.3,
      each(['redis 6'], [16, 64], (c, n) => ratio(c, 'catraca', flexible, n)),
    ),
    bar(
      'redis 6 as it comes, 256 callers: ≥ 3x rate-limiter-flexible',
      3,
      each(['redis 6'], [256], (c, n) => ratio(c, 'catraca', flexible, n)),
    ),
    bar(
      'ioredis, stack of three: ≥ 1.3x three calls',
      1.3,
      each(both, [16, 64, 256], (c, n) => ratio(c, 'catraca stack of 3', 'catraca 3 calls', n)),
    ),
    bar(
      'ioredis, stack of three, 16 and 64 callers: ≥ 1.4x three calls of rate-limiter-flexible',
      1.4,
      each(both, [16, 64], (c, n) => ratio(c, 'catraca stack of 3', `${flexible} 3 calls`, n)),
    ),
    bar(
      'ioredis, stack of three, 256 callers: ≥ 1.7x three calls of rate-limiter-flexible',
      1.7,
      each(both, [256], (c, n) => ratio(c, 'catraca stack of 3', `${flexible} 3 calls`, n)),
    ),
    bar(
      'denied-mostly: ≥ 20x rate-limiter-flexible',
      20,
      each(clients, [16, 64, 256], (c, n) => ratio(c, 'catraca refused', `${flexible} refused`, n)),
    ),
    bar(
      'redis 6, one caller: p50 ≤ 1.05x of rate-limit-redis, a plain call (as 1 ÷ ratio ≥ 0.95)',
      0.95,
      each(['redis 6, timeout 0'], [1], (c, n) => of(c, 'rate-limit-redis', n, 'p50Ms') / of(c, 'catraca', n, 'p50Ms')),
    ),
    atMost(
      'server: ≤ 5.2 µs per decision (64 callers, ioredis)',
      5.2,
      each(both, [64], (c, n) => of(c, 'catraca', n, 'serverUs')),
    ),
    atMost(
      'server: ≤ 3.8 µs per limit of a stack (64 callers, ioredis)',
      3.8,
      each(both, [64], (c, n) => of(c, 'catraca stack of 3', n, 'serverUs') / 3),
    ),
  ]
  const data = { machine: machine(), rounds, ms, bars, bytes, runs: Object.fromEntries(runs) }
  if (json) {
    console.log(JSON.stringify(data, undefined, 2))
    return
  }
  const text = markdown(data)
  console.log(text)
  if (!quick) writePart('redis', text)
}

function markdown({ bars, bytes }) {
  const k = (value) => `${(value / 1_000).toFixed(0)}k`
  const rows = clients.flatMap((client) =>
    ops.map((op) => [
      client,
      op,
      ...callers.map((count) => `${k(of(client, op, count))} (p99 ${of(client, op, count, 'p99Ms').toFixed(2)} ms)`),
      of(client, op, 64, 'cpuUs').toFixed(1),
      of(client, op, 64, 'serverUs').toFixed(2),
    ]),
  )
  const versions = ['ioredis', 'ioredis-5', 'redis', 'rate-limiter-flexible', 'rate-limit-redis']
  return [
    '## Redis: what does a decision cost, beside the peers on the same client and server?',
    '',
    `\`npm run bench:redis\`, ${rounds} rounds in a new order each, medians. One connection, loopback, the server on one core, ` +
      'the client on the other; 100,000 keys drawn evenly, limits never reached except where it says refused. ' +
      `${machine()}. ${versions.map((name) => `${name} ${versionOf(name)}`).join(', ')}.`,
    '',
    table(
      ['bar', 'measured', 'met'],
      bars.map(({ bar, values, met }) => [
        bar,
        values.map((value) => value.toFixed(2)).join(', '),
        met ? 'yes' : '**no**',
      ]),
    ),
    '',
    'Decisions per second by callers; µs of CPU here and µs in the server per decision at 64 callers.',
    '',
    table(['client', 'what', ...callers.map((count) => `${count}`), 'CPU µs', 'server µs'], rows),
    '',
    'Bytes per key in Redis (`MEMORY USAGE`, key names of 12 characters included in the name of the state).',
    '',
    table(
      ['rule', 'state', 'bytes'],
      bytes.map(({ rule, state, bytes: size }) => [rule, state, `${size}`]),
    ),
  ].join('\n')
}
