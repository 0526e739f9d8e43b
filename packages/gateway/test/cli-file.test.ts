import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { run, up } from './command.ts'
import { ask, startUpstream, until } from './helpers.ts'

/** A folder of its own for a test. */
function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'catraca-test-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

function written(text: string): string {
  const file = join(folder(), 'catraca.yaml')
  writeFileSync(file, text)
  return file
}

const fileWith = (upstream: string, limit: number): string => `
version: 1
upstreams: { app: "${upstream}" }
trust: { proxies: 0 }
defaults: { onStoreFailure: local }
policies:
  net: { per: address, rule: { algorithm: token-bucket, limit: ${limit}, window: 1d } }
  login: { match: { routes: ["POST /login"] }, per: address, rule: { algorithm: sliding-counter, limit: 5, window: 15m }, onStoreFailure: closed }
  all: { per: service, rule: { algorithm: token-bucket, limit: 1000, window: 1s } }
`

describe('catraca init', () => {
  test.each(['edge', 'strict', 'partner', 'login'])('%s writes a file that check finds nothing in', async (preset) => {
    const file = join(folder(), 'catraca.yaml')
    const { exit, out } = run('init', '--preset', preset, file)
    expect(await exit).toBe(0)
    expect(out()).toContain(`wrote ${file} (preset ${preset})\n`)
    expect(readFileSync(file, 'utf8')).toMatch(/^#/)
    const check = run('check', file)
    expect(await check.exit).toBe(0)
    expect(check.out()).toMatch(/is good: \d+ policies\n$/)
  })

  test('does not write over a file', async () => {
    const file = written('mine')
    const { exit, err } = run('init', file)
    expect(await exit).toBe(1)
    expect(err()).toBe(`error: ${file} is there already; --force writes over it\n`)
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect(await run('init', '--force', file).exit).toBe(0)
  })
})

describe('catraca check', () => {
  test('names the line of each mistake', async () => {
    const file = written(
      'version: 1\nupstreams: { app: "http://127.0.0.1:1" }\npolicies:\n  net:\n    per: adress\n    rule: { algorithm: token-bucket, limit: 0, window: 1m }\n',
    )
    const { exit, out } = run('check', file)
    expect(await exit).toBe(1)
    expect(out()).toMatch(
      new RegExp(`error ${file}:6:\\d+: policies\\.net\\.rule\\.limit is 0; allowed: a whole number`),
    )
  })

  test('warns of what is probably not meant, as JSON too, and a check can be switched off', async () => {
    const text =
      'version: 1\nupstreams: { app: "http://127.0.0.1:1" }\npolicies:\n  net: { per: address, rule: { algorithm: token-bucket, limit: 1, window: 1m } }\n'
    const file = written(text)
    const { exit, out } = run('check', file, '--json')
    expect(await exit).toBe(1)
    const codes = (JSON.parse(out()) as { findings: { code: string; line: number }[] }).findings.map(({ code }) => code)
    expect(codes.toSorted()).toEqual([
      'CATRACA_CHECK_NO_GLOBAL',
      'CATRACA_CHECK_ONE_LIMIT',
      'CATRACA_CHECK_STORE_FAILURE',
      'CATRACA_CHECK_TRUST',
    ])
    const off = written(`${text}checks: {${codes.map((code) => ` ${code}: off`).join(',')} }\n`)
    const silent = run('check', off)
    expect(await silent.exit).toBe(0)
  })

  test('says that there is no such file', async () => {
    const { exit, err } = run('check', '/nowhere/catraca.yaml')
    expect(await exit).toBe(1)
    expect(err()).toBe('error: /nowhere/catraca.yaml does not exist\n')
  })
})

describe('catraca explain', () => {
  const shop = new URL('../../../examples/ticket-shop/catraca.yaml', import.meta.url).pathname

  test('acceptance 50: says in both languages what a policy allows', async () => {
    for (const [language, words] of [
      ['en', '10 per second, bursts of up to 20'],
      ['pt', '10 por segundo, com rajadas de até 20'],
    ] as const) {
      const flags = ['--method', 'POST', '--path', '/api/holds', '--client', 'arena', '--language', language]
      const { exit, out } = run('explain', '-c', shop, ...flags)
      expect(await exit).toBe(0)
      expect(out()).toContain(words)
    }
  })

  test('takes the plan of the client from its key, and prints JSON', async () => {
    const { exit, out } = run('explain', '-c', shop, '--path', '/events', '--client', 'palco', '--json')
    expect(await exit).toBe(0)
    const { policies } = JSON.parse(out()) as { policies: { policy: string; plan: string; variant: string }[] }
    expect(policies.find(({ policy }) => policy === 'per-client')).toMatchObject({ plan: 'pro', variant: 'plan pro' })
  })

  test('says why a policy does not speak', async () => {
    const { out, exit } = run('explain', '-c', shop, '--path', '/events', '--client', 'palco', '--all')
    expect(await exit).toBe(0)
    expect(out()).toContain('anonymous: not asked (other identity)')
    expect(out()).toContain('expensive: not asked (other route)')
  })

  test('refuses a strange attribute', async () => {
    const { exit, err } = run('explain', '-c', shop, '--path', '/', '--attribute', 'eventId=7')
    expect(await exit).toBe(2)
    expect(err()).toContain('Allowed: header:<name>=<value>, cookie:<name>=<value>')
  })
})

describe('catraca up -c', () => {
  test('goes by the file, prints a line for each request, and follows the file', async () => {
    const upstream = await startUpstream()
    const file = written(fileWith(upstream.origin, 2))
    const { url, out, err, child, exit } = await up('-c', file)
    expect(out()).toContain('limit     net: 2 per day, bursts of up to 2, for each address\n')
    const statuses = [(await ask(url)).status, (await ask(url)).status, (await ask(`${url}/x?y=1`)).status]
    expect(statuses).toEqual([200, 200, 429])
    await until(() => / "GET \/x\?y=1" 429 [\d.]+ ms refused \(net 0 left; retry after [\d.]+ ms\)\n/.test(out()))
    writeFileSync(file, fileWith(upstream.origin, 4))
    await until(() => err().includes('was read again'))
    expect([(await ask(url)).status, (await ask(url)).status, (await ask(url)).status]).toEqual([200, 200, 429])
    writeFileSync(file, 'version: 3')
    await until(() => err().includes('the last good one stays'))
    expect((await ask(url)).status).toBe(429)
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
    expect(out()).toMatch(/stopped; 4 admitted, 3 refused\n$/)
  })

  test('prints JSON lines on request', async () => {
    const upstream = await startUpstream()
    const { url, out } = await up('-c', written(fileWith(upstream.origin, 2)), '--log', 'json')
    await ask(url)
    await until(() => out().includes('"status":200'))
    const line = out()
      .split('\n')
      .find((one) => one.startsWith('{')) as string
    expect(JSON.parse(line)).toMatchObject({
      method: 'GET',
      url: '/',
      status: 200,
      decision: 'admitted',
      policy: 'net',
      remaining: 1,
    })
  })

  test('a wrong file is an error with its lines, and nothing is started', async () => {
    const { exit, err } = run('up', '-c', written('version: 1\npolicies: {}\nupstreams: { app: x }\n'))
    expect(await exit).toBe(2)
    expect(err()).toMatch(
      /^error: \S+:2:1: policies is an object; allowed: at least 1 policy \[CATRACA_OPTION_INVALID\]\n\S+:3:\d+: upstreams\.app is "x"/,
    )
  })

  test('flags that the file says too are refused', async () => {
    const { exit, err } = run('up', '-c', 'x.yaml', '--limit', '1/1s')
    expect(await exit).toBe(2)
    expect(err()).toBe("error: option '--limit' cannot be used with -c; say it in x.yaml\n")
  })

  test('without a file a page of 40 files loads twice, and health is free', async () => {
    const upstream = await startUpstream()
    const { url, out } = await up('--upstream', upstream.origin)
    expect(out()).toContain('limit     login: 5 per 15 minutes')
    expect(out()).toContain('limit     service: 1,000 per second')
    const statuses: number[] = []
    for (let count = 0; count < 82; count++) statuses.push((await ask(`${url}/assets/${count}`)).status)
    expect(new Set(statuses)).toEqual(new Set([200]))
    const tries: number[] = []
    for (let count = 0; count < 6; count++) tries.push((await ask(`${url}/shop/login`, { method: 'POST' })).status)
    expect(tries).toEqual([200, 200, 200, 200, 200, 429])
    for (let count = 0; count < 50; count++) expect((await ask(`${url}/health`)).headers['ratelimit']).toBeUndefined()
  })
})
