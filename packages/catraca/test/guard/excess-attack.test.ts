import { createGuard, type GuardOptions, type Jobs, memoryJobs, type Verdict, type Work } from 'catraca/http'
import type { PolicyDocument, PolicyEntry } from 'catraca/policy'
import { type FaultyStore, faultyStore } from 'catraca/testing'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Asked, identityOf, request } from './requests.ts'

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 9, 17, 12) }))
afterEach(() => void vi.useRealTimers())

const identity = { client: 'acme' }
const post: Asked = { identity, method: 'POST', body: { n: 1 } }
const bucket = (limit: number, window: string, burst = limit) => ({ algorithm: 'token-bucket', limit, window, burst })
const tripMs = 7

type Policies = Record<string, PolicyEntry>

function documentOf(policies: Policies): PolicyDocument {
  return { version: 1, defaults: { expectedInstances: 2 }, policies }
}

function guardOf(policies: Policies, options: Partial<GuardOptions<Asked>> = {}) {
  return createGuard<Asked>({ policies: documentOf(policies), identify: identityOf, random: () => 0, ...options })
}

type AnyGuard = ReturnType<typeof guardOf>

/** The same guard in memory, and over a store that takes trips. */
const homes: [name: string, make: (policies: Policies, options?: Partial<GuardOptions<Asked>>) => AnyGuard][] = [
  ['in memory', guardOf],
  [
    'in a shared store',
    (policies, options = {}) => guardOf(policies, { ...options, store: faultyStore({ delayMs: tripMs }) as never }),
  ],
]

/** What a policy of a key has left. */
async function leftOf(guard: AnyGuard, policy: string, asked: Asked = { identity }): Promise<number> {
  const { method = 'GET', target = '/events' } = asked
  const attributes = { client: asked.identity?.client, address: '192.0.2.1' }
  const explained = Promise.resolve(guard.explain({ method, path: target, attributes }))
  await vi.advanceTimersByTimeAsync(tripMs)
  return (await explained).find((one) => one.policy === policy)?.says.remaining ?? Number.NaN
}

interface Hearing {
  verdict: Verdict | undefined
  error: unknown
  atMs: number
}

/** Asks; what is heard stands in the result once it is. */
function hear(guard: AnyGuard, asked: Asked = { identity }, signal?: AbortSignal): Hearing {
  const heard: Hearing = { verdict: undefined, error: undefined, atMs: Number.NaN }
  const from = Date.now()
  Promise.resolve(guard.ask({ ...request(asked), signal })).then(
    (verdict) => Object.assign(heard, { verdict, atMs: Date.now() - from }),
    (error: unknown) => Object.assign(heard, { error }),
  )
  return heard
}

async function ask(guard: AnyGuard, asked: Asked = { identity }): Promise<Verdict> {
  const heard = hear(guard, asked)
  await vi.advanceTimersByTimeAsync(5 * tripMs)
  if (heard.verdict === undefined) throw (heard.error as Error) ?? new Error('there was no answer')
  return heard.verdict
}

/** A runner that carries nothing out. */
function idleJobs(): Jobs<Asked> & { works: Work<Asked>[] } {
  const works: Work<Asked>[] = []
  return {
    works,
    path: '/jobs',
    submit: (work) => `job-${String(works.push(work)).padStart(20, '0')}`,
    find: () => undefined,
    close: () => {},
  }
}

describe.each(homes)('who leaves while it waits, %s', (_, make) => {
  test.each(['accept', { degrade: { cost: 1 } }, 'mark'] as const)('is not answered by %j instead', async (next) => {
    const jobs = idleJobs()
    const rule = bucket(5, '1s', 9)
    const overflow: PolicyEntry['overflow'] = [{ queue: { maxWait: '1s' } }, next]
    const guard = make({ client: { per: 'client', cost: 5, rule, overflow } }, { jobs })
    expect((await ask(guard, post)).answer).toBe('pass')
    const leaving = new AbortController()
    const heard = hear(guard, post, leaving.signal)
    await vi.advanceTimersByTimeAsync(50)
    leaving.abort()
    await vi.advanceTimersByTimeAsync(50)
    expect([heard.verdict?.answer, heard.verdict?.decision?.reason]).toEqual(['reject', 'aborted'])
    expect([jobs.works.length, guard.counts.answers.reject]).toEqual([0, 1])
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await leftOf(guard, 'client')).toBe(9)
    guard.close()
  })
})

