import type { EventName, Events } from 'catraca'
import { createGuard, type GuardOptions, type Verdict } from 'catraca/http'
import type { PolicyDocument, PolicyEntry } from 'catraca/policy'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FakeRemoteStore } from './remote-store.ts'
import { type Asked, identityOf, request } from './requests.ts'

const bucket = (limit: number) => ({ algorithm: 'token-bucket', limit, window: '1h' })
const policies: Record<string, PolicyEntry> = {
  net: { per: 'address', rule: bucket(60) },
  login: { per: 'address', match: { routes: ['POST /login'] }, rule: bucket(2), onStoreFailure: 'closed' },
  anonymous: { per: 'address', match: { identity: 'anonymous' }, rule: bucket(5) },
  client: { per: 'client', match: { identity: 'client' }, rule: bucket(3) },
  all: { per: 'service', rule: bucket(100) },
  holds: { per: ['user', 'body:event'], match: { routes: ['POST /holds'] }, rule: bucket(1) },
}
const identity = { client: 'c', user: 'u' }

function documentOf(more: Record<string, PolicyEntry | undefined> = {}): PolicyDocument {
  const all = Object.entries({ ...policies, ...more }).filter(([, entry]) => entry !== undefined)
  return { version: 1, storeFailure: { expectedInstances: 6 }, policies: Object.fromEntries(all) as never }
}

function setUp(more: Record<string, PolicyEntry | undefined> = {}, options: Partial<GuardOptions<Asked>> = {}) {
  const store = new FakeRemoteStore()
  const guard = createGuard<Asked>({
    policies: documentOf(more),
    identify: identityOf,
    random: () => 0,
    ...options,
    store,
  })
  const ask = async (asked: Asked = {}): Promise<Verdict> => guard.ask(request(asked))
  /** What is left by policy; counts nothing. */
  const left = async (attributes: Record<string, string> = {}, path = '/events', method = 'GET') => {
    const found = await guard.explain({ method, path, attributes: { address: '192.0.2.1', ...attributes } })
    return Object.fromEntries(found.map(({ policy, says }) => [policy, says.remaining]))
  }
  return { store, guard, ask, left }
}

const refusing = ({ refusing: said }: Verdict) => said.map(({ policy }) => policy.name)
const admitted = ({ admitted: said }: Verdict) => said.map(({ policy }) => policy.name)

describe('trips', () => {
  test('one per stage, and none where all of a stage is in memory', async () => {
    const { store, ask } = setUp()
    expect(admitted(await ask({ identity }))).toEqual(['net', 'client', 'all'])
    expect(store.asked).toEqual(['client+all'])
    const hold: Asked = { method: 'POST', target: '/holds', identity, body: { event: 7 } }
    expect(admitted(await ask(hold))).toEqual(['net', 'client', 'all', 'holds'])
    expect(store.asked).toEqual(['client+all', 'client+all', 'holds'])
    await ask({ method: 'POST', target: '/login', peer: '192.0.2.9' })
    expect(store.asked.slice(3)).toEqual(['login', 'all'])
  })

  test('none at all while the guard of a document in memory answers at once', () => {
    const { store, guard } = setUp({ login: undefined, client: undefined, all: undefined, holds: undefined })
    const verdict = guard.ask(request({}))
    expect(verdict).not.toBeInstanceOf(Promise)
    expect(admitted(verdict as Verdict)).toEqual(['net', 'anonymous'])
    expect(store.trips).toEqual([])
  })

  test('none for an answer that is known without', () => {
    const { store, guard } = setUp()
    store.known = ['client', 'all']
    const verdicts = Array.from({ length: 4 }, () => guard.ask(request({ identity })) as Verdict)
    expect(verdicts.map((one) => one.allowed)).toEqual([true, true, true, false])
    expect(store.trips).toEqual([])
  })

  test('a refusal in memory sends nothing, not even about observed policies', async () => {
    const watch: PolicyEntry = { per: 'address', match: { routes: ['POST /login'] }, rule: bucket(9), mode: 'observe' }
    const { store, ask } = setUp({ net: { per: 'address', rule: bucket(1) }, watch })
    await ask({ identity })
    const before = store.trips.length
    const verdict = await ask({ method: 'POST', target: '/login', identity })
    expect(refusing(verdict)).toEqual(['net'])
    expect(store.trips).toHaveLength(before)
  })

  test('the gate of verification asks nothing: strangers are refused in memory', async () => {
    const headers = { 'x-api-key': 'guess' }
    const { store, ask, guard } = setUp({ all: undefined })
    for (let count = 0; count < 5; count++) expect((await ask({ headers })).allowed).toBe(true)
    const refused = await ask({ headers })
    expect(refusing(refused)).toEqual(['anonymous'])
    expect(store.trips).toEqual([])
    expect(guard.answerOf(refused).status).toBe(429)
  })
})

