// `npm start`: a small catalog service and the turnstile before it, each in a process of its own.
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
// So small that trying it out does not take long.
const limit = ['--limit', '30/1m', '--burst', '10']

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

const catalog = await startChild('examples/catalog/server.mjs', [], { PORT: '0' }, 'ignore')
const gateway = await startChild(
  'packages/gateway/bin/catraca.js',
  ['up', '--upstream', catalog, ...limit, '--host', '127.0.0.1', '--port', String(port)],
  {},
  'inherit',
)
if (!stopping) process.stdout.write(introduction(gateway))

/** What to type next; a test plays the commands. */
function introduction(url) {
  return `
Try in another terminal:

  a normal call
    curl -is ${url}/events/7

  a loop of 20 calls that ends in 429
    curl -s -o /dev/null -w '%{http_code}\\n' '${url}/events?call=[1-20]'

  the headers that say so
    curl -sI ${url}/events | grep -iE '^(ratelimit|retry-after)'

Ctrl-C ends everything.

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