describe.each(homes)('a document that comes while requests wait, %s', (_, make) => {
  const rule = bucket(1, '10s')
  const entry: PolicyEntry = { per: 'client', rule, overflow: [{ queue: { maxWait: '20s' } }] }

  test.each<[string, (guard: AnyGuard) => void]>([
    ['observes the policy', (guard) => guard.setMode('client', 'observe')],
    ['turns it off', (guard) => guard.setMode('client', 'off')],
    ['takes it out', (guard) => guard.replace(documentOf({ other: { per: 'client', rule: bucket(9, '1s') } }))],
    [
      'puts another in its place',
      (guard) =>
        guard.replace(
          documentOf({ client: entry, other: { per: 'client', insteadOf: 'client', rule: bucket(9, '1s') } }),
        ),
    ],
  ])('and %s lets them pass', async (_, change) => {
    const guard = make({ client: entry })
    await ask(guard)
    const heard = hear(guard)
    await vi.advanceTimersByTimeAsync(100)
    change(guard)
    await vi.advanceTimersByTimeAsync(5 * tripMs)
    expect([heard.verdict?.allowed, heard.verdict?.answer]).toEqual([true, 'queue'])
    expect(heard.verdict?.admitted.map(({ policy }) => policy.name)).not.toContain('client')
    guard.close()
  })

  test('and takes the queue from its list refuses them', async () => {
    const guard = make({ client: entry })
    await ask(guard)
    const heard = hear(guard)
    await vi.advanceTimersByTimeAsync(100)
    guard.replace(documentOf({ client: { per: 'client', rule } }))
    await vi.advanceTimersByTimeAsync(5 * tripMs)
    expect(heard.verdict?.answer).toBe('reject')
    guard.close()
  })

  test('charges who passes by it once, and the rest of the stack too', async () => {
    const other: PolicyEntry = { per: 'client', rule: bucket(100, '1h') }
    const net: PolicyEntry = { per: 'address', rule: bucket(100, '1h') }
    const guard = make({ net, client: entry, other })
    await ask(guard)
    const heard = [hear(guard), hear(guard)]
    await vi.advanceTimersByTimeAsync(100)
    guard.setMode('other', 'enforce')
    await vi.advanceTimersByTimeAsync(100)
    guard.setMode('client', 'observe')
    await vi.advanceTimersByTimeAsync(5 * tripMs)
    expect(heard.map(({ verdict }) => verdict?.answer)).toEqual(['queue', 'queue'])
    expect([await leftOf(guard, 'net'), await leftOf(guard, 'other')]).toEqual([97, 97])
    guard.close()
  })
})

test('a policy that moves between the memory and the store while a request waits still decides about it', async () => {
  const rule = bucket(1, '10s')
  const overflow: PolicyEntry['overflow'] = [{ queue: { maxWait: '20s' } }]
  const here: PolicyEntry = { per: 'address', rule, overflow }
  const apart: PolicyEntry = { per: 'address', match: { routes: ['/**'] }, rule, overflow }
  const store = faultyStore({ delayMs: tripMs })
  for (const [from, to] of [
    [here, apart],
    [apart, here],
  ] as const) {
    const guard = guardOf({ net: from }, { store: store.sibling() as never, name: from === here ? 'a' : 'b' })
    await ask(guard)
    const heard = [hear(guard), hear(guard)]
    await vi.advanceTimersByTimeAsync(100)
    guard.replace(documentOf({ net: to }))
    await vi.advanceTimersByTimeAsync(5 * tripMs)
    // It begins anew there: one passes at once, the other waits on.
    expect(heard.map(({ verdict }) => verdict?.answer)).toEqual(['queue', undefined])
    await vi.advanceTimersByTimeAsync(10_000)
    expect(heard[1]?.verdict?.answer).toBe('queue')
    guard.close()
  }
})

