import { fileURLToPath } from 'node:url'
import { setupCommand } from '../scripts/setup.mjs'
import {
  folder,
  machine,
  median,
  options,
  prepare,
  progress,
  shuffled,
  table,
  versionOf,
  writePart,
} from './lib/bench.mjs'
import { load, startServer } from './lib/load.mjs'

/** What does a limit add to a request of node:http, Express, Fastify and Hono, beside the limiter each is used with? */
const { json, quick } = options('bench:http')
prepare()
setupCommand('wrk', 'wrk')
process.chdir(folder)

/** Of each framework: its limiter, and the bars. `cpu`: what we add to a request, µs or a part of what the peer adds. */
const frameworks = [
  { name: 'node', peer: undefined, cpu: 1.5, rate: undefined },
  { name: 'fastify', peer: '@fastify/rate-limit', cpu: 0.8, rate: 1.05 },
  { name: 'express', peer: 'express-rate-limit', cpu: 0.3, rate: 1.2 },
  { name: 'hono', peer: 'hono-rate-limiter', cpu: 0.4, rate: 1.35 },
]
const variants = [
  ...frameworks.flatMap(({ name, peer }) => [
    name,
    `${name} fields alone`,
    `${name} catraca`,
    ...(peer === undefined ? [] : [`${name} ${peer}`]),
  ]),
  'node guard',
]
const rounds = quick ? 2 : 8
const seconds = quick ? 1 : 2
const script = fileURLToPath(new URL('http/server.mjs', import.meta.url))

const runs = Object.fromEntries(variants.map((name) => [name, []]))
let done = 0
for (let round = 0; round < rounds; round++) {
  for (const name of shuffled(variants)) {
    progress(done++, rounds * variants.length, `round ${round + 1}: ${name}`)
    const server = await startServer(script, [name])
    const url = `http://127.0.0.1:${server.port}/`
    await load(url, 1)
    const before = await server.cpuUs()
    const { requests, perSecond, bad } = await load(url, seconds)
    const us = ((await server.cpuUs()) - before) / requests
    await server.stop()
    if (bad > 0) throw new Error(`${name} answered ${bad} requests with an error`)
    runs[name].push({ us, perSecond })
  }
}
progress(done, done, 'done')

/**
 * A figure of the quiet quarter of the rounds. What else runs on the machine only ever makes a round slower, so the median
 * of few rounds says more about the neighbours than about the server.
 */
function quiet(name, figure, share) {
  const sorted = runs[name].map((run) => run[figure]).toSorted((a, b) => a - b)
  return sorted[Math.round(share * (sorted.length - 1))]
}
const cpuOf = (name) => quiet(name, 'us', 0.25)
const rateOf = (name) => quiet(name, 'perSecond', 0.75)

/** What a variant adds to its bare server. */
function added(name) {
  return cpuOf(name) - cpuOf(name.split(' ')[0])
}

const bars = frameworks.flatMap(({ name, peer, cpu, rate }) => {
  const us = added(`${name} catraca`)
  if (peer === undefined) {
    const what = '`rateLimit({ limit, window })` on node:http adds at most 1.5 µs'
    return [{ bar: what, value: us, met: us <= cpu, unit: ' µs' }]
  }
  const ratio = us / added(`${name} ${peer}`)
  const faster = rateOf(`${name} catraca`) / rateOf(`${name} ${peer}`)
  return [
    { bar: `on ${name} at most ${cpu}x of the CPU that ${peer} adds`, value: ratio, met: ratio <= cpu, unit: 'x' },
    { bar: `on ${name} at least ${rate}x the requests of ${peer}`, value: faster, met: faster >= rate, unit: 'x' },
  ]
})
const extra = Object.fromEntries(variants.filter((name) => name.includes(' ')).map((name) => [name, added(name)]))
const results = { machine: machine(), rounds, seconds, runs, added: extra, bars }
if (json) console.log(JSON.stringify(results))
else {
  const rows = variants.map((name) => {
    const extra = name.includes(' ') ? added(name).toFixed(2) : ''
    const middle = median(runs[name].map(({ us }) => us)).toFixed(1)
    return [name, cpuOf(name).toFixed(1), middle, extra, String(Math.round(rateOf(name)))]
  })
  const versions = [
    'express',
    'express-rate-limit',
    'fastify',
    '@fastify/rate-limit',
    'hono',
    '@hono/node-server',
    'hono-rate-limiter',
  ]
  const text = [
    '## HTTP servers',
    '',
    `What does a limit add to a request? Hello world, ${rounds} interleaved rounds of ${seconds} s with wrk and 32 connections; CPU of the server's process per request, as in the quiet quarter of the rounds, since neighbours on the machine only ever add. All limiters send header fields. ${machine()}; ${versions.map((name) => `${name} ${versionOf(name)}`).join(', ')}.`,
    '',
    table(['', 'CPU µs per request', 'its median', 'added', 'requests/s'], rows),
    '',
    ...bars.map(({ bar, value, met, unit }) => `- ${bar}: **${met ? 'met' : 'missed'}**, ${value.toFixed(2)}${unit}`),
  ].join('\n')
  console.log(text)
  if (!quick) writePart('http', text)
}
