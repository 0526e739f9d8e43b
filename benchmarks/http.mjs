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

/** What does a limit add to a request of node:http and Express, beside express-rate-limit? */
const { json, quick } = options('bench:http')
prepare()
setupCommand('wrk', 'wrk')
process.chdir(folder)

const variants = ['node', 'node catraca', 'node guard', 'express', 'express catraca', 'express express-rate-limit']
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

/** Median of what a variant adds in each round to its bare server, and the middle half of it. */
function added(name, bare) {
  const differences = runs[name].map(({ us }, round) => us - runs[bare][round].us).toSorted((a, b) => a - b)
  const at = (share) => differences[Math.round(share * (differences.length - 1))]
  return { median: median(differences), from: at(0.25), to: at(0.75) }
}

const simple = added('node catraca', 'node')
const guard = added('node guard', 'node')
const express = added('express catraca', 'express')
const peer = added('express express-rate-limit', 'express')
const bars = [
  {
    bar: '`rateLimit({ limit, window })` on node:http adds at most 1.5 µs',
    value: simple.median,
    met: simple.median <= 1.5,
    unit: 'µs',
  },
  {
    bar: 'a guard with five policies on node:http adds at most 4 µs',
    value: guard.median,
    met: guard.median <= 4,
    unit: 'µs',
  },
  {
    bar: 'on Express at most 0.3x of what express-rate-limit adds',
    value: express.median / peer.median,
    met: express.median <= 0.3 * peer.median,
    unit: 'x',
  },
]
const results = { machine: machine(), rounds, seconds, runs, added: { simple, guard, express, peer }, bars }
if (json) console.log(JSON.stringify(results))
else {
  const of = (name, extra) => {
    const cpu = median(runs[name].map(({ us }) => us))
    const rate = median(runs[name].map(({ perSecond }) => perSecond))
    const spread =
      extra === undefined ? '' : `${extra.median.toFixed(2)} (${extra.from.toFixed(2)} to ${extra.to.toFixed(2)})`
    return [name, cpu.toFixed(1), spread, String(Math.round(rate))]
  }
  const rows = [
    of('node'),
    of('node catraca', simple),
    of('node guard', guard),
    of('express'),
    of('express catraca', express),
    of('express express-rate-limit', peer),
  ]
  const text = [
    '## HTTP servers',
    '',
    `What does a limit add to a request? Hello world, ${rounds} interleaved rounds of ${seconds} s with wrk and 32 connections; CPU of the server's process per request. ${machine()}; express ${versionOf('express')}, express-rate-limit ${versionOf('express-rate-limit')} (draft-8 fields, as ours).`,
    '',
    table(['', 'CPU µs per request', 'added: median (middle half)', 'requests/s'], rows),
    '',
    ...bars.map(
      ({ bar, value, met, unit }) =>
        `- ${bar}: **${met ? 'met' : 'missed'}**, ${value.toFixed(2)}${unit === 'x' ? 'x' : ` ${unit}`}`,
    ),
  ].join('\n')
  console.log(text)
  if (!quick) writePart('http', text)
}
