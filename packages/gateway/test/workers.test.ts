import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGateway } from '@catraca/gateway'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Run, run, up } from './command.ts'
import { documentWith } from './documents.ts'
import { type Answer, ask, readAll, startTcp, startUpstream, until } from './helpers.ts'
import { startRedis } from './store-support.ts'

const workers = 4

/** A file in a folder of its own. */
function written(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'catraca-workers-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'catraca.yaml')
  writeFileSync(file, text)
  return file
}

function fileWith(upstream: string, policies: string, rest = `workers: ${workers}`): string {
  return `version: 1\nupstreams: { app: "${upstream}" }\ntrust: { proxies: 0 }\n${rest}\npolicies:\n${policies}`
}

const exact = (limit: number): string =>
  `  all: { per: service, rule: { algorithm: fixed-window, limit: ${limit}, window: 1d }, exact: true }\n`

type Tally = Record<number, number>

/** So many requests at once over many connections, by the status they are answered with. */
async function calls(url: string, count: number, path = '/', connections = 40): Promise<Tally> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const tally: Tally = {}
  await Promise.all(
    Array.from({ length: count }, async () => {
      const outgoing = request(`${url}${path}`, { agent }).end()
      const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
      await readAll(incoming)
      tally[incoming.statusCode ?? 0] = (tally[incoming.statusCode ?? 0] ?? 0) + 1
    }),
  )
  agent.destroy()
  return tally
}

