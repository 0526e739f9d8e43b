import { createGuard, type Verdict } from 'catraca/http'
import { type PolicyDocument, type PolicyEntry, policyProblems } from 'catraca/policy'
import { describe, expect, test } from 'vitest'
import type { Siblings } from '../../src/stores/remote.ts'
import { FakeRemoteStore } from './remote-store.ts'
import { type Asked, identityOf, request } from './requests.ts'

const bucket = (limit: number) => ({ algorithm: 'token-bucket', limit, window: '1h' })
const lease = { block: 4 }
const client: PolicyEntry = { per: 'client', match: { identity: 'client' }, rule: bucket(1_000), lease }
const all: PolicyEntry = { per: 'service', rule: bucket(10_000), lease }
const identity = { client: 'c' }

class Workers extends FakeRemoteStore {
  readonly siblings: Siblings = {
    count: 4,
    lease: ({ lease: kind }) => (kind === 'never' ? undefined : { block: 5, ttlUs: 10_000_000 }),
  }
}

function setUp(policies: Record<string, PolicyEntry>, store = new FakeRemoteStore()) {
  const document: PolicyDocument = { version: 1, storeFailure: { expectedInstances: 4 }, policies }
  const guard = createGuard<Asked>({ policies: document, identify: identityOf, random: () => 0, store })
  const ask = async (asked: Asked = { identity }): Promise<Verdict> => guard.ask(request(asked))
  const explained = async () => {
    const attributes = { client: 'c', address: '192.0.2.1' }
    const found = await guard.explain({ method: 'GET', path: '/', attributes })
    return Object.fromEntries(found.map((one) => [one.policy, one]))
  }
  return { store, guard, ask, explained }
}

describe('a policy with a lease', () => {
  test('is asked for by the block once its key is used, and decides at once with what is held', async () => {
    const { store, guard, ask } = setUp({ client, all })
    for (let n = 0; n < 20; n++) expect((await ask()).allowed).toBe(true)
    const { length } = store.trips
    expect(length).toBeLessThan(20)
    const verdict = guard.ask(request({ identity }))
    expect(verdict).not.toBeInstanceOf(Promise)
    expect((verdict as Verdict).admitted.map(({ policy }) => policy.name)).toEqual(['client', 'all'])
  })

  test('in a stack with one that has none is charged only where that passes', async () => {
    const few: PolicyEntry = { per: 'client', match: { identity: 'client' }, rule: { ...bucket(3), algorithm: 'gcra' } }
    const { ask, explained } = setUp({ client, few })
    const verdicts = []
    for (let n = 0; n < 5; n++) verdicts.push(await ask())
    expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, true, true, false, false])
    expect(verdicts[3]?.refusing.map(({ policy }) => policy.name)).toEqual(['few'])
    expect((await explained())['client']?.says.remaining).toBe(997)
  })

  test('explain states its bounds, and nothing for a policy without', async () => {
    const { explained } = setUp({ client, all: { ...all, lease: undefined as never } })
    const found = await explained()
    expect(found['client']?.lease).toEqual({
      block: 4,
      ttlMs: 10_000,
      instances: 4,
      bounds: { held: 6, over: 24, under: 18 },
    })
    expect(found['all']?.lease).toBeUndefined()
  })

  test('without a shared store is counted here, exactly, and explain says nothing of a lease', () => {
    const guard = createGuard<Asked>({ policies: { version: 1, policies: { client } }, identify: identityOf })
    const explained = guard.explain({ method: 'GET', path: '/', attributes: { client: 'c' } })
    expect((explained as never as { lease?: unknown }[])[0]?.lease).toBeUndefined()
  })

  test('wrong leases are named with their place', () => {
    const wrong = (given: unknown): string[] =>
      policyProblems({ version: 1, policies: { p: { ...client, lease: given } } }).map(
        ({ code, place }) => `${place.join('.')} ${code}`,
      )
    expect(wrong({ block: 0 })).toEqual(['policies.p.lease.block CATRACA_OPTION_INVALID'])
    expect(wrong({ block: 2, ttl: '99ms' })).toEqual(['policies.p.lease.ttl CATRACA_OPTION_INVALID'])
    expect(wrong({ block: 2, ttl: '61m' })).toEqual(['policies.p.lease.ttl CATRACA_OPTION_INVALID'])
    expect(wrong({ ttl: '1s' })).toEqual(['policies.p.lease.block CATRACA_OPTION_INVALID'])
    expect(wrong({ block: 2, size: 3 })).toEqual(['policies.p.lease.size CATRACA_OPTION_UNKNOWN'])
    expect(wrong(true)).toEqual(['policies.p.lease CATRACA_OPTION_INVALID'])
  })
})

describe('beside processes of one machine', () => {
  const policies: Record<string, PolicyEntry> = {
    net: { per: 'address', rule: bucket(600) },
    anonymous: { per: 'address', match: { identity: 'anonymous' }, rule: bucket(20) },
    client: { per: 'client', match: { identity: 'client' }, rule: bucket(1_000) },
    billed: { per: 'client', match: { identity: 'client' }, rule: bucket(1_000), exact: true },
    daily: { per: 'client', match: { identity: 'client' }, rule: { algorithm: 'quota', limit: 9, period: 'day' } },
  }

  test('a policy that says nothing is leased as the store does, one that is exact or a quota is asked for each time', async () => {
    const found = await setUp(policies, new Workers()).explained()
    const blocks = Object.fromEntries(Object.entries(found).map(([name, one]) => [name, one.lease?.block]))
    expect(blocks).toEqual({ net: 5, anonymous: undefined, client: 5, billed: undefined, daily: undefined })
  })

  test('all but what the gate of verification reads is shared; that stays here, a part of it', async () => {
    const { store, ask, explained } = setUp(policies, new Workers())
    const found = await explained()
    expect(Object.entries(found).map(([name, { store: home }]) => `${name} ${home}`)).toEqual([
      'net shared',
      'anonymous memory',
      'client shared',
      'billed shared',
      'daily shared',
    ])
    expect(found['anonymous']?.says.limit).toBe(5)
    expect(found['anonymous']?.rule.en).toBe('5 per hour, bursts of up to 5')
    expect(found['client']?.says.limit).toBe(1_000)
    await ask({})
    expect(store.asked).toEqual(['net'])
  })
})