describe('what a refusal gives back', () => {
  test('one in the store: the part of its stage in memory, and the stages before', async () => {
    const { store, ask, left } = setUp({ all: { per: 'service', rule: bucket(2) } })
    await ask({ peer: '192.0.2.7' })
    await ask({ peer: '192.0.2.7' })
    // At the identity stage `anonymous` is in memory, `all` in the store.
    expect(refusing(await ask())).toEqual(['all'])
    expect(await left()).toMatchObject({ net: 60, anonymous: 5, all: 0 })
    expect(store.returned).toEqual([])
  })

  test('one of a later stage: the store too, but for attempts', async () => {
    const { store, ask, left } = setUp({
      client: { per: 'client', match: { identity: 'client' }, rule: bucket(3), charge: 'attempts' },
    })
    const hold: Asked = { method: 'POST', target: '/holds', identity, body: { event: 7 } }
    await ask(hold)
    const refused = await ask(hold)
    expect([refusing(refused), admitted(refused)]).toEqual([['holds'], ['client']])
    expect(store.returned).toEqual(['all'])
    expect(await left({ client: 'c', user: 'u', 'body:event': '7' })).toMatchObject({
      net: 59,
      client: 1,
      all: 99,
      holds: 0,
    })
  })

  test('a login refused in the store leaves the net of its address whole', async () => {
    const { ask, left } = setUp()
    const login: Asked = { method: 'POST', target: '/login', identity }
    for (let count = 0; count < 2; count++) expect((await ask(login)).allowed).toBe(true)
    expect(refusing(await ask(login))).toEqual(['login'])
    expect(await left()).toMatchObject({ net: 58, login: 0 })
  })

  test('whoever is refunded gets both parts back', async () => {
    const { guard, ask, left } = setUp()
    guard.refund(await ask({ identity }))
    expect(await left({ client: 'c' })).toMatchObject({ net: 60, client: 3, all: 100 })
  })
})

describe('observed policies', () => {
  const watch: PolicyEntry = { per: 'client', rule: bucket(1), mode: 'observe' }

  test('are asked beside the enforced ones, each alone, and all are waited for together', async () => {
    const { store, guard } = setUp({ watch, other: { ...watch, rule: bucket(9) } })
    let go: (value: unknown) => void = () => {}
    store.until = new Promise((resolve) => {
      go = resolve
    })
    const asked = guard.ask(request({ identity }))
    expect(store.asked.toSorted()).toEqual(['client+all', 'other', 'watch'])
    go(undefined)
    expect((await asked).observed.map(({ policy }) => policy.name).toSorted()).toEqual(['other', 'watch'])
    const second = await guard.ask(request({ identity }))
    expect(second.allowed).toBe(true)
    expect(second.policies.filter(({ mode }) => mode === 'observe').map(({ wouldDeny }) => wouldDeny)).toEqual([
      true,
      false,
    ])
  })

  test('are not waited for where nothing enforced takes a trip', async () => {
    const { store, guard } = setUp({ watch, client: undefined, all: undefined })
    const verdict = guard.ask(request({ identity }))
    expect(verdict).not.toBeInstanceOf(Promise)
    expect(store.asked).toEqual(['watch'])
    await vi.waitFor(() => expect((verdict as Verdict).observed).toHaveLength(1))
  })
})

