import { createHmac } from 'node:crypto'
import { createGuard, type GuardOptions } from 'catraca/http'
import type { PolicyDocument } from 'catraca/policy'
import { describe, expect, test } from 'vitest'
import { hmacSha256, sha256 } from '../../src/core/sha256.ts'
import { type Asked, ask, identityOf, passing } from './requests.ts'

const t0 = Date.UTC(2026, 9, 17, 12)
const rule = { algorithm: 'sliding-log', limit: 1, window: '1h' }

function guardOf(
  per: string | string[],
  more: { document?: Partial<PolicyDocument>; routes?: string[]; options?: Partial<GuardOptions<Asked>> } = {},
) {
  const match = more.routes === undefined ? {} : { match: { routes: more.routes } }
  const policies: PolicyDocument = { version: 1, policies: { one: { per, rule, ...match } }, ...more.document }
  return createGuard<Asked>({ policies, identify: identityOf, ...more.options })
}

/** Which of some requests pass where each key has one. */
function pass(guard: ReturnType<typeof guardOf>, asked: Asked[]): boolean[] {
  return asked.map((one) => ask(guard, { now: t0, ...one }).allowed)
}

test('cookies, query parameters, path parameters and routes make keys', () => {
  const cookies = ['session=a', 'other=1; session=b', 'session="a"', 'session=', 'x=session', 'session=a; session=c']
  expect(
    pass(
      guardOf('cookie:session'),
      cookies.map((cookie) => ({ headers: { cookie } })),
    ),
  ).toEqual([
    true,
    true,
    false,
    // Empty and missing are one.
    true,
    false,
    false,
  ])
  const targets = [
    '/e?city=recife',
    '/e?city=olinda',
    '/e?x=1&city=recife#a',
    '/e?city=a&city=b',
    '/e?city=a%2Cb',
    '/e',
  ]
  expect(
    pass(
      guardOf('query:city'),
      targets.map((target) => ({ target })),
    ),
    // Several values of one name are none, whichever the server takes.
  ).toEqual([true, true, false, true, true, false])
  const routes = ['GET /v1/reports/:id', 'GET /v1/reports/:id/export']
  const paths = ['/v1/reports/7', '/V1/Reports/7/', '/v1/reports/8', '/v1/reports/7/export', '/v1/reports/%37']
  expect(
    pass(
      guardOf('path:id', { routes }),
      paths.map((target) => ({ target })),
    ),
  ).toEqual([true, false, true, false, false])
  expect(
    pass(
      guardOf('route', { routes }),
      paths.map((target) => ({ target })),
    ),
  ).toEqual([true, false, false, true, false])
})

test('whoever spells a key in several ways, or adds to it, has no more of it', () => {
  const spellings = (guard: ReturnType<typeof guardOf>, targets: string[]): number =>
    pass(
      guard,
      targets.map((target) => ({ target })),
    ).filter(Boolean).length
  const many = Array.from({ length: 30 }, (_, index) => index)
  const routes = ['GET /items/:id', 'GET /users/:id']
  // One for the item itself, and one for all whose path servers do not agree on.
  const items = ['/items/7', '/ITEMS/7/', '/items/%37', '//items//7', '/./items/7', '/items/7?x=1']
  const doubtful = many.flatMap((n) => [
    `/items/7;x=${n}`,
    `/items/${n}/../7`,
    `/items/${n}%2f..%2f7`,
    `/users/${n}/..%2f..%2fitems/7`,
    `/items/7#${n}?${n}`,
  ])
  expect(spellings(guardOf('path:id', { routes }), items)).toBe(1)
  expect(spellings(guardOf('path:id', { routes }), [...items, ...doubtful])).toBeLessThanOrEqual(2)
  expect(spellings(guardOf('route', { routes }), ['/items/7', '/users/7', ...doubtful])).toBeLessThanOrEqual(3)
  const queries = ['/e?id=7', '/e?id=%37', '/e?i%64=7', '/e?id=7&id=7', '/e?x=1&id=7#y', '/e?&&id=7']
  expect(spellings(guardOf('query:id'), queries)).toBe(1)
  expect(spellings(guardOf('query:id'), [...queries, ...many.map((n) => `/e?id=7&id=a${n}`), '/e', '/e?id'])).toBe(2)
  // What only looks like the same name is none.
  expect(spellings(guardOf('query:id'), ['/e?id[]=1', '/e?ID=2', '/e?id;=3', '/e?__proto__=4', '/e?%zz=5'])).toBe(1)
})

test('plans make keys, declared ones, and none where there are none', () => {
  expect(() => guardOf(['client', 'plan'])).toThrow('policies.one.per[1] is "plan"; allowed: plan where plans.names')
  const document = { plans: { names: ['free', 'pro'], default: 'free' } }
  const guard = guardOf(['client', 'plan'], { document })
  const of = (plan?: string): Asked => ({ identity: { client: 'a', ...(plan !== undefined && { plan }) } })
  expect(pass(guard, [of('free'), of('pro'), of('gold'), of(), {}, {}])).toEqual([
    true,
    true,
    false,
    false,
    true,
    false,
  ])
})

