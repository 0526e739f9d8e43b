import { createGuard } from 'catraca/http'
import type { PolicyDocument, PolicyEntry } from 'catraca/policy'
import { describe, expect, test } from 'vitest'
import { type Asked, ask, identityOf, passing, request } from './requests.ts'

const t0 = Date.UTC(2026, 9, 17, 12)
const rule = { algorithm: 'token-bucket', limit: 10, window: '1h', burst: 10 }

function documentOf(policies: Record<string, PolicyEntry>): PolicyDocument {
  return { version: 1, policies }
}

function guardOf(policies: Record<string, PolicyEntry>) {
  return createGuard<Asked>({ policies: documentOf(policies), identify: identityOf })
}

const clients = Array.from({ length: 1_000 }, (_, index) => `client-${index}`)

/** Which of the clients a policy refuses at their eleventh request. */
function refused(guard: ReturnType<typeof guardOf>): string[] {
  return clients.filter((client) => passing(guard, 11, { identity: { client }, now: t0 }) === 10)
}

describe('a policy that is enforced for part of its callers', () => {
  const of = (percent: number, more: object = {}): Record<string, PolicyEntry> => ({
    client: { per: 'client', rule, mode: { enforce: { percent, ...more } } },
  })

  test('acceptance 172: a caller is always in or always out, who is in stays in as it grows, and clients are named', () => {
    const at10 = refused(guardOf(of(10)))
    const at30 = refused(guardOf(of(30)))
    // 1,000 draws at 10 %: six standard deviations are 57.
    expect(at10.length).toSatisfy((count: number) => Math.abs(count - 100) <= 57)
    expect(at30.length).toSatisfy((count: number) => Math.abs(count - 300) <= 87)
    expect(refused(guardOf(of(10)))).toEqual(at10)
    expect(at10.filter((client) => !at30.includes(client))).toEqual([])
    expect(refused(guardOf(of(0)))).toEqual([])
    expect(refused(guardOf(of(100)))).toEqual(clients)
    expect(refused(guardOf(of(0, { clients: ['client-7', 'nobody'] })))).toEqual(['client-7'])
  })

  test('counts the others, or leaves them alone', () => {
    const observed = guardOf(of(0))
    expect(passing(observed, 12, { identity: { client: 'a' }, now: t0 })).toBe(12)
    expect(observed.counts.policies['client']).toMatchObject({ admitted: 10, wouldRefuse: 2, refused: 0 })
    const off = guardOf({ client: { per: 'client', rule, mode: { enforce: { percent: 0 }, else: 'off' } } })
    expect(passing(off, 12, { identity: { client: 'a' }, now: t0 })).toBe(12)
    expect(off.counts.policies['client']).toBeUndefined()
    const descriptor = { method: 'GET', path: '/', attributes: { client: 'a' }, now: t0 }
    expect(off.explain(descriptor)[0]).toMatchObject({ applies: false, notAsked: 'off', mode: 'off' })
    expect(observed.explain(descriptor)[0]).toMatchObject({ applies: true, mode: 'observe', says: { mode: 'observe' } })
  })

  test('stands in for another one only for those for whom it is enforced', () => {
    const guard = guardOf({
      general: { per: 'client', rule: { ...rule, burst: 2 } },
      dear: { per: 'client', rule, insteadOf: 'general', mode: { enforce: { clients: ['in'] } } },
    })
    expect(passing(guard, 12, { identity: { client: 'in' }, now: t0 })).toBe(10)
    expect(passing(guard, 12, { identity: { client: 'out' }, now: t0 })).toBe(2)
  })
})

test('acceptance 170: tight for strangers and dear routes, observed for the rest, in one process', () => {
  const guard = guardOf({
    anonymous: { match: { identity: 'anonymous' }, per: 'address', rule: { ...rule, burst: 1 } },
    dear: { match: { identity: 'client', routes: ['POST /import'] }, per: 'client', rule: { ...rule, burst: 1 } },
    client: { match: { identity: 'client' }, per: 'client', rule: { ...rule, burst: 1 }, mode: 'observe' },
  })
  const identity = { client: 'a' }
  expect(passing(guard, 3, { now: t0 })).toBe(1)
  expect(passing(guard, 3, { identity, method: 'POST', target: '/import', now: t0 })).toBe(1)
  expect(passing(guard, 3, { identity, now: t0 })).toBe(3)
  expect(guard.counts.policies['client']).toMatchObject({ wouldRefuse: 5, wouldRefuseIs: 'estimate' })
})

test('acceptance 168: observed it refuses nothing, and would refuse exactly what it refuses when it is enforced', () => {
  const arrivals = Array.from({ length: 200 }, (_, index) => t0 + index * 200_000 - (index % 7) * 17_000)
  const run = (mode: 'observe' | 'enforce') => {
    const guard = guardOf({ client: { per: 'client', rule: { ...rule, burst: 1 }, mode } })
    const passed = arrivals.filter((now) => ask(guard, { identity: { client: 'a' }, now }).allowed).length
    return { passed, ...guard.counts.policies['client'] }
  }
  const enforced = run('enforce')
  const observed = run('observe')
  expect(observed.passed).toBe(200)
  expect(enforced.refused).toBeGreaterThan(20)
  expect(observed).toMatchObject({ refused: 0, wouldRefuse: enforced.refused, wouldRefuseIs: 'exact' })
})

