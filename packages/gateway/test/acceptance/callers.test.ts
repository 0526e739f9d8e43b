import type { PolicyDocument } from 'catraca/policy'
import { describe, expect, test } from 'vitest'
import { ask, askAll, kinds, ownTime, start, statusesOf } from './servers.ts'

const bucket = (limit: number, burst: number, window = '1m') => ({ algorithm: 'token-bucket', limit, window, burst })
const clients = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, { client: `client-${index}` }]))

const documents: PolicyDocument = {
  version: 1,
  trust: { proxies: 0 },
  plans: { names: ['free', 'pro'], default: 'free' },
  policies: {
    anonymous: { match: { identity: 'anonymous' }, per: 'address', rule: bucket(20, 5) },
    'per-client': {
      match: { identity: 'client' },
      per: 'client',
      rule: bucket(60, 10),
      plans: { pro: { limit: 600, burst: 90 } },
    },
    expensive: {
      match: {
        identity: 'client',
        routes: ['GET /v1/relatorios/:id/exportar', 'POST /v1/buscas/avancada', 'POST /v1/lotes/importar'],
      },
      per: 'client',
      insteadOf: 'per-client',
      cost: 25,
      rule: bucket(250, 50),
    },
  },
}

describe.each(kinds)('who is asking, on %s', (kind) => {
  test('acceptance 93: of 1000 forged tokens five are verified, the rest is refused, and no client comes of them', async () => {
    ownTime()
    const app = await start(kind, { policies: documents, keys: { real: { client: 'acme' } } })
    expect((await ask(app.url, '/', { key: 'real' })).status).toBe(200)
    const heard = []
    for (let block = 0; block < 10; block++) {
      const asked = Array.from({ length: 100 }, (_, index) => ask(app.url, '/', { key: `forged-${block}-${index}` }))
      heard.push(...(await Promise.all(asked)))
    }
    expect(statusesOf(heard)).toEqual({ 401: 5, 429: 995 })
    const { policies, keys } = app.counts()
    expect(policies['anonymous']).toMatchObject({ admitted: 5, refused: 995 })
    expect(policies['per-client']).toMatchObject({ admitted: 1, refused: 0 })
    expect(keys).toEqual({ 'id-real': { passed: 1, refused: 0 } })
    // A client who was seen before is not locked out behind the same address.
    expect((await ask(app.url, '/', { key: 'real' })).status).toBe(200)
  })

  test('acceptance 94: strangers by address, clients by name, dear routes apart, with plan and scope', async () => {
    ownTime()
    const app = await start(kind, { policies: documents, keys: { a: { client: 'acme', plan: 'pro' } } })
    const told = async (key?: string) => {
      const { json } = await ask(app.url, '/rate-limit', key === undefined ? {} : { key })
      return (json['policies'] as Record<string, unknown>[]).map(({ policy, plan, scope, used }) => [
        policy,
        plan,
        scope,
        used,
      ])
    }
    await ask(app.url, '/')
    expect(await told()).toEqual([['anonymous', undefined, 'all routes', 1]])
    await ask(app.url, '/v1/eventos', { key: 'a' })
    await ask(app.url, '/v1/relatorios/7/exportar', { key: 'a' })
    expect(await told('a')).toEqual([
      ['per-client', 'pro', 'all routes', 1],
      ['expensive', 'pro', 'its routes', 25],
    ])
  })

  test('acceptance 95: five keys of a client share one budget, and are told apart only in the counts', async () => {
    ownTime()
    const names = ['k1', 'k2', 'k3', 'k4', 'k5']
    const app = await start(kind, {
      policies: documents,
      keys: Object.fromEntries(names.map((name) => [name, { client: 'acme', plan: 'pro' }])),
    })
    const heard = []
    for (let index = 0; index < 100; index++) heard.push(await ask(app.url, '/', { key: names[index % 5] as string }))
    expect(statusesOf(heard)).toEqual({ 200: 90, 429: 10 })
    const { keys } = app.counts()
    expect(keys).toEqual(Object.fromEntries(names.map((name) => [`id-${name}`, { passed: 18, refused: 2 }])))
  })

  test('acceptance 96: draining the dear routes leaves the others whole, and back', async () => {
    ownTime()
    const app = await start(kind, { policies: documents, keys: { a: { client: 'acme' }, b: { client: 'bravo' } } })
    const dear = [
      ['GET', '/v1/relatorios/7/exportar'],
      ['POST', '/v1/buscas/avancada'],
      ['POST', '/v1/lotes/importar'],
    ] as const
    const statuses = []
    for (const [method, path] of dear) {
      statuses.push((await ask(app.url, path, { method, key: 'a', ...(method === 'POST' && { body: {} }) })).status)
    }
    expect(statuses).toEqual([200, 200, 429])
    // A GET of the path that is dear as a POST is none of them.
    const normal = await ask(app.url, '/v1/lotes/importar', { key: 'a' })
    expect([normal.status, normal.headers['ratelimit']]).toEqual([200, '"per-client";r=9;t=10'])
    await askAll(app.url, '/', 10, { key: 'b' })
    expect((await ask(app.url, '/', { key: 'b' })).status).toBe(429)
    expect((await ask(app.url, '/v1/relatorios/7/exportar', { key: 'b' })).headers['ratelimit']).toContain(
      '"expensive";r=25',
    )
  })

  test('acceptance 99: a balancer that is not counted makes all callers one, and is told', async () => {
    ownTime()
    const policies: PolicyDocument = {
      version: 1,
      trust: { proxies: 1 },
      policies: { net: { per: 'address', rule: bucket(1_000_000, 1_000_000) } },
    }
    const app = await start(kind, { policies })
    for (let block = 0; block < 10; block++) {
      const asked = Array.from({ length: 100 }, (_, index) =>
        ask(app.url, '/', { headers: { 'x-forwarded-for': `198.51.100.${(block * 100 + index) % 40}, 203.0.113.9` } }),
      )
      await Promise.all(asked)
    }
    expect(app.warnings).toEqual([expect.stringContaining('1000 of 1000 requests were counted as "203.0.113.9"')])
    const left = (await ask(app.url, '/', { headers: { 'x-forwarded-for': '192.0.2.1, 203.0.113.9' } })).headers
    expect(left['ratelimit']).toContain('r=998999')
  })

  test('acceptance 102: 1000 people behind one address pass by name; by address five do', async () => {
    ownTime()
    const keys = clients(1_000)
    const named = await start(kind, { policies: documents, keys })
    const byAddress = await start(kind, {
      policies: { version: 1, policies: { all: { per: 'address', rule: bucket(20, 5) } } },
      keys,
    })
    for (const [app, expected] of [
      [named, { 200: 1_000 }],
      [byAddress, { 200: 5, 429: 995 }],
    ] as const) {
      const heard = []
      for (let block = 0; block < 10; block++) {
        const asked = Array.from({ length: 100 }, (_, index) =>
          ask(app.url, '/', { key: `key-${block * 100 + index}` }),
        )
        heard.push(...(await Promise.all(asked)))
      }
      expect(statusesOf(heard)).toEqual(expected)
    }
  })

  test('acceptance 103: a loose net, a tight limit, and the least for logins, all asked about one request', async () => {
    ownTime()
    const policies: PolicyDocument = {
      version: 1,
      policies: {
        net: { per: 'address', rule: bucket(300, 60) },
        anonymous: { match: { identity: 'anonymous' }, per: 'address', rule: bucket(20, 5) },
        login: {
          match: { routes: ['POST /login', 'POST /codes', 'POST /password-recovery'] },
          per: 'address',
          rule: { algorithm: 'sliding-counter', limit: 2, window: '15m' },
        },
      },
    }
    const app = await start(kind, { policies })
    const first = await ask(app.url, '/login', { method: 'POST', body: {} })
    expect(first.headers['ratelimit-policy']).toBe('"login";q=2;w=900, "anonymous";q=5;w=15, "net";q=60;w=12')
    const statuses = []
    for (const path of ['/codes', '/password-recovery', '/login']) {
      statuses.push((await ask(app.url, path, { method: 'POST', body: {} })).status)
    }
    expect(statuses).toEqual([200, 429, 429])
    expect((await ask(app.url, '/')).status).toBe(200)
  })

  test('acceptance 107: a login has at most a tenth of what is read', async () => {
    ownTime()
    const policies: PolicyDocument = {
      version: 1,
      policies: {
        read: { match: { routes: ['GET /**'] }, per: 'address', rule: bucket(600, 120) },
        login: {
          match: { routes: ['POST /login', 'POST /sms'] },
          per: 'address',
          rule: { algorithm: 'sliding-counter', limit: 5, window: '15m' },
        },
      },
    }
    const app = await start(kind, { policies })
    const reads = await askAll(app.url, '/events', 125)
    const logins = await askAll(app.url, '/login', 10, { method: 'POST', body: {} })
    const messages = await askAll(app.url, '/sms', 1, { method: 'POST', body: {} })
    expect([statusesOf(reads), statusesOf(logins), statusesOf(messages)]).toEqual([
      { 200: 120, 429: 5 },
      { 200: 5, 429: 5 },
      { 429: 1 },
    ])
  })

  test('acceptance 112: who shows no key is limited by address all the same', async () => {
    ownTime()
    const app = await start(kind, { policies: documents, keys: { a: { client: 'acme' } } })
    expect(statusesOf(await askAll(app.url, '/', 60))).toEqual({ 200: 5, 429: 55 })
  })
})