/** One request, tried again while nobody listens, or takes what was accepted. */
async function persistently(url: string): Promise<Answer | undefined> {
  const until = performance.now() + 10_000
  while (performance.now() < until) {
    const answer = await ask(url).catch(({ code }: NodeJS.ErrnoException) => code)
    if (answer !== 'ECONNREFUSED' && answer !== 'ECONNRESET') return typeof answer === 'object' ? answer : undefined
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return undefined
}

/** The processes that a process started. */
function childrenOf({ child }: Run): number[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(child.pid)], { encoding: 'utf8' })
  return stdout.split('\n').map(Number).filter(Boolean)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('limits hold across all processes', () => {
  test('exact: 200 of 1000 over many connections, each whole line printed once, the sum at the end', async () => {
    const upstream = await startUpstream()
    const { url, child, out, err, exit } = await up('-c', written(fileWith(upstream.origin, exact(200))))
    expect(out()).toContain(`\n  workers   ${workers}\n`)
    expect(await calls(url, 1_000, `/${'x'.repeat(3_000)}`)).toEqual({ 200: 200, 503: 800 })
    expect(upstream.seen.length).toBe(200)
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
    const lines = out().split('\n').slice(0, -1)
    expect(lines.at(-1)).toBe('stopped; 200 admitted, 800 refused')
    const whole = /^\S+ 127\.0\.0\.1 "GET \/x{3000}" (200|503) [\d.]+ ms (admitted|refused) \(all \d+ left.*\)$/
    expect(lines.filter((line) => whole.test(line)).length).toBe(1_000)
    expect(err()).toBe('')
  })

  test('leased: never less than the limit, never more than the bound', async () => {
    const upstream = await startUpstream()
    const policies = '  net: { per: address, rule: { algorithm: token-bucket, limit: 800, window: 1d, burst: 800 } }\n'
    const { url } = await up('-c', written(fileWith(upstream.origin, policies)), '--log', 'off')
    // A bucket of 800 is held in blocks of 800 / (20 × 4).
    const most = 800 + workers * Math.ceil((13 * 10) / 10)
    const { 200: passed = 0, 429: refused = 0 } = await calls(url, 2_000)
    expect(passed + refused).toBe(2_000)
    expect(passed).toBeLessThanOrEqual(most)
    // What others hold goes back when their leases end; until then at most so many are refused too early.
    expect(passed).toBeGreaterThanOrEqual(800 - (workers - 1) * Math.ceil((13 * 10) / 10))
  })

  test('quota, requests in flight and stacks', async () => {
    let open: (() => void)[] = []
    const upstream = await startUpstream((incoming, response) => {
      if (incoming.url === '/slow') open.push(() => response.end('slow'))
      else response.end('ok')
    })
    const policies =
      '  daily: { match: { routes: ["GET /daily"] }, per: address, rule: { algorithm: quota, limit: 30, period: year } }\n' +
      '  slow: { match: { routes: ["GET /slow"] }, per: address, rule: { algorithm: concurrency, limit: 7 } }\n' +
      '  wide: { match: { routes: ["GET /both", "GET /wide"] }, per: service, rule: { algorithm: quota, limit: 50, period: year } }\n' +
      '  tight: { match: { routes: ["GET /both"] }, per: service, rule: { algorithm: quota, limit: 20, period: year } }\n'
    const { url } = await up('-c', written(fileWith(upstream.origin, policies)))
    expect(await calls(url, 100, '/daily')).toEqual({ 200: 30, 429: 70 })
    expect(await calls(url, 60, '/both')).toEqual({ 200: 20, 503: 40 })
    // What the tight one refused was not charged to the wide one.
    expect(await calls(url, 40, '/wide')).toEqual({ 200: 30, 503: 10 })
    for (let turn = 0; turn < 2; turn++) {
      const underWay = calls(url, 30, '/slow')
      await until(() => open.length === 7)
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(open.length).toBe(7)
      for (const end of open) end()
      open = []
      expect(await underWay).toEqual({ 200: 7, 429: 23 })
    }
  })

  test('without a file, by flag: per address and for logins', async () => {
    const upstream = await startUpstream()
    const { url, out } = await up('--upstream', upstream.origin, '--limit', '30/1d', '--workers', '4')
    expect(out()).toContain('\n  workers   4\n')
    expect(await calls(url, 100)).toEqual({ 200: 30, 429: 70 })
    await until(() => /\nadmitted 30 {2}refused 70\n/.test(out()))
  })

  test('by header', async () => {
    const upstream = await startUpstream()
    const { url } = await up('--upstream', upstream.origin, '--limit', '4/1d', '--per', 'header:x-id', '--workers', '2')
    const status = async (id: string): Promise<number> => (await ask(url, { headers: { 'x-id': id } })).status
    const statuses = await Promise.all(Array.from({ length: 20 }, (_, index) => status(`c${index % 2}`)))
    expect(statuses.filter((one) => one === 200).length).toBe(8)
  })

  test('in a shared store, each process counts as an instance', async () => {
    const [redis, upstream] = [await startRedis(), await startUpstream()]
    const rest = `workers: 3\nstore: { redis: "${redis.url}", timeout: 5s }\nstoreFailure: { expectedInstances: 2 }`
    const policies =
      '  daily: { match: { routes: ["GET /daily"] }, per: address, rule: { algorithm: quota, limit: 30, period: year } }\n'
    const file = written(fileWith(upstream.origin, policies, rest))
    const { url, out } = await up('-c', file)
    expect(out()).toContain('\n  workers   3, each an instance of the store, which 6 are expected to share\n')
    expect(await calls(url, 100, '/daily')).toEqual({ 200: 30, 429: 70 })
    const explained = run('explain', '-c', file, '--path', '/daily')
    await explained.exit
    expect(explained.out()).toContain('6 instances expected')
  })
})

