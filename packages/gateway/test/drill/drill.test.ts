import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { RedisProcess } from '../../src/drill/redis-process.ts'

vi.setConfig({ testTimeout: 60_000 })

const packages = fileURLToPath(new URL('../../../', import.meta.url))
const modules = fileURLToPath(new URL('../../../../node_modules/', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'catraca-drill-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const policies = `version: 1
store: { redis: 'redis://127.0.0.1:1', timeout: 250ms }
storeFailure: { expectedInstances: 2 }
upstreams: { shop: 'http://127.0.0.1:1' }
auth: { apiKeys: { keys: [{ sha256: '${'0'.repeat(64)}', client: acme }] } }
policies:
  net: { per: address, rule: { algorithm: token-bucket, limit: 600, window: 1m } }
  per-client: { match: { identity: client }, per: client, rule: { algorithm: token-bucket, limit: 60, window: 1m, burst: 6 } }
  login:
    match: { routes: [POST /login] }
    per: address
    rule: { algorithm: sliding-counter, limit: 4, window: 15m }
    onStoreFailure: closed
  search: { match: { routes: [/search] }, per: service, rule: { algorithm: fixed-window, limit: 5, window: 1s }, onStoreFailure: open }
`
const file = join(folder, 'catraca.yaml')
writeFileSync(file, policies)

interface Verdict {
  policy: string
  mode: string
  good: boolean
  wrong: string[]
}

/** Runs a `catraca drill` of a build to its end. */
async function drill(build: string, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const child = spawn(process.execPath, [join(build, 'gateway/bin/catraca.js'), 'drill', ...args])
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  return { code, out, err }
}

const short = ['-c', file, '--edges', '2', '--seconds', '2,3,4', '--json']

describe('catraca drill', () => {
  test('finds that every policy does what the file declares, while the server is killed and after it', async () => {
    const { code, out, err } = await drill(packages, 'kill', ...short)
    const { verdicts, left, good } = JSON.parse(out) as { verdicts: Verdict[]; left: unknown[]; good: boolean }
    expect(verdicts.filter((one) => !one.good)).toEqual([])
    expect(verdicts.map(({ policy, mode }) => [policy, mode])).toEqual([
      ['per-client', 'local'],
      ['login', 'closed'],
      ['search', 'open'],
    ])
    expect(left).toEqual([{ policy: 'net', why: expect.stringContaining('memory of each edge') }])
    expect([code, good, err]).toEqual([0, true, ''])
  })

  test('names the policy whose closed behaves as open, and exits 1', async () => {
    const { code, out } = await drill(buildWithout('closed'), 'blackhole', ...short)
    const { verdicts } = JSON.parse(out) as { verdicts: Verdict[] }
    expect(verdicts.filter(({ good }) => !good).map(({ policy }) => policy)).toEqual(['login'])
    expect(verdicts.find(({ policy }) => policy === 'login')?.wrong[0]).toMatch(
      /declares closed, and \d+ requests passed/,
    )
    expect(code).toBe(1)
  })

  test('takes a Redis of one’s own where only the way to it is broken', async () => {
    const redis = await RedisProcess.start()
    const { code, out } = await drill(packages, 'delay', ...short, '--redis', redis.url)
    await redis.stop()
    expect((JSON.parse(out) as { verdicts: Verdict[] }).verdicts.filter(({ good }) => !good)).toEqual([])
    expect(code).toBe(0)
  })

  test('says in words what it found', async () => {
    const { code, out } = await drill(packages, 'script-flush', ...short.slice(0, -1))
    expect(out).toMatch(/^drill script-flush: the server forgets the script/)
    expect(out).toMatch(/login +closed +\d+ of 8 passed/)
    expect(out).toContain('all 3 policies did what the file declares')
    expect(code).toBe(0)
  })

  test('refuses what it cannot do, with the exit code of a wrong command line', async () => {
    const wrong = await drill(packages, 'earthquake')
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringMatching(/'earthquake'.*Allowed: kill, pause/s)])
    const own = await drill(packages, 'kill', ...short, '--redis', 'redis://127.0.0.1:1')
    expect([own.code, own.err]).toEqual([2, expect.stringContaining('needs a Redis that the drill may break')])
    const phases = await drill(packages, 'kill', '--seconds', '1,2')
    expect([phases.code, phases.err]).toEqual([2, expect.stringContaining('Allowed: whole numbers from 2 to 600')])
    const none = await drill(packages, 'kill', '-c', join(folder, 'none.yaml'))
    expect([none.code, none.err]).toEqual([expect.any(Number), expect.stringContaining('none.yaml')])
    expect(none.code).not.toBe(0)
  })

  test('race: reading, deciding and adding lets too many pass, the script exactly the limit', async () => {
    const { code, out } = await drill(packages, 'race', '--json')
    const { rounds } = JSON.parse(out) as { rounds: { naive: number; script: number }[] }
    expect(rounds.map(({ script }) => script)).toEqual([50, 50, 50, 50, 50])
    expect(Math.min(...rounds.map(({ naive }) => naive))).toBeGreaterThanOrEqual(50)
    expect(Math.max(...rounds.map(({ naive }) => naive))).toBeGreaterThan(50)
    expect(code).toBe(0)
  })
})

/** A copy of the built packages in which one mode is another. */
function buildWithout(mode: 'closed'): string {
  const copy = join(folder, 'build', 'node_modules')
  mkdirSync(join(copy, '@catraca'), { recursive: true })
  for (const name of ['commander', 'undici', 'ioredis', 'yaml']) symlinkSync(join(modules, name), join(copy, name))
  const of = (name: string, into: string): void =>
    cpSync(join(packages, name), join(copy, into), {
      recursive: true,
      filter: (path) => !/\/(src|test)(\/|$)/.test(path),
    })
  of('catraca', 'catraca')
  of('config', '@catraca/config')
  of('gateway', '@catraca/gateway')
  symlinkSync(join(copy, '@catraca/gateway'), join(copy, 'gateway'))
  const line = `===\`${mode}\`?refuseClosed:passUncounted`
  // What stores share stands in a file of its own, whose name the build chooses.
  const dist = join(copy, 'catraca/dist')
  const files = readdirSync(dist).filter((file) => file.endsWith('.js'))
  const built = files.map((file) => join(dist, file)).filter((file) => readFileSync(file, 'utf8').includes(line))
  expect(built).not.toEqual([])
  for (const file of built) {
    const text = readFileSync(file, 'utf8')
    expect(text.split(line)).toHaveLength(2)
    writeFileSync(file, text.replace(line, '===`never`?refuseClosed:passUncounted'))
  }
  return copy
}