describe('permits of the store', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })
  const flight = (permitTtl = '30s'): PolicyEntry => ({
    per: 'client',
    match: { identity: 'client' },
    rule: { algorithm: 'concurrency', limit: 2, permitTtl },
  })
  /** Beside the sweeps of two memory stores, which the first request starts. */
  async function timed(more: Record<string, PolicyEntry>) {
    const all = setUp(more)
    await all.ask()
    const sweeps = vi.getTimerCount()
    return { ...all, timers: () => vi.getTimerCount() - sweeps }
  }

  test('are renewed after each third of their life until they are released', async () => {
    const { store, guard, ask, left, timers } = await timed({ flight: flight() })
    expect(timers()).toBe(0)
    const verdict = await ask({ identity })
    expect([verdict.holds, timers()]).toEqual([true, 1])
    await vi.advanceTimersByTimeAsync(9_900)
    expect(store.renewed).toEqual([])
    await vi.advanceTimersByTimeAsync(100)
    expect(store.renewed).toEqual(['c'])
    await vi.advanceTimersByTimeAsync(20_000)
    expect(store.renewed).toEqual(['c', 'c', 'c'])
    guard.release(verdict)
    guard.release(verdict)
    expect([store.returned, timers()]).toEqual([['flight'], 0])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(store.renewed).toHaveLength(3)
    expect((await left({ client: 'c' }))['flight']).toBe(2)
  })

  test('each at its own pace, with one timer', async () => {
    const { store, guard, ask, timers } = await timed({ flight: flight(), short: { ...flight('3s'), per: 'user' } })
    const verdict = await ask({ identity })
    await ask({ identity: { ...identity, client: 'd' } })
    expect(timers()).toBe(1)
    await vi.advanceTimersByTimeAsync(10_000)
    const count = (key: string) => store.renewed.filter((one) => one === key).length
    // Two requests of the user u, one of each client.
    expect([count('u'), count('c'), count('d')]).toEqual([20, 1, 1])
    verdict.admitted.find(({ policy }) => policy.name === 'flight')?.decision.release()
    await vi.advanceTimersByTimeAsync(10_000)
    expect([count('c'), count('d')]).toEqual([1, 2])
    guard.release(verdict)
    expect(store.returned).toEqual(['flight', 'short'])
  })

  test('of a request that a later stage refuses are given back', async () => {
    const { store, ask, timers } = await timed({ flight: flight() })
    const hold: Asked = { method: 'POST', target: '/holds', identity, body: { event: 7 } }
    await ask(hold)
    await ask(hold)
    expect(store.returned.toSorted()).toEqual(['all', 'client', 'flight'])
    expect(timers()).toBe(1)
  })

  test('are renewed no more once the guard is closed, and can be released', async () => {
    const { store, guard, ask } = setUp({ flight: flight() })
    const verdict = await ask({ identity })
    guard.close()
    await vi.advanceTimersByTimeAsync(60_000)
    guard.release(verdict)
    expect([store.renewed, store.returned]).toEqual([[], ['flight']])
  })
})

describe('without the store', () => {
  test('a policy that is closed then answers 503 with a time to come back', async () => {
    const { store, guard, ask } = setUp()
    store.health = 'degraded'
    expect(guard.health).toBe('degraded')
    const verdict = await ask({ method: 'POST', target: '/login', identity })
    expect(refusing(verdict)).toEqual(['login'])
    const { status, fields, body } = guard.answerOf(verdict)
    expect(status).toBe(503)
    expect(fields[fields.indexOf('Retry-After') + 1]).toBe('2')
    expect(JSON.parse(String(body))).toMatchObject({
      status: 503,
      detail: 'The limit cannot be checked at the moment, and nothing passes unchecked. Try again in 2 s.',
      'violated-policies': ['login'],
    })
    expect(body).not.toContain('degraded')
    const other = await ask({ identity })
    expect([other.allowed, other.decision?.degraded]).toEqual([true, true])
  })

  test('whoever exceeded a limit of its own is told 429 also beside a closed policy', async () => {
    const closed: PolicyEntry = { per: 'user', rule: bucket(9), onStoreFailure: 'closed' }
    const { store, guard, ask } = setUp({ closed })
    for (let count = 0; count < 3; count++) await ask({ identity })
    store.health = 'degraded'
    const { status, body } = guard.answerOf(await ask({ identity }))
    expect([status, JSON.parse(String(body))]).toMatchObject([429, { 'violated-policies': ['client', 'closed'] }])
    expect(guard.answerOf(await ask({ identity: { client: 'new', user: 'u' } })).status).toBe(503)
  })

  test('what the store tells reaches the listeners', () => {
    const seen: [EventName, unknown][] = []
    const names = ['degraded', 'recovered', 'store.fault', 'store.lost', 'loop.paused'] as const
    const on = Object.fromEntries(names.map((name) => [name, (event: Events[EventName]) => seen.push([name, event])]))
    const { store } = setUp({}, { on })
    const hooks = store.opened?.hooks
    hooks?.degraded('gone')
    hooks?.recovered(5, 7)
    hooks?.faulty('login', 'k', 'odd')
    hooks?.lost('flush', 3)
    hooks?.paused(80)
    expect(seen).toEqual([
      ['degraded', { cause: 'gone' }],
      ['recovered', { durationMs: 5, decisions: 7 }],
      ['store.fault', { policy: 'login', key: 'k', cause: 'odd' }],
      ['store.lost', { kind: 'flush', decisionsAtRisk: 3 }],
      ['loop.paused', { pauseMs: 80 }],
    ])
  })

  test('a guard in memory is always healthy', () => {
    expect(createGuard({ policies: documentOf() }).health).toBe('healthy')
  })
})