test.each<[string, NonNullable<PolicyEntry['overflow']>]>([
  ['mark', ['mark']],
  ['degrade', [{ degrade: { cost: 1 } }]],
])('who is refused because the store is gone is not let past the policy by %s', async (_, overflow) => {
  const store = faultyStore({ faults: { gone: 1 } })
  const closed: PolicyEntry = { per: 'client', rule: bucket(9, '1h'), cost: 2, onStoreFailure: 'closed', overflow }
  const guard = guardOf({ closed }, { store: store as never })
  const heard = hear(guard)
  await vi.advanceTimersByTimeAsync(0)
  expect([heard.verdict?.answer, heard.verdict?.decision?.reason]).toEqual(['reject', 'store-closed'])
  guard.close()
})

test('who is refused because the store is gone gets a copy where there is one', async () => {
  const store = faultyStore()
  const overflow: NonNullable<PolicyEntry['overflow']> = ['accept', { stale: { maxAge: '1h' } }, 'mark']
  const closed: PolicyEntry = { per: 'client', rule: bucket(9, '1h'), onStoreFailure: 'closed', overflow }
  const jobs = memoryJobs({ run: () => ({}) })
  const guard = guardOf({ closed }, { store: store as never, jobs })
  const first = hear(guard)
  await vi.advanceTimersByTimeAsync(0)
  first.verdict?.keep?.({ status: 200, fields: [], body: new Uint8Array(1) })
  store.faults = { gone: 1 }
  const read = hear(guard)
  const written = hear(guard, post)
  await vi.advanceTimersByTimeAsync(0)
  expect([read.verdict?.answer, written.verdict?.answer]).toEqual(['stale', 'reject'])
  guard.close()
})

test('a document with fewer policies that comes while the store is asked decides about nothing it does not know', async () => {
  const big: PolicyEntry = { per: 'client', rule: bucket(9, '1h') }
  for (const faults of [{}, { gone: 1 }]) {
    const store = faultyStore({ delayMs: tripMs })
    const guard = guardOf({ first: big, second: big, third: big }, { store: store as never })
    const heard = hear(guard)
    await vi.advanceTimersByTimeAsync(tripMs / 2)
    guard.replace(documentOf({ third: big }))
    store.faults = faults
    await vi.advanceTimersByTimeAsync(5 * tripMs)
    expect(heard.verdict?.allowed).toBe(true)
    store.faults = {}
    await vi.advanceTimersByTimeAsync(5_000)
    const next = hear(guard)
    await vi.advanceTimersByTimeAsync(5 * tripMs)
    expect(next.verdict?.admitted.map(({ policy }) => policy.name)).toEqual(['third'])
    guard.close()
  }
})

test('documents that come one after the other make no wait longer', async () => {
  const rule = { algorithm: 'concurrency', limit: 1, permitTtl: '1h' }
  const guard = guardOf({ client: { per: 'client', rule, overflow: [{ queue: { maxWait: '400ms' } }] } })
  await ask(guard)
  const heard = hear(guard)
  for (let index = 0; index < 20; index++) {
    await vi.advanceTimersByTimeAsync(100)
    guard.setMode('client', 'enforce')
  }
  await vi.advanceTimersByTimeAsync(0)
  expect([heard.verdict?.answer, heard.atMs]).toEqual(['reject', 400])
  guard.close()
})

