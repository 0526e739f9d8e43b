import { createGuard, type Identity } from 'catraca/http'
import { describe, expect, test } from 'vitest'
import { changed } from './documents.ts'
import { type Asked, ask, identityOf, passing, request } from './requests.ts'

const t0 = Date.UTC(2026, 9, 17, 12)

describe('keys of several parts', () => {
  const guardOf = () =>
    createGuard<Asked>({
      policies: {
        version: 1,
        policies: {
          holds: { per: ['user', 'body:event'], rule: { algorithm: 'sliding-log', limit: 1, window: '1h' } },
        },
      },
      identify: identityOf,
    })

  test('never meet, however the values are cut', () => {
    const guard = guardOf()
    const pairs: [string | undefined, unknown][] = [
      ['1', '23'],
      ['12', '3'],
      ['', '123'],
      ['123', ''],
      ['1:2', '3'],
      ['1', ':23'],
      ['-', '-'],
      ['-1', '-'],
    ]
    for (const [user, event] of pairs) {
      const asked = { ...(user !== undefined && { identity: { user } }), body: { event }, now: t0 }
      expect(ask(guard, asked).allowed, `${user} and ${String(event)}`).toBe(true)
      expect(ask(guard, asked).allowed).toBe(false)
    }
  })

  test('a value that is missing, empty, null, a list or an object is one value, and none is skipped', () => {
    const guard = guardOf()
    const identity = { user: 'u' }
    expect(ask(guard, { identity, body: {}, now: t0 }).allowed).toBe(true)
    for (const body of [
      undefined,
      null,
      'text',
      [1],
      {},
      { event: '' },
      { event: null },
      { event: [] },
      { event: {} },
    ]) {
      expect(ask(guard, { identity, body, now: t0 }).allowed).toBe(false)
    }
    // A member that comes with every object is none of the body's.
    const own = createGuard<Asked>({
      policies: {
        version: 1,
        policies: { one: { per: 'body:constructor', rule: { algorithm: 'sliding-log', limit: 1, window: '1h' } } },
      },
    })
    expect([ask(own, { body: {}, now: t0 }).decision?.key, ask(own, { body: { event: 1 }, now: t0 }).allowed]).toEqual([
      '\u0000missing',
      false,
    ])
  })

  test('a value cannot pose as a missing one', () => {
    const guard = createGuard<Asked>({
      policies: {
        version: 1,
        policies: { one: { per: 'user', rule: { algorithm: 'sliding-log', limit: 1, window: '1h' } } },
      },
      identify: identityOf,
    })
    for (const user of ['missing', '\u0000missing', '\u0000\u0000missing']) {
      expect(ask(guard, { identity: { user }, now: t0 }).allowed).toBe(true)
    }
    expect(ask(guard, { now: t0 }).allowed).toBe(true)
  })

  test('a header is kept as a hash', () => {
    const guard = createGuard<Asked>({
      policies: {
        version: 1,
        policies: { one: { per: 'header:X-Token', rule: { algorithm: 'sliding-log', limit: 1, window: '1h' } } },
      },
    })
    const verdict = ask(guard, { headers: { 'x-token': 'secret' }, now: t0 })
    expect(verdict.decision?.key).toMatch(/^[0-9a-f]{64}$/)
    expect(JSON.stringify(verdict)).not.toContain('secret')
    expect(ask(guard, { headers: { 'x-token': 'other' }, now: t0 }).allowed).toBe(true)
    expect(ask(guard, { headers: { 'x-token': 'secret' }, now: t0 }).allowed).toBe(false)
  })
})

describe('plans', () => {
  test('a client without a plan, or with one that is not declared, has the numbers of the default plan', () => {
    const guard = createGuard<Asked>({
      policies: changed(
        {
          'address-net': undefined,
          'in-flight': undefined,
          'per-client': {
            match: { identity: 'client' },
            per: 'client',
            rule: { algorithm: 'token-bucket', limit: 6_000, window: '1m', burst: 900 },
            plans: { free: { limit: 60, burst: 10 } },
          },
        },
        { plans: { names: ['free', 'enterprise'], default: 'free' } },
      ),
      identify: identityOf,
    })
    const of = (identity: Identity): number => passing(guard, 1_000, { identity, now: t0 })
    expect(of({ client: 'a' })).toBe(10)
    expect(of({ client: 'b', plan: 'gold' })).toBe(10)
    expect(of({ client: 'c', plan: 'constructor' })).toBe(10)
    expect(of({ client: 'd', plan: 'enterprise' })).toBe(900)
  })
})

describe('a policy that stands in for the limit of anonymous callers', () => {
  const guard = () =>
    createGuard<Asked>({
      policies: changed({
        visitors: {
          match: { identity: 'anonymous', routes: ['GET /events/**'] },
          per: 'address',
          insteadOf: 'anonymous',
          rule: { algorithm: 'token-bucket', limit: 600, window: '1m', burst: 40 },
        },
      }),
      identify: identityOf,
    })

  test('does so for callers that show no credential', () => {
    expect(passing(guard(), 100, { target: '/events', now: t0 })).toBe(40)
  })

  test('does not for a credential that is not valid', () => {
    const tried = guard()
    const forged = (count: number) => ({ target: '/events', headers: { authorization: `Bearer ${count}` }, now: t0 })
    const passed = Array.from({ length: 20 }, (_, count) => ask(tried, forged(count)).allowed).filter(Boolean)
    expect(passed).toHaveLength(5)
    // Nor does it open the limit again for the next.
    expect(tried.ask(request(forged(99)))).toMatchObject({ allowed: false })
  })
})
