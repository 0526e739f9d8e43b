import { createGuard } from 'catraca/http'
import { describe, expect, test } from 'vitest'
import { changed, designDocument } from './documents.ts'
import { type Asked, ask, identityOf, passing } from './requests.ts'

const t0 = Date.UTC(2026, 9, 17, 12)
const design = () => createGuard<Asked>({ policies: designDocument, identify: identityOf })

describe('who is counted', () => {
  test('acceptance 94: anonymous by address, a client by its name, and apart on a dear route', () => {
    const guard = design()
    const parts = (method: string, path: string, attributes: Record<string, string>) =>
      guard
        .explain({ method, path, attributes })
        .filter(({ applies, policy }) => applies && ['anonymous', 'per-client', 'expensive'].includes(policy))
        .map(({ policy, key, plan, scope }) => ({ policy, key, plan, scope }))
    expect(parts('GET', '/events', { address: '192.0.2.7' })).toEqual([
      { policy: 'anonymous', key: [{ part: 'address', value: '192.0.2.7' }], plan: undefined, scope: 'all routes' },
    ])
    expect(parts('GET', '/events', { address: '192.0.2.7', client: 'c1', plan: 'pro' })).toEqual([
      { policy: 'per-client', key: [{ part: 'client', value: 'c1' }], plan: 'pro', scope: 'all routes' },
    ])
    expect(parts('POST', '/v1/lotes/importar', { address: '192.0.2.7', client: 'c1', plan: 'pro' })).toEqual([
      { policy: 'expensive', key: [{ part: 'client', value: 'c1' }], plan: 'pro', scope: 'its routes' },
    ])
  })

  test('acceptance 95: five keys of one client share one budget, and the key stands in no key', () => {
    const guard = design()
    let passed = 0
    for (let index = 0; index < 100; index++) {
      const keyId = `key-${index % 5}`
      // Peers differ, so that only the client's budget can refuse.
      const verdict = ask(guard, { now: t0, peer: `192.0.2.${index}`, identity: { client: 'c1', keyId } })
      expect(verdict.identity?.keyId).toBe(keyId)
      if (verdict.allowed) passed++
      expect(verdict.decision?.key).toBe('c1')
    }
    expect(passed).toBe(10)
  })

  test('acceptance 96: dear routes have a budget of their own, and the cheap one stays whole', () => {
    const dear = [
      ['GET', '/v1/relatorios/17/exportar'],
      ['POST', '/v1/buscas/avancada'],
      ['POST', '/v1/lotes/importar'],
    ] as const
    const guard = design()
    const identity = { client: 'c1' }
    const policyOf = (method: string, target: string) =>
      ask(guard, { method, target, identity: { client: `other-${method}-${target}` }, now: t0 }).admitted.map(
        ({ policy }) => policy.name,
      )
    for (const [method, target] of dear) expect(policyOf(method, target)).toContain('expensive')
    expect(policyOf('GET', '/v1/buscas/avancada')).toContain('per-client')
    expect(policyOf('GET', '/v1/buscas/avancada')).not.toContain('expensive')
    // Two of 25 units each drain a burst of 50.
    expect(passing(guard, 5, { method: 'POST', target: '/v1/lotes/importar', identity, now: t0 })).toBe(2)
    expect(passing(guard, 20, { identity, now: t0 })).toBe(10)
    const back = design()
    expect(passing(back, 20, { identity, now: t0 })).toBe(10)
    expect(passing(back, 5, { method: 'POST', target: '/v1/lotes/importar', identity, now: t0 })).toBe(2)
  })

  test('acceptance 113: with a principal its name counts, without one the address, and no key is empty', () => {
    const guard = design()
    const key = (asked: Asked) => ask(guard, { ...asked, now: t0 }).decision?.key
    expect(key({ identity: { client: 'ana' } })).toBe('ana')
    expect(key({ peer: '198.51.100.4' })).toBe('198.51.100.4')
    expect(key({ identity: { client: '' } })).not.toBe('')
  })

  test('acceptance 111: ten per second with bursts of 20, 1000 per hour, four holds of an event per user', () => {
    const guard = createGuard<Asked>({
      policies: {
        version: 1,
        policies: {
          rate: { per: 'user', rule: { algorithm: 'token-bucket', limit: 10, window: '1s', burst: 20 } },
          hour: { per: 'user', rule: { algorithm: 'sliding-log', limit: 1000, window: '1h' } },
          holds: {
            match: { routes: ['POST /api/holds'] },
            per: ['user', 'body:eventId'],
            rule: { algorithm: 'sliding-log', limit: 4, window: '1h' },
          },
        },
      },
      identify: identityOf,
    })
    const hold = (eventId: unknown) =>
      ask(guard, { method: 'POST', target: '/api/holds', identity: { user: 'u1' }, body: { eventId }, now: t0 })
    for (let count = 0; count < 4; count++) expect(hold(7).allowed).toBe(true)
    const fifth = hold(7)
    expect(fifth.allowed).toBe(false)
    expect(fifth.refusing.map(({ policy }) => policy.name)).toEqual(['holds'])
    expect(hold('7').allowed).toBe(false)
    expect(hold(8).allowed).toBe(true)
    // The refused ones were given back to the earlier stage: 5 admitted of a burst of 20.
    expect(passing(guard, 40, { identity: { user: 'u1' }, now: t0 })).toBe(15)
  })

  test('acceptance 114: what one client may do does not depend on another', () => {
    const decisions = (busy: boolean) => {
      const guard = createGuard<Asked>({
        policies: changed({ 'address-net': undefined, 'in-flight': undefined }),
        identify: identityOf,
      })
      const list: boolean[] = []
      for (let second = 0; second < 60; second++) {
        const now = t0 + second * 1_000
        if (busy) passing(guard, 100, { identity: { client: 'b' }, now })
        list.push(
          ask(guard, { identity: { client: 'a' }, now }).allowed,
          ask(guard, { identity: { client: 'a' }, now }).allowed,
        )
      }
      return list
    }
    const quiet = decisions(false)
    expect(decisions(true)).toEqual(quiet)
    expect(new Set(quiet)).toEqual(new Set([true, false]))
  })

  test('acceptance 117: rates and bursts of the plans, and an unknown plan counts as free', () => {
    const rate = (attributes: Record<string, string>, policy: string) => {
      const guard = design()
      const one = guard.explain({ method: 'GET', path: '/', attributes: { address: '192.0.2.1', ...attributes } })
      const found = one.find(({ policy: name }) => name === policy)
      return [found?.bounds.atOnce, ((found?.bounds.perWindow ?? 0) - (found?.bounds.atOnce ?? 0)) / 60]
    }
    expect(rate({ client: 'x', plan: 'free' }, 'per-client')).toEqual([10, 1])
    expect(rate({ client: 'x', plan: 'pro' }, 'per-client')).toEqual([90, 10])
    expect(rate({ client: 'x', plan: 'enterprise' }, 'per-client')).toEqual([900, 100])
    expect(rate({}, 'anonymous')).toEqual([5, 1 / 3])
    expect(rate({ client: 'x', plan: 'platinum' }, 'per-client')).toEqual([10, 1])
    const guard = createGuard<Asked>({
      policies: changed({ 'address-net': undefined, 'in-flight': undefined }),
      identify: identityOf,
    })
    const seen: string[] = []
    guard.on('diagnosis', ({ code }) => seen.push(code))
    const wild = { client: 'y', plan: 'platinum' }
    expect(passing(guard, 200, { identity: wild, now: t0 })).toBe(10)
    expect(passing(guard, 200, { identity: { client: 'z', plan: 'pro' }, now: t0 })).toBe(90)
    expect(passing(guard, 1000, { identity: { client: 'acme', plan: 'free' }, now: t0 })).toBe(180)
    expect(seen).toEqual(['CATRACA_PLAN_UNDECLARED'])
  })
})