describe('a stack that is partly in memory and partly shared', () => {
  const net = (overflow: PolicyEntry['overflow'] & object): PolicyEntry => ({
    per: 'address',
    cost: 5,
    rule: bucket(9, '1h'),
    overflow,
  })
  const routed = (overflow: PolicyEntry['overflow'] & object, limit = 1): PolicyEntry => ({
    per: 'address',
    match: { routes: ['/**'] },
    rule: bucket(limit, '1s'),
    overflow,
  })
  const shared = (policies: Policies, store: FaultyStore = faultyStore({ delayMs: tripMs })) =>
    guardOf(policies, { store: store as never })

  test('tells the service of a cheaper charge also where it waits behind the other part', async () => {
    const guard = shared({ net: net([{ degrade: { cost: 1 } }]), routed: routed([{ queue: { maxWait: '5s' } }]) })
    await ask(guard)
    const heard = hear(guard)
    await vi.advanceTimersByTimeAsync(2_000)
    expect([heard.verdict?.answer, heard.verdict?.told]).toEqual(['queue', 'degrade'])
    expect(heard.verdict?.keep).toBeUndefined()
    expect(await leftOf(guard, 'net')).toBe(3)
    guard.close()
  })

  test('tells it of a mark in the same way', async () => {
    const guard = shared({ net: net(['mark']), routed: routed([{ queue: { maxWait: '5s' } }]) })
    await ask(guard)
    const heard = hear(guard)
    await vi.advanceTimersByTimeAsync(2_000)
    expect([heard.verdict?.answer, heard.verdict?.told]).toEqual(['queue', 'mark'])
    expect(heard.verdict?.marked.map(({ policy }) => policy.name)).toEqual(['net'])
    expect(await leftOf(guard, 'net')).toBe(4)
    guard.close()
  })

  test('gives what the part in memory charged back before another document is asked', async () => {
    const guard = shared({
      net: { per: 'address', rule: bucket(9, '1h') },
      routed: routed([{ queue: { maxWait: '5s' } }]),
    })
    await ask(guard)
    const heard = hear(guard)
    await vi.advanceTimersByTimeAsync(100)
    expect(await leftOf(guard, 'net')).toBe(7)
    guard.setMode('routed', 'enforce')
    guard.setMode('routed', 'observe')
    await vi.advanceTimersByTimeAsync(2_000)
    expect([heard.verdict?.answer, await leftOf(guard, 'net')]).toEqual(['queue', 7])
    guard.close()
  })

  test('is counted under both names where the second refuses in the end, and gives all back', async () => {
    const guard = shared({ net: net([{ degrade: { cost: 1 } }]), routed: routed(['reject']) })
    await ask(guard)
    expect((await ask(guard)).answer).toBe('reject')
    const { policies } = guard.counts
    expect([policies['net'], policies['routed']]).toMatchObject([
      { admitted: 1, refused: 1, answers: { reject: 1 } },
      { admitted: 1, refused: 1, answers: { reject: 1 } },
    ])
    expect(await leftOf(guard, 'net')).toBe(4)
    guard.close()
  })
})

test('a refusal of a later stage is counted under its name too', async () => {
  const guard = guardOf({
    net: { per: 'address', rule: bucket(1, '1h'), overflow: ['mark'] },
    client: { per: 'client', rule: bucket(1, '1h') },
  })
  const answers = [(await ask(guard)).answer, (await ask(guard)).answer]
  expect(answers).toEqual(['pass', 'reject'])
  expect(guard.counts.policies).toMatchObject({
    net: { admitted: 1, refused: 1 },
    client: { admitted: 1, refused: 1, answers: { reject: 1 } },
  })
  guard.close()
})