describe('the document', () => {
  test('says to the store what becomes of each policy', () => {
    const { store } = setUp({ client: { ...policies['client'], onRuleChange: 'proportional' } as PolicyEntry })
    expect(
      store.opened?.policies.map(({ name, onStoreFailure, onRuleChange }) => [name, onStoreFailure, onRuleChange]),
    ).toEqual([
      ['login', 'closed', 'keep'],
      ['client', 'local', 'proportional'],
      ['all', 'local', 'keep'],
      ['holds', 'local', 'keep'],
    ])
    expect(store.opened).toMatchObject({ name: 'guard', failure: { expectedInstances: 6 } })
  })

  test('states the instances and the ceiling in one of two places', () => {
    const opened = (rest: Partial<PolicyDocument>) => {
      const store = new FakeRemoteStore()
      createGuard({ policies: { version: 1, policies, ...rest }, store })
      return store.opened?.failure
    }
    expect(opened({ defaults: { expectedInstances: 4 } })).toEqual({ expectedInstances: 4 })
    expect(opened({ storeFailure: { expectedInstances: 'live', ceiling: { limit: 5, window: '1s' } } })).toEqual({
      expectedInstances: 'live',
      ceiling: { limit: 5, windowUs: 1_000_000 },
    })
    expect(opened({ defaults: { expectedInstances: 4 }, storeFailure: { expectedInstances: 4 } })).toEqual({
      expectedInstances: 4,
    })
    expect(() => opened({ defaults: { expectedInstances: 4 }, storeFailure: { expectedInstances: 5 } })).toThrow(
      /storeFailure.expectedInstances is 5; allowed: 4/,
    )
  })

  test.each([{}, { storeFailure: { ceiling: { limit: 5, window: '1s' as const } } }])(
    'that does not count the instances is an error with a shared store alone: %o',
    (rest) => {
      const silent: PolicyDocument = { version: 1, policies, ...rest }
      const error = expect.objectContaining({
        code: 'CATRACA_OPTION_INVALID',
        path: 'storeFailure.expectedInstances',
        message: expect.stringContaining('write storeFailure: { expectedInstances: 6 }') as string,
      }) as Error
      expect(() => createGuard({ policies: silent, store: new FakeRemoteStore() })).toThrow(error)
      const { guard } = setUp()
      expect(() => guard.replace(silent)).toThrow(error)
      createGuard({ policies: silent })
    },
  )

  test('is replaced in both parts; a policy that moves begins anew, the others keep what was used', async () => {
    const { store, guard, ask, left } = setUp()
    await ask({ identity })
    await ask()
    const routes = ['GET /events']
    guard.replace({
      ...documentOf({ net: { per: 'address', match: { routes }, rule: bucket(60) } }),
      storeFailure: { expectedInstances: 3, ceiling: { limit: 9, window: '1s' } },
    })
    expect(store.opened?.failure).toEqual({ expectedInstances: 3, ceiling: { limit: 9, windowUs: 1_000_000 } })
    expect(await left({ client: 'c' })).toMatchObject({ net: 60, anonymous: 4, client: 2, all: 98 })
    store.trips.length = 0
    expect(admitted(await ask({ identity }))).toEqual(['net', 'client', 'all'])
    expect(store.asked).toEqual(['net', 'client+all'])
    guard.replace(documentOf())
    expect(store.opened?.failure).toEqual({ expectedInstances: 6 })
    expect(await left({ client: 'c' })).toMatchObject({ net: 60, anonymous: 4, client: 1, all: 97 })
  })

  test('replaced while answers are on the way: what they charged can be given back', async () => {
    const { store, guard, left } = setUp()
    let go: (value: unknown) => void = () => {}
    store.until = new Promise((resolve) => {
      go = resolve
    })
    const asked = guard.ask(request({ identity }))
    guard.replace(documentOf())
    go(undefined)
    guard.refund(await asked)
    expect(await left({ client: 'c' })).toMatchObject({ net: 60, client: 3, all: 100 })
  })

  test('explain says where each state lives', async () => {
    const { guard } = setUp()
    const descriptor = { method: 'GET', path: '/' }
    const homes = (await guard.explain(descriptor)).map(({ policy, store }) => [policy, store])
    expect(Object.fromEntries(homes)).toEqual({
      net: 'memory',
      login: 'shared',
      anonymous: 'memory',
      client: 'shared',
      all: 'shared',
      holds: 'shared',
    })
    const alone = createGuard({ policies: documentOf() }).explain(descriptor)
    expect(new Set(alone.map(({ store }) => store))).toEqual(new Set(['memory']))
    expect((await guard.status(request({ identity }))).map(({ says }) => says.remaining)).toContain(100)
  })

  test('a mode that changes moves no state', async () => {
    const observed = { ...policies['anonymous'], mode: 'observe' } as PolicyEntry
    const { guard, ask, left } = setUp({ anonymous: observed })
    await ask()
    guard.replace(documentOf())
    expect((await left())['anonymous']).toBe(4)
  })
})