describe('stages', () => {
  test('a refusal by a later stage gives back what earlier ones charged, but for attempts', () => {
    for (const charge of ['admitted', 'attempts'] as const) {
      const guard = createGuard<Asked>({
        policies: changed({
          'address-net': {
            per: 'address',
            charge,
            rule: { algorithm: 'token-bucket', limit: 60, window: '1m', burst: 60 },
          },
          'in-flight': undefined,
        }),
        identify: identityOf,
      })
      expect(passing(guard, 30, { identity: { client: 'c' }, now: t0 })).toBe(10)
      const left = guard
        .explain({ method: 'GET', path: '/', attributes: { address: '192.0.2.1' }, now: t0 })
        .find(({ policy }) => policy === 'address-net')
      expect(left?.says.remaining).toBe(charge === 'attempts' ? 30 : 50)
    }
  })

  test('permits come back when the answer is over', () => {
    const guard = createGuard<Asked>({
      policies: changed({
        'in-flight': { per: 'client', match: { identity: 'client' }, rule: { algorithm: 'concurrency', limit: 2 } },
      }),
      identify: identityOf,
    })
    const identity = { client: 'c', plan: 'pro' }
    const first = ask(guard, { identity, now: t0 })
    expect(ask(guard, { identity, now: t0 }).allowed).toBe(true)
    expect(ask(guard, { identity, now: t0 }).decision?.reason).toBe('concurrency')
    guard.release(first)
    guard.release(first)
    expect(passing(guard, 5, { identity, now: t0 })).toBe(1)
  })

  test('observed policies refuse nothing and have the state they would have alone', () => {
    const guard = createGuard<Asked>({
      policies: changed({
        'whole-service': {
          per: 'service',
          mode: 'observe',
          rule: { algorithm: 'token-bucket', limit: 3, window: '1m' },
        },
      }),
      identify: identityOf,
    })
    const verdicts = Array.from({ length: 5 }, () => ask(guard, { identity: { client: 'c' }, now: t0 }))
    expect(verdicts.map(({ allowed }) => allowed)).toEqual(Array(5).fill(true))
    const would = verdicts.map(({ policies }) => policies.find(({ policy }) => policy === 'whole-service')?.wouldDeny)
    expect(would).toEqual([false, false, false, true, true])
  })

  test('insteadOf displaces only where it is enforced', () => {
    const policy = designDocument.policies['expensive'] as object
    const guard = createGuard<Asked>({
      policies: changed({ expensive: { ...policy, mode: 'observe' } }),
      identify: identityOf,
    })
    const verdict = ask(guard, { method: 'POST', target: '/v1/lotes/importar', identity: { client: 'c' }, now: t0 })
    expect(verdict.admitted.map(({ policy: { name } }) => name)).toContain('per-client')
    expect(verdict.observed.map(({ policy: { name } }) => name)).toContain('expensive')
  })

  test('an identity without a name of a client or user is anonymous', () => {
    const guard = design()
    for (const identity of [{}, { client: '' }, { tenant: 't' }, { client: '', user: '' }]) {
      expect(ask(guard, { identity, now: t0 }).admitted.map(({ policy }) => policy.name)).toContain('anonymous')
    }
    expect(ask(guard, { now: t0 }).allowed).toBe(true)
    expect(ask(guard, { identity: {}, now: t0 }).allowed).toBe(false)
  })

  test('what is exempt is neither counted nor refused', () => {
    const guard = createGuard<Asked>({
      policies: {
        ...designDocument,
        exempt: { routes: ['GET /health/**'], addresses: ['198.51.100.0/24'], clients: ['vip'] },
      },
      identify: identityOf,
    })
    expect(passing(guard, 200, { target: '/health' })).toBe(200)
    expect(passing(guard, 200, { peer: '198.51.100.9' })).toBe(200)
    expect(passing(guard, 200, { identity: { client: 'vip' } })).toBe(200)
    expect(guard.fieldsOf(ask(guard, { target: '/health/live' }))).toEqual([])
    expect(passing(guard, 200, {})).toBe(5)
  })
})