describe.each(homes)('a document that comes in the middle of any step, %s', (home, make) => {
  const lists: (PolicyEntry['overflow'] & object)[] = [
    [{ queue: { maxWait: '20s' } }, { degrade: { cost: 1 } }],
    [{ stale: { maxAge: '1h' } }, { degrade: { cost: 1 } }],
    [{ degrade: { cost: 1 } }, 'mark'],
    ['accept', 'mark'],
  ]
  const changes = ['observe', 'gone', 'reject', 'another list', 'same'] as const

  test.each(lists.map((list) => [list] as const))('loses and doubles no charge and no permit: %j', async (overflow) => {
    const rule = bucket(5, '10s', 9)
    const beside: Policies = {
      net: { per: 'address', rule: { algorithm: 'fixed-window', limit: 100, window: '365d' } },
      permits: { per: 'service', rule: { algorithm: 'concurrency', limit: 50, permitTtl: '1h' } },
      other: { per: 'client', rule: { algorithm: 'fixed-window', limit: 100, window: '365d' } },
    }
    const client: PolicyEntry = { per: 'client', cost: 5, rule, overflow }
    const documents: Record<(typeof changes)[number], Policies> = {
      observe: { client: { ...client, mode: 'observe' }, ...beside },
      // A faulty store finds its policies by their places when a trip ends: there it keeps its place.
      gone: home === 'in memory' ? beside : { client: { ...client, mode: 'off' }, ...beside },
      reject: { client: { ...client, overflow: ['reject'] }, ...beside },
      'another list': { client: { ...client, overflow: ['mark'] }, ...beside },
      same: { client, ...beside },
    }
    for (const change of changes) {
      for (const afterMs of [0, 1, tripMs, tripMs + 1, 2 * tripMs + 1, 20, 21, 30]) {
        const cache = {
          maxBodyBytes: 1,
          get: () => new Promise<undefined>((resolve) => void setTimeout(() => resolve(undefined), 20)),
          set: () => {},
        }
        const guard = make({ client, ...beside }, { jobs: idleJobs(), cache })
        await ask(guard, post)
        const heard = [hear(guard, post), hear(guard, post), hear(guard, { ...post, method: 'GET' })]
        await vi.advanceTimersByTimeAsync(afterMs)
        guard.replace(documentOf(documents[change]))
        await vi.advanceTimersByTimeAsync(40_000)
        const passed = heard.filter(({ verdict }) => verdict?.allowed === true)
        for (const { verdict, error } of heard)
          expect([error, verdict?.answer]).toEqual([undefined, expect.any(String)])
        const left = async () => [
          await leftOf(guard, 'net'),
          await leftOf(guard, 'other'),
          await leftOf(guard, 'permits'),
        ]
        const used = 1 + passed.length
        expect(await left(), `${change} after ${afterMs} ms`).toEqual([100 - used, 100 - used, 50 - used])
        for (const { verdict } of passed) guard.release(verdict as Verdict)
        await vi.advanceTimersByTimeAsync(tripMs)
        expect((await left())[2]).toBe(49)
        guard.close()
      }
    }
  })
})

describe.each(homes)('a guard that is closed in the middle, %s', (_, make) => {
  const lists: (PolicyEntry['overflow'] & object)[] = [
    [{ queue: { maxWait: '20s' } }, 'accept'],
    [{ queue: { maxWait: '20s' } }, { degrade: { cost: 1 } }],
    [{ queue: { maxWait: '20s' } }, 'mark'],
    [{ stale: { maxAge: '1h' } }, { degrade: { cost: 1 } }, 'mark'],
    ['accept', { queue: { maxWait: '1s' } }],
  ]
  test.each(lists.map((list) => [list] as const))('refuses, and throws at nobody: %j', async (overflow) => {
    for (const afterMs of [0, 1, tripMs, tripMs + 1, 2 * tripMs, 60]) {
      const jobs = idleJobs()
      const slow = async () => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        return undefined
      }
      const cache = { maxBodyBytes: 1, get: slow, set: () => {} }
      const rule = bucket(5, '10s', 9)
      const guard = make({ client: { per: 'client', cost: 5, rule, overflow } }, { jobs, cache })
      await ask(guard, post)
      const heard = [hear(guard, post), hear(guard, { ...post, method: 'GET' })]
      await vi.advanceTimersByTimeAsync(afterMs)
      guard.close()
      await vi.advanceTimersByTimeAsync(30_000)
      // What a trip under way is told is told.
      for (const { verdict, error } of heard) expect([error, verdict?.answer]).toEqual([undefined, expect.any(String)])
    }
  })
})