describe('a process that dies', () => {
  test('is started again, told in one line; the service goes on and what was used stays used', async () => {
    const upstream = await startUpstream()
    const gateway = await up('-c', written(fileWith(upstream.origin, exact(100))), '--log', 'off')
    const { url, err, child, exit } = gateway
    expect(await calls(url, 60)).toEqual({ 200: 60 })
    const before = childrenOf(gateway)
    expect(before.length).toBe(workers)
    process.kill(before[0] as number, 'SIGKILL')
    await until(() => err() !== '')
    expect(err()).toBe(`warning: worker ${before[0]} ended (SIGKILL); another one takes its place now\n`)
    expect(await calls(url, 80)).toEqual({ 200: 40, 503: 40 })
    await until(() => childrenOf(gateway).length === workers)
    expect(childrenOf(gateway)).not.toContain(before[0])
    child.kill('SIGINT')
    expect(await exit).toBe(0)
  })

  test('gives back the requests in flight that it held', async () => {
    let arrived = 0
    const silent = await startTcp((socket) =>
      socket.on('data', (data: Buffer) => {
        if (data.toString().startsWith('GET /held')) arrived++
      }),
    )
    const policies = '  slow: { per: address, rule: { algorithm: concurrency, limit: 3 } }\n'
    const gateway = await up('-c', written(fileWith(silent, policies, 'workers: 2\ntimeouts: { response: 60s }')))
    const broken = Array.from({ length: 3 }, () => ask(`${gateway.url}/held`).catch((error: Error) => error))
    await until(() => arrived === 3)
    expect((await ask(`${gateway.url}/held`)).status).toBe(429)
    for (const pid of childrenOf(gateway)) process.kill(pid, 'SIGKILL')
    await Promise.all(broken)
    await until(() => gateway.err().split('takes its place').length === 3)
    const again = Array.from({ length: 4 }, () => persistently(`${gateway.url}/held`))
    await until(() => arrived === 6)
    expect((await Promise.race(again))?.status).toBe(429)
  })

  test('by itself, when it is told to by name, lets its requests end', async () => {
    let finish = (): void => {}
    const upstream = await startUpstream((_, response) => {
      response.write('first, ')
      finish = () => response.end('last')
    })
    const gateway = await up('-c', written(fileWith(upstream.origin, exact(100), 'workers: 1')), '--workers', '2')
    const outgoing = request(gateway.url, { agent: false }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    for (const pid of childrenOf(gateway)) process.kill(pid, 'SIGTERM')
    finish()
    expect((await readAll(incoming)).toString()).toBe('first, last')
    await until(() => gateway.err().split('\n').length === 3)
    await until(() => childrenOf(gateway).length === 2)
  })

  test('with the command, however that ends', async () => {
    const upstream = await startUpstream()
    const gateway = await up('-c', written(fileWith(upstream.origin, exact(100))), '--log', 'off')
    const pids = childrenOf(gateway)
    expect(pids.length).toBe(workers)
    gateway.child.kill('SIGKILL')
    await gateway.exit
    await until(() => !pids.some(isAlive))
  })
})

describe('the command', () => {
  test('goes by the file as it is, told once; a wrong one changes nothing', async () => {
    const upstream = await startUpstream()
    const file = written(fileWith(upstream.origin, exact(20)))
    const { url, err } = await up('-c', file, '--log', 'off')
    expect(await calls(url, 40)).toEqual({ 200: 20, 503: 20 })
    writeFileSync(file, fileWith(upstream.origin, exact(30)))
    await until(() => err() !== '')
    expect(err()).toBe(`${file} was read again\n`)
    expect(await calls(url, 40)).toEqual({ 200: 10, 503: 30 })
    writeFileSync(file, 'version: 3')
    await until(() => err().includes('the last good one stays'))
    expect(await calls(url, 4)).toEqual({ 503: 4 })
    expect(err().split('the last good one stays').length).toBe(2)
    writeFileSync(file, fileWith(upstream.origin, exact(40), 'workers: 2'))
    await until(() => err().split('was read again').length === 3)
    expect(err().split('workers: another value is taken at the next start').length).toBe(2)
    expect(await calls(url, 40)).toEqual({ 200: 10, 503: 30 })
  })

  test('a process that comes later goes by the newest document', async () => {
    const upstream = await startUpstream()
    const file = written(fileWith(upstream.origin, exact(20)))
    const gateway = await up('-c', file, '--log', 'off')
    expect(await calls(gateway.url, 10)).toEqual({ 200: 10 })
    writeFileSync(file, fileWith(upstream.origin, exact(50)))
    await until(() => gateway.err() !== '')
    for (const pid of childrenOf(gateway)) process.kill(pid, 'SIGKILL')
    await until(() => gateway.err().split('takes its place').length === workers + 1)
    expect((await persistently(gateway.url))?.status).toBe(200)
    // What was used stays used, also where nobody was left to know of it.
    expect(await calls(gateway.url, 100)).toEqual({ 200: 39, 503: 61 })
  })

  test('lets running requests of all processes end, is no longer ready meanwhile, and is cut when it is asked twice', async () => {
    const open: (() => void)[] = []
    const upstream = await startUpstream((_, response) => {
      response.write('first, ')
      open.push(() => response.end('last'))
    })
    const rest = `workers: ${workers}\nadmin: { port: 0 }`
    const start = () => up('-c', written(fileWith(upstream.origin, exact(100), rest)))
    const [patient, impatient] = [await start(), await start()]
    const admin = /admin {5}(\S+)/.exec(patient.out())?.[1] as string
    expect((await ask(`${admin}/readyz`)).status).toBe(200)
    expect(JSON.parse((await ask(`${admin}/health`)).body.toString())).toEqual({
      status: 'ok',
      store: { kind: 'memory' },
    })
    for (const gateway of [patient, impatient]) {
      const answers = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const outgoing = request(gateway.url, { agent: false }).end()
          const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
          return incoming
        }),
      )
      gateway.child.kill('SIGTERM')
      if (gateway === impatient) {
        await new Promise((resolve) => setTimeout(resolve, 100))
        gateway.child.kill('SIGTERM')
        expect(await gateway.exit).toBe(1)
        const ends = await Promise.all(answers.map((incoming) => readAll(incoming).catch((error: Error) => error)))
        expect(ends.every((end) => end instanceof Error)).toBe(true)
        continue
      }
      let status = 200
      while (status === 200) status = (await ask(`${admin}/readyz`)).status
      expect(status).toBe(503)
      for (const end of open.splice(0)) end()
      const bodies = await Promise.all(answers.map(async (incoming) => (await readAll(incoming)).toString()))
      expect(bodies).toEqual(Array.from({ length: 8 }, () => 'first, last'))
      expect(await gateway.exit).toBe(0)
      expect(gateway.out()).toMatch(/\nstopped; 8 admitted, 0 refused\n$/)
    }
  })

  test('says that the port is taken, as with one process', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const flags = ['up', '--upstream', 'http://127.0.0.1:1', '--port', `${port}`, '--host', '127.0.0.1']
    const [one, several] = [run(...flags), run(...flags, '--workers', '3')]
    expect([await several.exit, several.err()]).toEqual([await one.exit, one.err()])
    expect(several.err()).toBe(`error: port ${port} is already in use; choose another with --port\n`)
    expect(several.out()).toBe('')
  })

  test('warns once of a service that is not there', async () => {
    const { err } = await up('--upstream', 'http://127.0.0.1:1', '--workers', '3')
    await until(() => err() !== '')
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(err()).toBe(
      'warning: upstream http://127.0.0.1:1 refused the connection; requests are answered 502 or 504 until it works\n',
    )
  })

  test.each([
    ['0', 2],
    ['65', 2],
    ['x', 2],
  ])('--workers %s is an error', async (value, code) => {
    const { exit, err } = run('up', '--upstream', 'http://127.0.0.1:1', '--workers', value)
    expect(await exit).toBe(code)
    expect(err()).toBe(
      `error: option '--workers <count>' argument '${value}' is invalid. Allowed: a whole number from 1 to 64 (processes).\n`,
    )
  })

  test.each(['0', '65', '1.5', 'many'])('workers: %s in the file is an error with its line', async (value) => {
    const file = written(fileWith('http://127.0.0.1:1', exact(1), `workers: ${value}`))
    const { exit, err } = run('up', '-c', file)
    expect(await exit).toBe(2)
    expect(err()).toMatch(/^error: \S+:4:\d+: workers is \S+; allowed: a whole number of processes from 1 to 64/)
  })

  test('help has an example', async () => {
    const { exit, out } = run('up', '--help')
    expect(await exit).toBe(0)
    expect(out()).toContain('catraca up -c catraca.yaml --workers 4\n')
  })

  test('a gateway that is made in code is one process, and says so', () => {
    const warnings: string[] = []
    const document = documentWith({ app: 'http://127.0.0.1:1' }, { workers: 3 })
    const gateway = createGateway({ document, onWarning: (line) => void warnings.push(line) })
    onTestFinished(() => gateway.close(0))
    expect(warnings).toEqual(['workers: 3 is for the command catraca up; this gateway is one process'])
  })
})
