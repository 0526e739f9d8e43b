// `npm start`: the ticket shop, six services and the turnstile before them, each in a process of its own.
// `npm start -- --shared [n]`: n turnstiles (default 3) that share one Redis, which is started for them.
// With --no-build nothing is installed or built first. PORT chooses the port, with --shared the first; 0 takes a free one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from './build.mjs'
import { fail, root, say, setup } from './setup.mjs'

const usualPort = 8080
const maxEdges = 20
const policies = 'examples/ticket-shop/catraca.yaml'
// The same policies with a store, in a file of their own: a file says once and for all where it keeps what was used.
const sharedPolicies = '.cache/ticket-shop.shared.yaml'
const lookEveryMs = 200
// Longer than the gateway gives running requests.
const killAfterMs = 12_000
const services = ['catalog', 'inventory', 'order', 'assistant', 'reports', 'partner']

const edges = readShared()
if (!process.argv.includes('--no-build')) {
  setup()
  build()
}
const port = await choosePort()

/** Processes in the order in which they are ended: the gateway still needs the catalog for running requests. */
const children = []
let redis
let redisRuns = true
let redisStarts = false
let stopping = false
let exitCode = 0

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void stop())
process.stdout.on('error', () => void stop())
watchParent()

const started = await Promise.all(
  services.map(async (name) => {
    const url = await startChild(`examples/ticket-shop/services/${name}.mjs`, [], { PORT: '0' }, ['inherit', 'inherit'])
    return [`${name.toUpperCase()}_URL`, url]
  }),
)
if (edges === 0) {
  const url = await startGateway(policies, port, 'live', {}, ['inherit', 'inherit'])
  if (!stopping) process.stdout.write(introduction(url))
} else await startShared()

/** How many edges share a Redis: 0 without --shared. */
function readShared() {
  const at = process.argv.indexOf('--shared')
  if (at < 0) return 0
  const text = process.argv[at + 1]
  if (text === undefined || text.startsWith('-')) return 3
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > maxEdges) fail(`--shared is "${text}"; allowed: 1 to ${maxEdges} edges`)
  return count
}

/** Starts a Redis and the edges over it, and prints what happens to it. */
async function startShared() {
  const { findRedisServer, RedisProcess } = await import('../packages/gateway/dist/redis-server.js')
  try {
    await findRedisServer({ say })
    redis = await RedisProcess.start()
  } catch (error) {
    fail(error.message)
  }
  if (stopping) return
  writeSharedPolicies()
  const env = { REDIS_URL: redis.url, INSTANCES: String(edges) }
  const urls = []
  for (let index = 0; index < edges; index++) {
    const next = port === 0 || !(await isFree(port + index)) ? 0 : port + index
    urls.push(await startGateway(sharedPolicies, next, 'off', env, ['ignore', 'pipe'], `edge ${index + 1}`))
  }
  if (stopping) return
  process.stdout.write(sharedIntroduction(urls))
  process.on('SIGUSR2', () => void startRedisAgain())
  setInterval(tellOfRedis, lookEveryMs).unref()
}

/** The time to answer is longer than usual: the demonstration shares its processor with all it shows. */
function writeSharedPolicies() {
  const file = join(root, sharedPolicies)
  const shop = readFileSync(join(root, policies), 'utf8')
  const text = `${shop}store: { redis: "\${REDIS_URL}", timeout: 250ms }\n`
  // Edges of another run may read it.
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

async function startRedisAgain() {
  if (redisStarts || stopping) return
  redisStarts = true
  try {
    await redis.restart()
    redisRuns = true
    process.stdout.write(`redis: runs again, without its memory; kill it with: kill -9 ${redis.pid}\n`)
  } catch (error) {
    process.stdout.write(`redis: does not start: ${error.message}\n`)
  }
  redisStarts = false
}

function tellOfRedis() {
  if (!redisRuns || redisStarts || redis.pid !== undefined) return
  redisRuns = false
  process.stdout.write(`redis: has ended; start it again with: kill -USR2 ${process.pid}\n`)
}

function startGateway(file, at, log, env, output, name) {
  const args = ['up', '-c', file, '--log', log, '--host', '127.0.0.1', '--port', String(at)]
  return startChild('packages/gateway/bin/catraca.js', args, { ...Object.fromEntries(started), ...env }, output, name)
}

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

/** The same for edges that share a store. */
function sharedIntroduction(urls) {
  return `
${urls.length} edges share the Redis at ${redis.url}:

${urls.map((url, index) => `  edge ${index + 1}  ${url}`).join('\n')}

Try in another terminal:

  one budget, whichever edge is asked: a client may hold seats of one event four times an hour
    for url in ${urls.join(' ')}; do curl -s -o /dev/null -w '%{http_code}\\n' -H 'x-api-key: arena-1' -H 'content-type: application/json' -d '{"eventId":7}' "$url/api/holds?try=[1-2]"; done

  kill the Redis: logins are refused with 503, the rest goes on by parts of the limits
    kill -9 ${redis.pid}

  start it again
    kill -USR2 ${process.pid}

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
async function startChild(file, args, env, [stdout, stderr], name) {
  const child = spawn(process.execPath, [join(root, file), ...args], {
    // A group of its own: Ctrl-C must reach this process alone, or each child would be asked to end twice.
    detached: true,
    env: { ...process.env, ...env },
    // The channel breaks when this process dies, however it dies; the children then end by themselves.
    stdio: ['ignore', stdout, stderr, 'ipc'],
  })
  if (child.stderr !== null) {
    createInterface(child.stderr).on('line', (line) => process.stdout.write(`${name}: ${line}\n`))
  }
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
  await redis?.stop()
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
