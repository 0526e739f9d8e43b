// `npm start`: the ticket shop, five services and the turnstile before them, each in a process of its own.
// With --no-build nothing is installed or built first. PORT chooses the port; 0 takes a free one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { build } from './build.mjs'
import { fail, root, say, setup } from './setup.mjs'

const usualPort = 8080
// Longer than the gateway gives running requests.
const killAfterMs = 12_000
const services = ['catalog', 'inventory', 'order', 'assistant', 'reports']

if (!process.argv.includes('--no-build')) {
  setup()
  build()
}
const port = await choosePort()

/** Processes in the order in which they are ended: the gateway still needs the catalog for running requests. */
const children = []
let stopping = false
let exitCode = 0

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void stop())
process.stdout.on('error', () => void stop())
watchParent()

const started = await Promise.all(
  services.map(async (name) => {
    const url = await startChild(`examples/ticket-shop/services/${name}.mjs`, [], { PORT: '0' }, 'inherit')
    return [`${name.toUpperCase()}_URL`, url]
  }),
)
const gateway = await startChild(
  'packages/gateway/bin/catraca.js',
  ['up', '-c', 'examples/ticket-shop/catraca.yaml', '--log', 'live', '--host', '127.0.0.1', '--port', String(port)],
  Object.fromEntries(started),
  'inherit',
)
if (!stopping) process.stdout.write(introduction(gateway))

/** What to type next; a test plays the commands. */
function introduction(url) {
  return `
Try in another terminal:

  a normal call
    curl -is ${url}/events/7

  a client of the free plan, whose burst is ten calls
    curl -s -o /dev/null -w '%{http_code}\\n' -H 'x-api-key: bairro-1' '${url}/events?call=[1-12]'

  what is left of its limits
    curl -s -H 'x-api-key: bairro-2' ${url}/rate-limit

More: docs/tour.md. Ctrl-C ends everything.

`
}

/** PORT, or the usual port, or any port when another program has the usual one. */
async function choosePort() {
  const asked = process.env.PORT
  if (asked !== undefined && asked !== '') {
    if (!/^\d{1,5}$/.test(asked) || Number(asked) > 65_535)
      fail(`PORT is "${asked}"; allowed: 0 to 65535, 0 takes a free one`)
    if (!(await isFree(Number(asked)))) fail(`port ${asked} is already in use; choose another: PORT=8081 npm start`)
    return Number(asked)
  }
  if (await isFree(usualPort)) return usualPort
  say(`port ${usualPort} is already in use; taking a free one`)
  return 0
}

function isFree(candidate) {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(candidate, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** Starts a process that says over its channel where it listens, and gives that address. */
async function startChild(file, args, env, stdout) {
  const child = spawn(process.execPath, [join(root, file), ...args], {
    // A group of its own: Ctrl-C must reach this process alone, or each child would be asked to end twice.
    detached: true,
    env: { ...process.env, ...env },
    // The channel breaks when this process dies, however it dies; the children then end by themselves.
    stdio: ['ignore', stdout, 'inherit', 'ipc'],
  })
  children.unshift(child)
  child.once('exit', (code) => {
    if (stopping) return
    exitCode = code || 1
    void stop()
  })
  return new Promise((resolve) => child.once('message', ({ ready }) => resolve(ready)))
}

async function stop() {
  if (stopping) {
    for (const child of children) child.kill('SIGKILL')
    process.exit(1)
  }
  stopping = true
  const kill = setTimeout(() => children.forEach((child) => child.kill('SIGKILL')), killAfterMs)
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  clearTimeout(kill)
  process.exit(exitCode)
}

/** Under npm, ends with npm: one that was killed cannot pass its end on. */
function watchParent() {
  if (process.env.npm_lifecycle_event === undefined) return
  const first = lineage()
  setInterval(() => {
    if (lineage() !== first && !stopping) void stop()
  }, 1_000).unref()
}

/** The ids of the processes up to npm: it starts a shell, which may stay between npm and this process. */
function lineage() {
  try {
    // The id, the name in brackets, the state and the id of the parent.
    const [, name, parent] = /^\d+ \((.*)\) \S (\d+)/.exec(readFileSync(`/proc/${process.ppid}/stat`, 'utf8')) ?? []
    if (name.endsWith('sh')) return `${process.ppid} ${parent}`
  } catch {
    // Not everywhere is there a /proc.
  }
  return String(process.ppid)
}