test('a client with 7 of 10 used has 3 left after 20 changes of the mode under requests, and none failed', () => {
  const guard = guardOf({ client: { per: 'client', rule } })
  const identity = { client: 'a' }
  const others = clients.slice(0, 50)
  expect(passing(guard, 7, { identity, now: t0 })).toBe(7)
  const modes = ['observe', 'enforce', { enforce: { percent: 50 } }, 'enforce'] as const
  for (let change = 0; change < 20; change++) {
    guard.setMode('client', modes[change % modes.length] as (typeof modes)[number])
    for (const client of others)
      expect(ask(guard, { identity: { client }, now: t0 }).answer).toMatch(/^(?:pass|reject)$/)
  }
  expect(guard.explain({ method: 'GET', path: '/', attributes: { client: 'a' }, now: t0 })[0]?.says.remaining).toBe(3)
  expect(passing(guard, 5, { identity, now: t0 })).toBe(3)
  expect(() => guard.setMode('clients', 'off')).toThrow('policy is "clients"; allowed: client')
  expect(() => guard.setMode('client', 'on' as never)).toThrow('policies.client.mode is "on"')
})

describe('a candidate', () => {
  const policies: Record<string, PolicyEntry> = {
    client: {
      match: { identity: 'client' },
      per: 'client',
      rule,
      plans: { pro: { limit: 100, burst: 100 } },
      candidate: { rule: { algorithm: 'sliding-log', limit: 4, window: '1h' }, plans: { pro: { limit: 6 } } },
    },
  }
  const document: PolicyDocument = { ...documentOf(policies), plans: { names: ['free', 'pro'], default: 'free' } }

  test('is counted for the same requests, refuses nothing, and is reported by its own name', () => {
    const guard = createGuard<Asked>({ policies: document, identify: identityOf })
    expect(passing(guard, 12, { identity: { client: 'a' }, now: t0 })).toBe(10)
    expect(passing(guard, 12, { identity: { client: 'b', plan: 'pro' }, now: t0 })).toBe(12)
    expect(passing(guard, 12, { now: t0 })).toBe(12)
    expect(guard.counts.policies).toMatchObject({
      client: { admitted: 22, refused: 2, wouldRefuse: 0 },
      // 12 and 12 requests, of which 4 and 6 would pass.
      'client.candidate': { admitted: 10, wouldRefuse: 14, refused: 0, wouldRefuseIs: 'estimate' },
    })
    const verdict = ask(guard, { identity: { client: 'c' }, now: t0 })
    expect(verdict.policies.map(({ policy, mode }) => [policy, mode])).toEqual([
      ['client', 'enforce'],
      ['client.candidate', 'observe'],
    ])
  })

  test('is not asked where its policy is not, and goes with it', () => {
    const guard = createGuard<Asked>({ policies: document, identify: identityOf })
    const other = { per: 'client', insteadOf: 'client', match: { routes: ['POST /import'] }, rule }
    guard.replace({ ...document, policies: { ...policies, other } })
    ask(guard, { identity: { client: 'a' }, method: 'POST', target: '/import', now: t0 })
    expect(guard.counts.policies['client.candidate']).toBeUndefined()
    guard.setMode('client', 'off')
    ask(guard, { identity: { client: 'a' }, now: t0 })
    expect(guard.counts.policies['client.candidate']).toBeUndefined()
  })

  test('needs its name, and rules that are good', () => {
    const taken = { ...documentOf({ ...policies, 'client.candidate': { per: 'client', rule } }), plans: document.plans }
    expect(() => createGuard({ policies: taken as PolicyDocument })).toThrow('no policy of the name client.candidate')
    const wrong = documentOf({
      c: { per: 'client', rule, candidate: { rule: { algorithm: 'gcra', limit: 0, window: '1s' } } },
    })
    expect(() => createGuard({ policies: wrong })).toThrow('policies.c.candidate.rule.limit is 0')
  })
})

test('counts by the id of the credential are bounded', async () => {
  const guard = guardOf({ client: { per: 'client', rule: { ...rule, burst: 1 } } })
  for (let key = 0; key < 1_100; key++) {
    await guard.ask(request({ identity: { client: 'a', keyId: `k${key}` }, now: t0 }))
  }
  const { keys } = guard.counts
  expect(Object.keys(keys).length).toBe(1_001)
  expect([keys['k0'], keys['k1'], keys['other']]).toEqual([
    { passed: 1, refused: 0 },
    { passed: 0, refused: 1 },
    { passed: 0, refused: 100 },
  ])
})
