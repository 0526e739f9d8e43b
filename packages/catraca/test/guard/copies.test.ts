import { createGuard, type GuardOptions, memoryCache } from 'catraca/http'
import type { PolicyEntry } from 'catraca/policy'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Asked, identityOf, request } from './requests.ts'

const t0 = Date.UTC(2026, 9, 17, 12)
const text = new TextEncoder()
const rule = { algorithm: 'token-bucket', limit: 1, window: '1h', burst: 1 }
/** Everybody together, so that the second request is refused whoever sends it. */
const policies: Record<string, PolicyEntry> = {
  all: { per: 'service', rule, overflow: [{ stale: { maxAge: '1h' } }] },
}

function guardOf(options: Partial<GuardOptions<Asked>> = {}) {
  return createGuard<Asked>({ policies: { version: 1, policies }, identify: identityOf, ...options })
}

/** How a second request is answered after a first one whose answer came with some fields. */
async function second(
  first: Asked,
  next: Asked,
  fields: [string, string][] = [],
  options: Partial<GuardOptions<Asked>> = {},
): Promise<string> {
  const guard = guardOf(options)
  const passed = await guard.ask(request({ ...first, now: t0 }))
  expect(passed.answer).toBe('pass')
  passed.keep?.({ status: 200, fields, body: text.encode('of the first') })
  return (await guard.ask(request({ ...next, now: t0 + 1 }))).answer
}

const identity = { client: 'acme' }

describe('a copy is given to nobody else', () => {
  test('than who shows the same credential, whoever the guard takes it for', async () => {
    const with_ = (authorization: string): Asked => ({ identity, headers: { 'x-api-key': 'k', authorization } })
    expect(await second(with_('Bearer ana'), with_('Bearer ana'))).toBe('stale')
    expect(await second(with_('Bearer ana'), with_('Bearer bob'))).toBe('reject')
    expect(await second(with_('Bearer ana'), { identity, headers: { 'x-api-key': 'k' } })).toBe('reject')
  })

  test('nor is one of a credential in a place of its own', async () => {
    const credential = ({ headers }: Asked): string | undefined => headers?.['x-session']
    const of = (session: string): Asked => ({ headers: { 'x-session': session } })
    expect(await second(of('ana'), of('bob'), [], { credential })).toBe('reject')
    expect(await second(of('ana'), {}, [], { credential })).toBe('reject')
    expect(await second({}, {}, [], { credential })).toBe('stale')
    const known = (session: string): Asked => ({ ...of(session), identity })
    expect(await second(known('ana'), known('bob'), [], { credential })).toBe('reject')
  })

  test('nor one of nobody to who shows a credential before anybody looked at it', async () => {
    const guard = createGuard<Asked>({
      policies: { version: 1, policies: { net: { ...(policies['all'] as PolicyEntry), per: 'address' } } },
      identify: identityOf,
      credential: ({ headers }) => {
        if (headers?.['x-session'] === 'broken') throw new Error('broken')
        return headers?.['x-session']
      },
    })
    const first = await guard.ask(request({ now: t0 }))
    first.keep?.({ status: 200, fields: [], body: text.encode('of nobody') })
    const answers: string[] = []
    for (const session of ['ana', 'broken']) {
      answers.push((await guard.ask(request({ headers: { 'x-session': session }, now: t0 }))).answer)
    }
    expect([...answers, (await guard.ask(request({ now: t0 }))).answer]).toEqual(['reject', 'reject', 'stale'])
  })

  test('than a caller of the same plan, host, target and form', async () => {
    const asked: Asked = { identity: { ...identity, plan: 'pro' }, headers: { host: 'a.test' }, target: '/e?a=1&b=2' }
    expect(await second(asked, asked)).toBe('stale')
    const others: Asked[] = [
      { ...asked, identity },
      { ...asked, headers: { host: 'b.test' } },
      { ...asked, target: '/e?b=2&a=1' },
      { ...asked, target: '/e?a=1&b=2&' },
      { ...asked, target: 'http://c.test/e?a=1&b=2' },
      { ...asked, headers: { ...asked.headers, 'accept-language': 'pt' } },
    ]
    for (const other of others) expect(await second(asked, other), JSON.stringify(other)).toBe('reject')
  })

  test.each([
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-forwarded-prefix',
    'x-original-url',
    'x-rewrite-url',
    'x-http-method-override',
  ])('where it may have been made from %s', async (name) => {
    expect(await second({ headers: { [name]: 'evil.test' } }, {})).toBe('reject')
    expect(await second({ headers: { [name]: 'a' } }, { headers: { [name]: 'a' } })).toBe('stale')
  })

  test('and none is made of a question that stands in a body', async () => {
    for (const headers of [{ 'content-length': '7' }, { 'transfer-encoding': 'chunked' }]) {
      expect(await second({ headers }, { headers })).toBe('reject')
    }
    expect(await second({ headers: { 'content-length': '0' } }, {})).toBe('stale')
  })

  test('keys of different requests never meet', () => {
    const part = fc.oneof(fc.constantFrom('', 'a', '","', '[', '\\', '"'), fc.string({ maxLength: 4 }))
    const asked = fc.record({
      client: fc.option(part, { nil: undefined }),
      user: fc.option(part, { nil: undefined }),
      host: part,
      target: part,
      accept: part,
      language: part,
    })
    const keys = new Map<string, string>()
    const cache = {
      maxBodyBytes: 100,
      get: () => undefined,
      set: (key: string) => {
        last = key
      },
    }
    let last = ''
    fc.assert(
      fc.property(asked, ({ client, user, host, target, accept, language }) => {
        const guard = guardOf({ cache })
        const headers = { host, accept, 'accept-language': language }
        const who = { ...(client !== undefined && { client }), ...(user !== undefined && { user }) }
        const known = client === undefined && user === undefined ? {} : { identity: who }
        const verdict = guard.ask(request({ target: `/${target}`, headers, now: t0, ...known }))
        if (verdict instanceof Promise) throw new Error('it had to wait')
        verdict.keep?.({ status: 200, fields: [], body: text.encode('x') })
        const said = JSON.stringify([client, user, host, target, accept, language])
        expect(keys.get(last) ?? said).toBe(said)
        keys.set(last, said)
      }),
      { numRuns: 300 },
    )
  })
})