describe('tag', () => {
  const tenant = { ...identity, tenant: 't1' }
  const tagged = (per: string | string[]): PolicyEntry => ({ per, tag: 'tenant', rule: bucket(9) })

  test('goes with the keys of a stage, the key itself where a policy has none', async () => {
    const { store, ask } = setUp({ client: tagged('client'), tenant: tagged(['tenant', 'user']) })
    await ask({ identity: tenant })
    expect(store.trips).toMatchObject([
      { policies: ['client', 'all', 'tenant'], keys: ['c', 'service', '2:t11:u'], tags: ['t1', 'service', 't1'] },
    ])
    await ask({ identity: { ...tenant, tenant: '' } })
    expect(store.trips[1]?.tags).toEqual(['\u0000missing', 'service', '\u0000missing'])
  })

  test('is left out where no policy has one', async () => {
    const { store, ask } = setUp()
    await ask({ identity: tenant })
    expect(store.trips[0]?.tags).toBeUndefined()
  })

  test.each([
    ['client', 'address', 'client, tenant, service'],
    ['client', 'client:', 'client, tenant, service'],
    ['service', 'tenant', 'service'],
    [['client', 'header:x'], 'header:y', 'client, header:x, tenant, service'],
  ])('that would give a caller several budgets is an error: per %s by %s', (per, tag, allowed) => {
    const entry: PolicyEntry = { per, tag, rule: bucket(9) }
    expect(() => createGuard({ policies: documentOf({ entry }) })).toThrow(
      `policies.entry.tag is "${tag}"; allowed: ${allowed}`,
    )
  })
})

test('a time of its own is refused, since the clock of the store decides', async () => {
  const { guard, ask } = setUp()
  await expect(ask({ now: 5 })).rejects.toMatchObject({ code: 'CATRACA_NOW_INVALID' })
  expect(() => guard.explain({ method: 'GET', path: '/', now: 5 })).toThrow(/CATRACA_NOW_INVALID/)
})

test('closing the guard leaves the store to the user; closing the store closes the guard', () => {
  const { store, guard } = setUp()
  guard.close()
  expect(() => guard.ask(request({}))).toThrow(/CATRACA_LIMITER_CLOSED/)
  const second = createGuard({ policies: documentOf(), store })
  store.close()
  expect(() => second.ask(request({}))).toThrow(/CATRACA_LIMITER_CLOSED/)
})