describe('accepted work', () => {
  test('is charged when it runs, once; attempts and observations were counted by the request', async () => {
    const guard = guardOf(
      {
        attempts: { per: 'address', charge: 'attempts', rule: bucket(100, '1h') },
        watched: { per: 'client', mode: 'observe', rule: bucket(100, '1h') },
        client: { per: 'client', rule: bucket(1, '10s'), overflow: ['accept'] },
        other: { per: 'client', rule: bucket(100, '1h') },
      },
      { jobs: memoryJobs({ run: () => 0 }) },
    )
    await ask(guard, post)
    for (let index = 0; index < 3; index++) expect((await ask(guard, post)).answer).toBe('accept')
    const left = async () => ({
      attempts: await leftOf(guard, 'attempts'),
      watched: await leftOf(guard, 'watched'),
      other: await leftOf(guard, 'other'),
    })
    expect(await left()).toEqual({ attempts: 96, watched: 96, other: 99 })
    await vi.advanceTimersByTimeAsync(35_000)
    expect((await left()).other).toBe(96)
    // One unit comes back each 36 s.
    expect(await left()).toMatchObject({ attempts: 96, watched: 96 })
    guard.close()
  })

  test("is nobody's whose credential is not valid, and none of a caller who is not known yet", async () => {
    const jobs = idleJobs()
    const guard = guardOf(
      { strangers: { per: 'address', match: { identity: 'anonymous' }, rule: bucket(2, '1h'), overflow: ['accept'] } },
      { jobs },
    )
    const anonymous: Asked = { method: 'POST', body: {} }
    const forged: Asked = { ...anonymous, headers: { authorization: 'Bearer forged' } }
    await ask(guard, anonymous)
    // One unit is left for the failure; over it nobody is verified, and nothing is accepted.
    const answers = [await ask(guard, forged), await ask(guard, forged), await ask(guard, anonymous)]
    expect(answers.map(({ answer }) => answer)).toEqual(['pass', 'reject', 'accept'])
    const dear = guardOf(
      {
        strangers: {
          per: ['address', 'user'],
          match: { identity: 'anonymous' },
          rule: bucket(1, '1h'),
          overflow: ['accept'],
        },
      },
      { jobs },
    )
    const both = [await ask(dear, forged), await ask(dear, forged), await ask(dear, anonymous)]
    expect(both.map(({ answer }) => answer)).toEqual(['pass', 'reject', 'accept'])
    expect(() => guardOf({ net: { per: 'address', rule: bucket(1, '1h'), overflow: ['accept'] } }, { jobs })).toThrow(
      'policies.net.overflow[0] is "accept"; allowed: accept in a policy that is asked once the caller was verified',
    )
    guard.close()
    dear.close()
  })

  test('has no more room for who chooses many keys', async () => {
    const jobs = memoryJobs<Asked>({ run: () => 0, maxQueued: 20, maxPerCaller: 5 })
    const guard = guardOf({ all: { per: ['service'], rule: bucket(1, '1h'), overflow: ['accept'] } }, { jobs })
    await ask(guard, post)
    const from = (client: string) => ask(guard, { ...post, identity: { client } })
    const answers: string[] = []
    for (let index = 0; index < 7; index++) answers.push((await from('greedy')).answer)
    expect(answers).toEqual([...Array(5).fill('accept'), 'reject', 'reject'])
    expect((await from('other')).answer).toBe('accept')
    guard.close()

    const keyed = guardOf(
      { header: { per: 'header:x-job', rule: bucket(1, '1h'), overflow: ['accept'] } },
      { jobs: memoryJobs<Asked>({ run: () => 0, maxQueued: 20, maxPerCaller: 5 }) },
    )
    let accepted = 0
    for (let index = 0; index < 40; index++) {
      const headers = { 'x-job': String(index >> 1) }
      if ((await ask(keyed, { method: 'POST', headers })).answer === 'accept') accepted++
    }
    expect(accepted).toBe(5)
    keyed.close()
  })

  test.each([
    ['short'],
    [`x\r\nSet-Cookie: a=b; ${'x'.repeat(20)}`],
    ['../../../../../../admin'],
    [7 as never],
    ['x'.repeat(129)],
  ])('of a runner that gives %j for an id is none', async (id) => {
    const jobs = { path: '/jobs', submit: () => id, find: () => undefined, close: () => {} }
    const guard = guardOf({ client: { per: 'client', rule: bucket(1, '1h'), overflow: ['accept'] } }, { jobs })
    await ask(guard, post)
    const verdict = await ask(guard, post)
    expect([verdict.answer, guard.answerOf(verdict).fields.includes('Location')]).toEqual(['reject', false])
    guard.close()
  })

  test.each<[string, Jobs['find']]>([
    [
      'throws',
      () => {
        throw new Error('gone')
      },
    ],
    ['rejects', () => Promise.reject(new Error('gone'))],
    ['gives null', () => null as never],
  ])('of a runner that %s is not found', async (_, find) => {
    const jobs = { ...idleJobs(), find }
    const guard = guardOf({ client: { per: 'client', rule: bucket(1, '1h'), overflow: ['accept'] } }, { jobs })
    const told = await ask(guard, { target: `/jobs/${'a'.repeat(32)}` })
    expect([told.answer, guard.answerOf(told).status]).toEqual(['told', 404])
    guard.close()
  })

  test('that gives what is no JSON is done all the same', async () => {
    const jobs = memoryJobs<Asked>({ run: () => 7n })
    const guard = guardOf({ client: { per: 'client', rule: bucket(1, '1s'), overflow: ['accept'] } }, { jobs })
    await ask(guard, post)
    const accepted = await ask(guard, post)
    const { id } = JSON.parse(String(guard.answerOf(accepted).body)) as { id: string }
    await vi.advanceTimersByTimeAsync(2_000)
    const { status, body } = guard.answerOf(await ask(guard, { target: `/jobs/${id}` }))
    expect([status, JSON.parse(String(body)).state]).toEqual([200, 'done'])
    guard.close()
  })

  test('takes no path where no policy lists it, and keeps its own after a document without it', async () => {
    const jobs = idleJobs()
    const policies: Policies = { client: { per: 'client', rule: bucket(1, '1s') } }
    const guard = guardOf(policies, { jobs })
    const asked = { identity, target: `/jobs/${'a'.repeat(32)}` }
    expect((await ask(guard, asked)).answer).toBe('pass')
    guard.replace(documentOf({ client: { per: 'client', rule: bucket(1, '1s'), overflow: ['accept'] } }))
    expect((await ask(guard, asked)).answer).toBe('told')
    guard.replace(documentOf(policies))
    expect((await ask(guard, asked)).answer).toBe('told')
    guard.close()
  })

  test('does not exist for who left before it was taken', async () => {
    const jobs = idleJobs()
    const guard = guardOf({ client: { per: 'client', rule: bucket(1, '1h'), overflow: ['accept', 'mark'] } }, { jobs })
    await ask(guard, post)
    const leaving = new AbortController()
    const body = () => new Promise((resolve) => setTimeout(resolve, 50, { n: 1 }))
    const asked = { ...request(post), body, signal: leaving.signal as never }
    const heard = Promise.resolve(guard.ask(asked))
    await vi.advanceTimersByTimeAsync(10)
    leaving.abort()
    await vi.advanceTimersByTimeAsync(50)
    expect([(await heard).answer, jobs.works.length]).toEqual(['reject', 0])
    guard.close()
  })
})
