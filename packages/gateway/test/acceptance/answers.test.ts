import { connect } from 'node:net'
import type { PolicyDocument, PolicyEntry } from 'catraca/policy'
import { describe, expect, test } from 'vitest'
import { ask, askAll, type Heard, kinds, ownTime, pass, type Reply, rest, start, statusesOf, until } from './servers.ts'

const bucket = (limit: number, burst: number, window = '1m') => ({ algorithm: 'token-bucket', limit, window, burst })
const keys = { a: { client: 'acme' } }

function documentOf(policies: Record<string, PolicyEntry>, rest: Partial<PolicyDocument> = {}): PolicyDocument {
  return { version: 1, trust: { proxies: 0 }, policies, ...rest }
}

const perClient = (rule: PolicyEntry['rule'], more: Partial<PolicyEntry> = {}): Record<string, PolicyEntry> => ({
  'per-client': { per: 'client', rule, ...more },
})

describe.each(kinds)('what callers are told, on %s', (kind) => {
  test('acceptance 9: callers refused until one instant are told different ones', async () => {
    ownTime()
    const window = { algorithm: 'fixed-window', limit: 1, window: '1m' }
    const numbers = Array.from({ length: 200 }, (_, index) => `key-${index}`)
    const clients = Object.fromEntries(numbers.map((key) => [key, { client: key }]))
    /** How many come back in the same 100 ms, at most. */
    const fullest = (waits: readonly number[]): number => {
      const slots = new Map<number, number>()
      for (const ms of waits) slots.set(Math.floor(ms / 100), (slots.get(Math.floor(ms / 100)) ?? 0) + 1)
      return Math.max(...slots.values())
    }
    const refused = async (rule: PolicyEntry['rule']): Promise<{ promised: number[]; told: number[] }> => {
      let draws = 0
      const app = await start(kind, {
        policies: documentOf(perClient(rule)),
        keys: clients,
        random: () => ((draws++ * 7) % 200) / 200,
      })
      const heard: Heard[] = []
      for (const key of numbers) await ask(app.url, '/', { key })
      for (const key of numbers) heard.push(await ask(app.url, '/', { key }))
      const told = heard.map(({ json }) => json['retryAfterMs'] as number)
      return { promised: heard.map(({ headers }) => Number(/;t=(\d+)/.exec(String(headers['ratelimit']))?.[1])), told }
    }
    await pass(20_000)
    const aligned = await refused(window)
    // The windows of all end in 40 s, and each is told to come 44 to 48 s later.
    expect(new Set(aligned.promised)).toEqual(new Set([40]))
    expect(aligned.told.every((ms) => ms >= 44_000 && ms < 48_000)).toBe(true)
    expect(fullest(aligned.told)).toBeLessThanOrEqual(60)
    // With windows of their own they do not even end together.
    const apart = await refused({ ...window, offset: 'key' })
    expect(new Set(apart.promised).size).toBeGreaterThan(8)
    expect(fullest(apart.promised.map((seconds) => seconds * 1_000))).toBeLessThanOrEqual(60)
  })

  test('acceptance 119: the limit stands on every answer', async () => {
    ownTime()
    const replies: Record<string, Reply> = {
      '/ok': {},
      '/same': { status: 304 },
      '/none': { status: 404 },
      '/down': { status: 503 },
    }
    const app = await start(kind, {
      policies: documentOf(perClient(bucket(60, 4))),
      keys,
      handler: ({ path }) => replies[path] ?? {},
    })
    const heard: Heard[] = []
    for (const path of [...Object.keys(replies), '/ok']) heard.push(await ask(app.url, path, { key: 'a' }))
    expect(heard.map(({ status }) => status)).toEqual([200, 304, 404, 503, 429])
    for (const { headers } of heard) expect(headers['ratelimit-policy']).toBe('"per-client";q=4;w=4')
    expect(heard.map(({ headers }) => headers['ratelimit'])).toEqual([
      '"per-client";r=3;t=4',
      '"per-client";r=2;t=4',
      '"per-client";r=1;t=4',
      '"per-client";r=0;t=4',
      '"per-client";r=0;t=1',
    ])
  })

  test('limits of one caller are left off what shared caches keep, where that is asked for', async () => {
    ownTime()
    const app = await start(kind, {
      policies: documentOf(perClient(bucket(60, 9))),
      keys,
      handler: ({ path }) => ({
        headers: { 'cache-control': path === '/public' ? 'public, max-age=60' : 'max-age=60' },
      }),
      answers: { cacheable: 'omit', exposeHeaders: true },
    })
    const shared = await ask(app.url, '/public', { key: 'a' })
    const own = await ask(app.url, '/own', { key: 'a' })
    expect([shared.headers['ratelimit'], shared.headers['ratelimit-policy']]).toEqual([undefined, undefined])
    expect(own.headers['ratelimit']).toBe('"per-client";r=7;t=9')
    expect(own.headers['access-control-expose-headers']).toBe('RateLimit-Policy, RateLimit')
  })

  test('acceptance 120: the classic fields, with the policy and its burst', async () => {
    ownTime()
    const app = await start(kind, {
      policies: documentOf(perClient(bucket(600, 90))),
      keys,
      answers: { headers: 'legacy' },
    })
    const { headers } = await ask(app.url, '/', { key: 'a' })
    const fields = ['limit', 'remaining', 'reset', 'policy'].map((name) => headers[`ratelimit-${name}`])
    expect(fields).toEqual(['90', '89', '1', '600;w=60;burst=90'])
    await askAll(app.url, '/', 90, { key: 'a' })
    expect((await ask(app.url, '/', { key: 'a' })).headers['ratelimit-remaining']).toBe('0')
  })

  test('acceptance 123: a window of 100 that is used up for 30 s more', async () => {
    ownTime()
    const rule = { algorithm: 'fixed-window', limit: 100, window: '1m' }
    const app = await start(kind, {
      policies: documentOf(perClient(rule)),
      keys,
      answers: { headers: ['legacy'] },
      random: () => 0,
    })
    await pass(30_000)
    await Promise.all(Array.from({ length: 100 }, () => ask(app.url, '/', { key: 'a' })))
    const { status, headers } = await ask(app.url, '/', { key: 'a' })
    const fields = ['limit', 'remaining', 'reset'].map((name) => headers[`ratelimit-${name}`])
    // Retry-After is the wait of 30 s and its spread of at least a tenth.
    expect([status, fields, headers['retry-after']]).toEqual([429, ['100', '0', '30'], '33'])
  })

  test('acceptance 126: a thousand callers are told a thousand waits, never too short', async () => {
    ownTime()
    for (const [window, distinct] of [
      ['1s', 90],
      ['30s', 800],
    ] as const) {
      const seconds = Number.parseInt(window, 10)
      const app = await start(kind, { policies: documentOf(perClient(bucket(1, 1, window))), keys })
      await ask(app.url, '/', { key: 'a' })
      const heard: Heard[] = []
      for (let block = 0; block < 10; block++) {
        heard.push(...(await Promise.all(Array.from({ length: 100 }, () => ask(app.url, '/', { key: 'a' })))))
      }
      expect(statusesOf(heard)).toEqual({ 429: 1_000 })
      const waits = heard.map(({ json }) => json['retryAfterMs'] as number)
      for (const ms of waits)
        expect(ms).toSatisfy((value: number) => value >= seconds * 1_100 && value <= seconds * 1_200)
      for (const { headers } of heard) {
        const told = Number(headers['retry-after'])
        expect(told).toSatisfy((value: number) => value >= seconds && value <= Math.ceil(1.2 * seconds))
      }
      expect(new Set(waits).size).toBeGreaterThanOrEqual(distinct)
    }
  })

  test('acceptance 127: no cache keeps a refusal, and the next caller gets a decision of its own', async () => {
    ownTime()
    const app = await start(kind, {
      policies: documentOf(perClient(bucket(60, 1), { overflow: [{ stale: { maxAge: '1h' } }, 'reject'] })),
      keys: { ...keys, b: { client: 'bravo' } },
      handler: () => ({ status: 500 }),
    })
    await ask(app.url, '/', { key: 'a' })
    const refused = await ask(app.url, '/', { key: 'a' })
    expect([refused.status, refused.headers['cache-control']]).toEqual([429, 'no-store'])
    // Neither the failure nor the refusal was kept.
    expect((await ask(app.url, '/', { key: 'a' })).status).toBe(429)
    expect((await ask(app.url, '/', { key: 'b' })).status).toBe(500)
    await pass(1_000)
    expect((await ask(app.url, '/', { key: 'a' })).status).toBe(500)
  })

  test('acceptance 128: what a caller exceeded is 429, what the service lacks is 503', async () => {
    ownTime()
    let leave = (): void => {}
    const after = new Promise<void>((resolve) => (leave = resolve))
    const app = await start(kind, {
      policies: documentOf({
        limiter: { match: { routes: ['GET /limiter'] }, per: 'client', rule: bucket(60, 1) },
        quota: {
          match: { routes: ['GET /quota'] },
          per: 'client',
          rule: { algorithm: 'quota', limit: 1, period: 'day' },
        },
        flight: { match: { routes: ['GET /flight'] }, per: 'client', rule: { algorithm: 'concurrency', limit: 1 } },
        all: { match: { routes: ['GET /all'] }, per: 'service', rule: bucket(60, 1) },
      }),
      keys,
      handler: ({ path }) => (path === '/flight' ? { after } : {}),
    })
    const held = ask(app.url, '/flight', { key: 'a' })
    await until(() => app.calls.length === 1)
    const statuses: number[] = []
    for (const path of ['/limiter', '/quota', '/all']) await ask(app.url, path, { key: 'a' })
    for (const path of ['/limiter', '/quota', '/flight', '/all']) {
      statuses.push((await ask(app.url, path, { key: 'a' })).status)
    }
    leave()
    expect([statuses, (await held).status]).toEqual([[429, 429, 429, 503], 200])
  })

  test('acceptance 129, acceptance 130: the answer explains, says when, and names an action, in the caller’s language', async () => {
    ownTime()
    const advice = { batch: 'POST /v1/lotes/importar' }
    const app = await start(kind, { policies: documentOf(perClient(bucket(60, 1), { advice })), keys, random: () => 0 })
    await ask(app.url, '/', { key: 'a' })
    const english = await ask(app.url, '/', { key: 'a' })
    expect(english.headers['content-type']).toMatch(/^application\/problem\+json/)
    expect(english.json).toMatchObject({ status: 429, limit: 60, windowSeconds: 60, retryAfterSeconds: 2, advice })
    expect(english.json['detail']).toBe(
      'The limit is 60 per minute, bursts of up to 1. Try again in 2 s, or use batch: POST /v1/lotes/importar.',
    )
    const portuguese = await ask(app.url, '/', { key: 'a', headers: { 'accept-language': 'pt-BR, en;q=0.5' } })
    expect(portuguese.headers['content-language']).toBe('pt')
    expect(portuguese.json['detail']).toContain('60 por minuto, com rajadas de até 1')
    expect(portuguese.json['detail']).toContain('POST /v1/lotes/importar')
  })

  test('acceptance 131: a body of one’s own', async () => {
    ownTime()
    const app = await start(kind, {
      policies: documentOf(perClient(bucket(60, 1))),
      keys,
      answers: { body: () => ({ error: 'rate limit exceeded' }) },
    })
    await ask(app.url, '/', { key: 'a' })
    const { status, text, headers } = await ask(app.url, '/', { key: 'a' })
    expect([status, text.trim()]).toEqual([429, '{"error":"rate limit exceeded"}'])
    expect(headers['content-type']).toMatch(/^application\/json/)
  })

  test('acceptance 204: what is left of a quota stands beside the limit of the moment', async () => {
    ownTime()
    const app = await start(kind, {
      policies: documentOf({
        ...perClient(bucket(60, 10)),
        daily: {
          per: 'client',
          rule: { algorithm: 'quota', limit: 1_000, period: 'day', timeZone: 'America/Sao_Paulo' },
        },
      }),
      keys,
    })
    await ask(app.url, '/', { key: 'a' })
    const { headers } = await ask(app.url, '/', { key: 'a' })
    // The day of São Paulo ends at 3:00 UTC, 15 hours from here.
    expect(headers['ratelimit']).toBe('"per-client";r=8;t=10, "daily";r=998;t=54000')
    expect(headers['ratelimit-policy']).toBe('"per-client";q=10;w=10, "daily";q=1000;w=86400')
  })

  test('acceptance 209: a caller who leaves gives its place back at once, also where the handler fails', async () => {
    ownTime()
    let leave = (): void => {}
    const after = new Promise<void>((resolve) => (leave = resolve))
    const app = await start(kind, {
      policies: documentOf({ flight: { per: 'service', rule: { algorithm: 'concurrency', limit: 1 } } }),
      handler: ({ path }) => (path === '/slow' ? { after } : { status: 500 }),
    })
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n')
    await until(() => app.calls.length === 1, 'the request')
    expect((await ask(app.url, '/')).status).toBe(503)
    socket.destroy()
    let status = 503
    for (let tries = 0; status === 503 && tries < 200; tries++) {
      await rest(5)
      ;({ status } = await ask(app.url, '/'))
    }
    expect(status).toBe(500)
    expect((await ask(app.url, '/')).status).toBe(500)
    leave()
  })
})
