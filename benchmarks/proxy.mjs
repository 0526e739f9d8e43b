import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

/** How many requests per second go through the gateway, beside http-proxy and nginx with limit_req? */
const { json, quick } = options('bench:proxy')
prepare()
setupCommand('wrk', 'wrk')
setupCommand('nginx', 'nginx')
process.chdir(folder)

const variants = ['catraca', 'catraca without limits', 'http-proxy', 'nginx']
const rounds = quick ? 2 : 8
const seconds = quick ? 1 : 3
const file = (name) => fileURLToPath(new URL(`proxy/${name}`, import.meta.url))

const upstream = await startServer(file('upstream.mjs'), [], 0)
const target = `http://127.0.0.1:${upstream.port}`
const runs = Object.fromEntries(variants.map((name) => [name, []]))
let done = 0
for (let round = 0; round < rounds; round++) {
  for (const name of shuffled(variants)) {
    progress(done++, rounds * variants.length, `round ${round + 1}: ${name}`)
    const server = name === 'nginx' ? await startNginx() : await startServer(file('proxy.mjs'), [name, target])
    const url = `http://127.0.0.1:${server.port}/events/7`
    await load(url, 1)
    const { perSecond, bad } = await load(url, seconds)
    await server.stop()
    if (bad > 0) throw new Error(`${name} answered ${bad} requests with an error`)
    runs[name].push(perSecond)
  }
}
await upstream.stop()
progress(done, done, 'done')

const ratio = (a, b) => median(runs[a].map((value, round) => value / runs[b][round]))
const beside = ratio('catraca', 'http-proxy')
const cost = 1 - ratio('catraca', 'catraca without limits')
const bars = [
  { bar: 'with limits on at least 1.8x http-proxy', value: `${beside.toFixed(2)}x`, met: beside >= 1.8 },
  { bar: 'limits cost at most 5 %', value: `${(cost * 100).toFixed(1)} %`, met: cost <= 0.05 },
]
const results = { machine: machine(), rounds, seconds, runs, bars }
if (json) console.log(JSON.stringify(results))
else {
  const rows = variants.map((name) => [
    name,
    String(Math.round(median(runs[name]))),
    `${ratio(name, 'http-proxy').toFixed(2)}x`,
    `${ratio(name, 'nginx').toFixed(2)}x`,
  ])
  const text = [
    '## The gateway',
    '',
    `How many requests per second go through? One core for the proxy, one for wrk with 32 connections and the upstream, ${rounds} interleaved rounds of ${seconds} s. http-proxy ${versionOf('http-proxy')} with kept-alive connections, without limits; nginx with \`limit_req\`, one worker. ${machine()}.`,
    '',
    table(['', 'requests/s', 'beside http-proxy', 'beside nginx'], rows),
    '',
    ...bars.map(({ bar, value, met }) => `- ${bar}: **${met ? 'met' : 'missed'}**, ${value}`),
  ].join('\n')
  console.log(text)
  if (!quick) writePart('proxy', text)
}

async function startNginx() {
  const home = mkdtempSync(join(tmpdir(), 'catraca-nginx-'))
  const port = await freePort()
  writeFileSync(
    join(home, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${home}/pid; error_log ${home}/error.log;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path ${home}/a; proxy_temp_path ${home}/b; fastcgi_temp_path ${home}/c;
  uwsgi_temp_path ${home}/d; scgi_temp_path ${home}/e; keepalive_requests 1000000000;
  limit_req_zone $binary_remote_addr zone=net:10m rate=1000000r/s;
  upstream app { server 127.0.0.1:${upstream.port}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      limit_req zone=net burst=1000000 nodelay;
      proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr;
    }
  }
}
`,
  )
  const child = spawn('taskset', ['-c', '1', 'nginx', '-c', join(home, 'nginx.conf')], { stdio: 'ignore' })
  for (let tries = 0; tries < 100 && !(await answers(port)); tries++) await new Promise((go) => setTimeout(go, 20))
  return {
    port,
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
      rmSync(home, { recursive: true, force: true })
    },
  }
}

async function answers(port) {
  try {
    await fetch(`http://127.0.0.1:${port}/`)
    return true
  } catch {
    return false
  }
}

async function freePort() {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