describe('secrets', () => {
  const hashSecret = 'a secret of the fleet'

  test('a key of credentials needs a secret, and never shows one', () => {
    const missing = () => guardOf('api-key')
    expect(missing).toThrow('policies.one.per is "api-key"; allowed: api-key where the document has a hashSecret')
    expect(() => guardOf('api-key', { document: { hashSecret: 'short' } })).toThrow('hashSecret is not shown here')
    const guard = guardOf('api-key', { document: { hashSecret } })
    const headers = (key: string): Asked => ({ headers: { 'x-api-key': key }, identity: { client: 'a' } })
    expect(pass(guard, [headers('one'), headers('two'), headers('one'), { identity: { client: 'a' } }])).toEqual([
      true,
      true,
      false,
      true,
    ])
    const attributes = { client: 'a', 'api-key': 'bairro-1-secret' }
    const explained = JSON.stringify(guard.explain({ method: 'GET', path: '/', attributes, now: t0 }))
    expect(explained).toContain(hmacSha256(hashSecret, 'bairro-1-secret'))
    expect(explained).not.toContain('bairro-1-secret')
  })

  test('the credential that counts is the one the application says', () => {
    const options = { credential: ({ headers = {} }: Asked) => headers['x-token'] }
    const guard = guardOf('api-key', { document: { hashSecret }, options })
    const of = (token: string): Asked => ({
      headers: { 'x-token': token, 'x-api-key': 'same' },
      identity: { client: 'a' },
    })
    expect(pass(guard, [of('one'), of('two'), of('two')])).toEqual([true, true, false])
  })

  test('headers, cookies and query parameters are hashed with it where there is one', () => {
    for (const per of ['header:x-user', 'cookie:x-user', 'query:x-user']) {
      const attributes = { [per]: 'ana' }
      const told = (document: Partial<PolicyDocument>) =>
        guardOf(per, { document }).explain({ method: 'GET', path: '/', attributes, now: t0 })[0]?.key[0]?.value
      expect(told({})).toBe(sha256('ana'))
      expect(told({ hashSecret })).toBe(hmacSha256(hashSecret, 'ana'))
    }
  })

  test('the hash is HMAC-SHA-256 with the hash of the secret as its key', () => {
    const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16()
    for (const [secret, text] of [
      ['a secret of the fleet', 'ana'],
      ['x'.repeat(100), ''],
      ['ção é 🎫 ção é 🎫', 'y'.repeat(200)],
    ] as const) {
      const key = Buffer.from(sha256(secret), 'hex')
      expect(hmacSha256(secret, text)).toBe(createHmac('sha256', key).update(utf16(text)).digest('hex'))
    }
  })
})

describe('addresses', () => {
  test('a wider IPv6 network is a backstop for those who own many', () => {
    const document: PolicyDocument = {
      version: 1,
      policies: {
        one: { per: 'address', rule: { ...rule, limit: 2 } },
        wide: { per: 'address/48', rule: { ...rule, limit: 5 } },
      },
    }
    const guard = createGuard<Asked>({ policies: document })
    const peers = Array.from({ length: 8 }, (_, index) => `2001:db8:1:${index}::1`)
    expect(peers.filter((peer) => ask(guard, { peer, now: t0 }).allowed).length).toBe(5)
    expect(ask(guard, { peer: '2001:db8:2::1', now: t0 }).allowed).toBe(true)
    // IPv4 counts by itself in both.
    expect(passing(guard, 3, { peer: '192.0.2.1', now: t0 })).toBe(2)
    expect(passing(guard, 3, { peer: '192.0.2.2', now: t0 })).toBe(2)
    for (const per of ['address/15', 'address/129', 'address/x', 'address/']) {
      expect(() => guardOf(per)).toThrow(`policies.one.per is "${per}"`)
    }
  })

  test('NAT64 is taken off where the document says its prefix', () => {
    const peers = ['64:ff9b::c000:201', '192.0.2.1', '64:ff9b::c000:202', '64:ff9b:1::c000:201', '2001:db8::c000:201']
    const asked = peers.map((peer) => ({ peer }))
    expect(pass(guardOf('address'), asked)).toEqual([true, true, false, true, true])
    const document = { trust: { proxies: 0, nat64: ['64:ff9b::/96', '64:ff9b:1::/96'] } }
    expect(pass(guardOf('address', { document }), asked)).toEqual([true, false, true, false, true])
    const forwarded = { trust: { proxies: 1, nat64: ['64:ff9b::/96'] } }
    const headers = (chain: string): Asked => ({ peer: '10.0.0.1', headers: { 'x-forwarded-for': chain } })
    expect(
      pass(guardOf('address', { document: forwarded }), [headers('64:ff9b::c000:201'), headers('192.0.2.1')]),
    ).toEqual([true, false])
    expect(() => guardOf('address', { document: { trust: { nat64: ['64:ff9b::1/96'] } } })).toThrow(
      'trust.nat64[0] is "64:ff9b::1/96"; allowed: an IPv6 prefix of 96 bits',
    )
  })

  test('a serverless caller with 60 addresses has one budget, a thousand people behind one address have theirs', () => {
    const guard = guardOf('client')
    const from = Array.from({ length: 60 }, (_, index) => ({
      peer: `192.0.2.${index}`,
      identity: { client: 'lambda' },
    }))
    expect(pass(guard, from).filter(Boolean).length).toBe(1)
    const people = Array.from({ length: 1_000 }, (_, index) => ({ identity: { client: `c${index}` } }))
    expect(pass(guard, people).filter(Boolean).length).toBe(1_000)
  })
})
