import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { run, up } from './command.ts'
import { ask, startUpstream, until } from './helpers.ts'
import { startRedis } from './store-support.ts'

/** A file over a store, each policy in another mode; `extra` comes at its end. */
function fileOver(
  redis: string,
  { origin = 'http://127.0.0.1:1', instances = 'storeFailure: { expectedInstances: 6 }', extra = '' } = {},
): string {
  const folder = mkdtempSync(join(tmpdir(), 'catraca-store-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'catraca.yaml')
  writeFileSync(
    file,
    `version: 1
upstreams: { app: "${origin}" }
trust: { proxies: 0 }
defaults: { onStoreFailure: local }
policies:
  net: { per: address, rule: { algorithm: token-bucket, limit: 600, window: 1m } }
  page: { match: { routes: ["GET /**"] }, per: address, rule: { algorithm: token-bucket, limit: 60, window: 1m, burst: 12 } }
  dear: { match: { routes: ["GET /dear"] }, cost: 5, per: address, rule: { algorithm: sliding-log, limit: 24, window: 1h } }
  day: { match: { routes: ["GET /**"] }, per: address, rule: { algorithm: quota, limit: 5000, period: day, timeZone: UTC } }
  login: { match: { routes: ["POST /login"] }, per: address, rule: { algorithm: sliding-log, limit: 5, window: 1h }, onStoreFailure: closed }
  whole: { per: service, rule: { algorithm: token-bucket, limit: 600, window: 1s }, onStoreFailure: open }
store: { redis: "${redis}", timeout: 2s }
${instances}
${extra}
`,
  )
  return file
}

/** Nothing listens there: neither command may need it. */
const nowhere = 'redis://me:hunter2@127.0.0.1:1/3'

describe('catraca explain over a shared store', () => {
  test('says where each policy lives and what decides without the store', async () => {
    const { exit, out } = run('explain', '-c', fileOver(nowhere), '--path', '/dear')
    expect(await exit).toBe(0)
    const lines = out().split('\n')
    expect(lines.filter((line) => line.startsWith('  store'))).toEqual([
      '  store    memory, also beside the shared store: counted in each of 6 instances',
      '  store    shared; without it local: 10 per minute, bursts of up to 2, in each of 6 instances',
      '  store    shared; without it local: 4 in any hour, in each of 6 instances; a request costs 5, which never fits',
      '  store    shared; without it local: 1/6 of what it had left when it last answered, in each of 6 instances',
      '  store    shared; without it open: all pass',
    ])
    expect(lines.at(-2)).toBe('store: redis 127.0.0.1:1/3, 6 instances expected')
    expect(out()).not.toContain('hunter2')
  })

  test('states the bounds of a lease, as check does', async () => {
    const leased =
      '  held: { per: address, match: { routes: ["GET /held"] }, rule: { algorithm: gcra, limit: 6000, window: 1m }, lease: { block: 20 } }'
    const file = fileOver(nowhere)
    const text = readFileSync(file, 'utf8').replace('  whole:', `${leased}\n  whole:`)
    writeFileSync(file, text)
    const words =
      'in blocks of up to 20, at most 26 of a key in each of 6 instances; at most 156 more than the rule; refused while ' +
      'others hold at most 130'
    const explain = run('explain', '-c', file, '--path', '/held')
    expect(await explain.exit).toBe(0)
    expect(explain.out()).toContain(`  leased   ${words}\n`)
    const portuguese = run('explain', '-c', file, '--path', '/held', '--language', 'pt')
    expect(await portuguese.exit).toBe(0)
    expect(portuguese.out()).toContain(
      '  reserva  em blocos de até 20, no máximo 26 de uma chave em cada uma de 6 instâncias',
    )
    const json = run('explain', '-c', file, '--path', '/held', '--json')
    expect(await json.exit).toBe(0)
    const { policies } = JSON.parse(json.out()) as { policies: { policy: string; lease?: unknown }[] }
    expect(policies.find(({ policy }) => policy === 'held')?.lease).toEqual({
      block: 20,
      ttlMs: 10_000,
      instances: 6,
      bounds: { held: 26, over: 156, under: 130 },
    })
    const check = run('check', file)
    await check.exit
    expect(check.out()).toContain(`leased ${words}\n`)
    writeFileSync(file, text.replace('expectedInstances: 6', 'expectedInstances: live'))
    const live = run('explain', '-c', file, '--path', '/held')
    expect(await live.exit).toBe(0)
    expect(live.out()).toContain(
      'leased   in blocks of up to 20, at most 26 of a key in each instance; at most 26 more than the rule; refused while ' +
        'others hold at most 26, for each instance\n',
    )
  })

  test('in Portuguese, and with a ceiling', async () => {
    const instances = 'storeFailure: { expectedInstances: 6, ceiling: { limit: 600, window: 1s } }'
    const file = fileOver(nowhere, { instances })
    const { exit, out } = run('explain', '-c', file, '--method', 'POST', '--path', '/login', '--language', 'pt')
    expect(await exit).toBe(0)
    expect(out()).toContain('\n  guarda   compartilhado; sem ele closed: nenhuma passa, 503\n')
    expect(out()).toMatch(
      /\nguarda: redis .*, 6 instâncias esperadas; sem ela cada uma deixa passar no máximo 100 por segundo/,
    )
  })

  test('as JSON', async () => {
    const { exit, out } = run('explain', '-c', fileOver(nowhere), '--path', '/', '--json', '--all')
    expect(await exit).toBe(0)
    const { store, policies } = JSON.parse(out()) as { store: object; policies: Record<string, unknown>[] }
    expect(store).toEqual({ kind: 'redis', address: '127.0.0.1:1/3', expectedInstances: 6 })
    const told = policies.map(({ policy, store: home, withoutStore }) => ({ policy, store: home, withoutStore }))
    const words = { en: expect.any(String), pt: expect.any(String) }
    expect(told).toEqual([
      { policy: 'net', store: 'memory' },
      { policy: 'page', store: 'shared', withoutStore: { mode: 'local', share: words } },
      { policy: 'dear', store: 'shared', withoutStore: { mode: 'local', share: words, neverFits: true } },
      { policy: 'day', store: 'shared', withoutStore: { mode: 'local', share: words } },
      { policy: 'login', store: 'shared', withoutStore: { mode: 'closed' } },
      { policy: 'whole', store: 'shared', withoutStore: { mode: 'open' } },
    ])
  })

  test('with instances that are counted the part is not known beforehand', async () => {
    const file = fileOver(nowhere, { instances: 'storeFailure: { expectedInstances: live }' })
    const { out, exit } = run('explain', '-c', file, '--path', '/')
    expect(await exit).toBe(0)
    expect(out()).toContain('shared; without it local: 1/(instances last counted) of the limit, in each instance\n')
  })
})

describe('catraca check over a shared store', () => {
  test('says it for every policy', async () => {
    const { exit, out } = run('check', fileOver(nowhere))
    expect(await exit).toBe(0)
    expect(out()).toMatch(/catraca\.yaml is good: 6 policies\nstore: redis 127\.0\.0\.1:1\/3, 6 instances expected\n/)
    expect(out()).toMatch(/\n {2}net {4}memory, .*\n {2}page {3}shared; .* 10 per minute.*\n/)
    expect(out()).not.toContain('hunter2')
    const json = run('check', fileOver(nowhere), '--json')
    expect(await json.exit).toBe(0)
    const { store, policies } = JSON.parse(json.out()) as { store: object; policies: object[] }
    expect(store).toMatchObject({ kind: 'redis', expectedInstances: 6 })
    expect(policies[4]).toEqual({ policy: 'login', store: 'shared', withoutStore: { mode: 'closed' } })
  })

  test('without a number of instances it is an error with line and column', async () => {
    const file = fileOver(nowhere, { instances: 'storeFailure: { ceiling: { limit: 600, window: 1s } }' })
    for (const [command, ...rest] of [
      ['check', file],
      ['explain', '-c', file, '--path', '/'],
      ['up', '-c', file],
    ] as const) {
      const { exit, out, err } = run(command, ...rest)
      expect(await exit).not.toBe(0)
      expect(out() + err()).toMatch(
        /catraca\.yaml:13:1: storeFailure\.expectedInstances is missing, which a shared store needs; write storeFailure/,
      )
    }
  })
})

describe('catraca up over a shared store', () => {
  test('names the store, shows an outage in the live line and on the error output, and ends without the store', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const gateway = await up('-c', fileOver(redis.url, { origin }), '--log', 'live')
    expect(gateway.out()).toContain(`\n  store     redis at 127.0.0.1:${redis.port}\n`)
    expect((await ask(gateway.url)).status).toBe(200)
    await redis.kill()
    await until(() => /^warning: the store at \S+ does not answer \(.*\)/m.test(gateway.err()))
    expect((await ask(`${gateway.url}/login`, { method: 'POST' })).status).toBe(503)
    await until(() => /^admitted \d+ {2}refused \d+ {2}store: degraded$/m.test(gateway.out()))
    gateway.child.kill('SIGTERM')
    const start = performance.now()
    expect(await gateway.exit).toBe(0)
    expect(performance.now() - start).toBeLessThan(3_000)
    expect(gateway.err().match(/^warning: the store/gm)).toHaveLength(1)
  })

  test('says in its log which requests were decided without the store', async () => {
    const { origin } = await startUpstream()
    const file = fileOver('redis://127.0.0.1:1', { origin })
    const [json, text] = [await up('-c', file, '--log', 'json'), await up('-c', file, '--log', 'text')]
    for (const { url } of [json, text]) expect((await ask(`${url}/login`, { method: 'POST' })).status).toBe(503)
    await until(() => json.out().includes('"degraded":true') && text.out().includes('; without the store)'))
  })

  test('ends when its port is taken', async () => {
    const redis = await startRedis()
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as { port: number }
    const { exit, err } = run('up', '-c', fileOver(redis.url), '--host', '127.0.0.1', '--port', String(port))
    expect(await exit).toBe(1)
    expect(err()).toContain('is already in use')
  })

  test('without a shared store nothing of Redis is loaded', () => {
    const script = `
      import { createGateway } from '@catraca/gateway'
      import { createRequire } from 'node:module'
      const gateway = createGateway({ upstream: 'http://127.0.0.1:1' })
      const loaded = Object.keys(createRequire(import.meta.url).cache).filter((file) => file.includes('ioredis'))
      console.log(loaded.length)
      await gateway.close()`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
    })
    expect([stdout, stderr]).toEqual(['0\n', ''])
  })
})