describe('a path that servers read in different ways', () => {
  const ambiguous = ['/health/../events', '/health/%2e%2e/events', '/health%2f..%2fevents', '//health/../events']

  test.each(ambiguous)('%s is not exempt like /health, and chooses no laxer policy', (target) => {
    const lax = {
      match: { routes: ['GET /health/**'] },
      per: 'address',
      insteadOf: 'address-net',
      rule: { algorithm: 'token-bucket', limit: 1_000, window: '1m' },
    }
    expect(passing(design(), 50, { target, now: t0 })).toBe(5)
    const guard = createGuard<Asked>({
      policies: changed({ lax, anonymous: undefined }, { exempt: {} }),
      identify: identityOf,
    })
    expect(passing(guard, 500, { target, now: t0 })).toBe(60)
    expect(passing(guard, 500, { target: '/health/live', now: t0 })).toBe(500)
  })
})

describe('a document replaced while requests go on', () => {
  const numbers = (limit: number, burst: number) =>
    changed({
      'address-net': undefined,
      'in-flight': undefined,
      'per-client': {
        match: { identity: 'client' },
        per: 'client',
        rule: { algorithm: 'token-bucket', limit, window: '1m', burst },
      },
    })

  test('keeps what was used, also where numbers change', () => {
    const guard = createGuard<Asked>({ policies: numbers(100, 100), identify: identityOf })
    const identity = { client: 'c' }
    expect(passing(guard, 60, { identity, now: t0 })).toBe(60)
    guard.replace(numbers(100, 100))
    expect(ask(guard, { identity, now: t0 }).decision?.remaining).toBe(39)
    guard.replace(numbers(200, 200))
    expect(passing(guard, 200, { identity, now: t0 })).toBe(139)
  })

  test('a wrong one throws and changes nothing', () => {
    const guard = design()
    expect(() => guard.replace({ ...designDocument, version: 2 as 1 })).toThrow(/version is 2; allowed/)
    expect(passing(guard, 50, { now: t0 })).toBe(5)
  })

  test('a client that changes its plan back and forth gains nothing', () => {
    const guard = createGuard<Asked>({
      policies: changed({ 'address-net': undefined, 'in-flight': undefined }),
      identify: identityOf,
    })
    let passed = 0
    for (let turn = 0; turn < 1_000; turn++) {
      const plan = turn % 2 === 0 ? 'free' : 'pro'
      if (ask(guard, { identity: { client: 'c', plan }, now: t0 }).allowed) passed++
    }
    expect(passed).toBeLessThanOrEqual(90)
    expect(passed).toBeGreaterThanOrEqual(10)
  })
})