describe('no copy is made', () => {
  test.each<[string, Asked, string]>([
    ['no-cache', { identity }, 'reject'],
    ['no-cache="set-cookie"', { identity }, 'reject'],
    ['No-Store', { identity }, 'reject'],
    ['max-age=0, private', {}, 'reject'],
    ['private="x-user"', {}, 'reject'],
    // The copy of one caller is private to it.
    ['private', { identity }, 'stale'],
    ['public, max-age=5', {}, 'stale'],
  ])('against Cache-Control: %s', async (value, asked, answer) => {
    expect(await second(asked, asked, [['Cache-Control', value]])).toBe(answer)
  })

  test.each<[string, PolicyEntry]>([
    ['marked', { per: 'service', rule, overflow: [{ stale: { maxAge: '1h' } }, 'mark'] }],
    [
      'degraded',
      {
        per: 'service',
        cost: 5,
        rule: { ...rule, burst: 9 },
        overflow: [{ stale: { maxAge: '1h' } }, { degrade: { cost: 1 } }],
      },
    ],
  ])('of an answer that is %s', async (_, policy) => {
    const guard = createGuard<Asked>({ policies: { version: 1, policies: { policy } } })
    await guard.ask(request({ now: t0 }))
    const verdict = await guard.ask(request({ now: t0 }))
    expect([verdict.allowed, verdict.told !== undefined, verdict.keep]).toEqual([true, true, undefined])
  })
})

test.each<[string, unknown]>([
  ['null', null],
  ['a promise of null', Promise.resolve(null)],
  ['a promise of half an answer', Promise.resolve({ madeAtMs: t0 })],
  ['half an answer', { madeAtMs: t0 }],
  ['a text', 'x'],
])('a cache that gives %s has no copy', async (_, found) => {
  const cache = { maxBodyBytes: 10, get: () => found as never, set: () => {} }
  expect(await second({}, {}, [], { cache })).toBe('reject')
})

test('a flood of callers with long names and long headers stays within the bytes of the cache', async () => {
  const cache = memoryCache({ maxBytes: 65_536 })
  const guard = guardOf({ cache })
  guard.replace({ version: 1, policies: { each: { ...policies['all'], per: 'client' } as PolicyEntry } })
  for (let index = 0; index < 300; index++) {
    const headers = { accept: 'x'.repeat(4_000), host: `${index}` }
    const asked = { identity: { client: `${index}${'c'.repeat(500)}` }, headers, now: t0 }
    const verdict = await guard.ask(request(asked))
    verdict.keep?.({ status: 200, fields: [['x-long', 'v'.repeat(2_000)]], body: new Uint8Array(100) })
    expect(cache.bytes).toBeLessThanOrEqual(65_536)
  }
  expect(cache.size).toBeGreaterThan(0)
})
