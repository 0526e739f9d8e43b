import { concurrency, createLimiter, type Events, fixedWindow, isCatracaError } from 'catraca'
import { type Channel, channelOf, type ProcessLike, primaryStore, workerStore } from 'catraca/workers'
import { describe, expect, test } from 'vitest'
import { siblingsLease } from '../../src/stores/workers/worker-store.ts'
import { type Expected, expectFailure } from '../contract/failure.ts'
import { type AnyLimiter, eventually, hooksOf, limitersOf, pair, times, workersOf } from './support.ts'

const rule = fixedWindow({ limit: 100, window: '1000d' })

describe('without the primary', () => {
  test.each([
    ['local', 25],
    ['open', 400],
    ['closed', 0],
  ] as const)('%s decides at once, for all that is under way too', async (mode, most) => {
    const { workers } = workersOf(4)
    const [limiter] = limitersOf(workers, rule, { onStoreFailure: mode }) as [AnyLimiter]
    const events: string[] = []
    limiter.on('degraded', ({ cause }) => events.push((cause as Error & { kind: string }).kind))
    await limiter.take('k', { cost: 7 })
    const underWay = limiter.take('other')
    const began = performance.now()
    workers[0]?.cut()
    const first = await underWay
    expect([first.degraded, first.allowed]).toEqual([true, mode !== 'closed'])
    const decisions = await Promise.all(times(400, () => limiter.take('k')))
    // The deadline of these workers is 10 s.
    expect(performance.now() - began).toBeLessThan(5_000)
    expect(decisions.filter(({ allowed }) => allowed).length).toBe(most)
    expect(decisions.every(({ degraded }) => degraded)).toBe(true)
    expect(events).toEqual(['gone'])
    expect(limiter.health).not.toBe('healthy')
  })

  test('that is silent the deadline ends the wait, and it is asked again when it is back', async () => {
    const { worker, primary } = pair()
    const store = workerStore({ channel: worker, workers: 2, timeoutMs: 100 })
    const limiter = createLimiter(rule, { name: 'api', store, storeFailure: { expectedInstances: 2 } })
    const degraded: Events['degraded'][] = []
    limiter.on('degraded', (event) => degraded.push(event))
    const decision = await limiter.take('k')
    expect([decision.degraded, decision.allowed, decision.limit]).toEqual([true, true, 50])
    expect(degraded.map(({ cause }) => (cause as { kind?: string }).kind)).toEqual(['slow'])
    const memory = primaryStore()
    memory.attach(primary)
    await eventually('it is healthy', async () => !(await limiter.take('k')).degraded)
    store.close()
    memory.close()
  })

  test('that closes its memory nobody waits', async () => {
    const { workers, primary } = workersOf(2)
    const [limiter] = limitersOf(workers, rule) as [AnyLimiter]
    await limiter.take('k')
    primary.close()
    await eventually('it is told', async () => (await limiter.take('k')).degraded)
    await expect(limiter.reset('k')).rejects.toSatisfy(
      (error) => isCatracaError(error) && error.code === 'CATRACA_STORE_UNAVAILABLE',
    )
    await expect(limiter.block('k', '1s')).rejects.toSatisfy(isCatracaError)
    expect(() => primary.attach(pair().primary)).toThrow(/closed/)
  })

  test('permits and grants that come after their questions were given up are given back', async () => {
    const { worker, primary } = pair()
    let hold = false
    const held: (() => void)[] = []
    const memory = primaryStore()
    memory.attach({
      ...primary,
      onMessage: (listener) =>
        primary.onMessage((message) => {
          if (hold) held.push(() => listener(message))
          else listener(message)
        }),
    })
    const watcher = workersOf(1, { primary: memory }).workers
    const store = workerStore({ channel: worker, workers: 2, timeoutMs: 100 })
    const permits = concurrency({ limit: 3, permitTtl: '1h' })
    const issuer = { release: () => {} }
    const policies = [
      { name: 'permits', rule: permits, issuer, onStoreFailure: 'closed' as const },
      { name: 'window', rule, issuer },
    ]
    const ledger = store.open('guard', policies, hooksOf(), { expectedInstances: 2 })
    const other = watcher[0]?.store.open('guard', policies, hooksOf(), { expectedInstances: 2 })
    const left = async (member: number): Promise<number | undefined> =>
      (await other?.apply([member], ['k'], undefined, [1], false))?.remaining
    expect((await ledger.apply([0], ['k'], undefined, [1], true)).degraded).toBe(false)
    hold = true
    const [late, grant] = await Promise.allSettled([
      ledger.apply([0], ['k'], undefined, [1], true),
      ledger.grant(1, 'k', undefined, 1, 10),
    ])
    expect(late).toMatchObject({ status: 'fulfilled', value: { allowed: false, degraded: true } })
    expect(grant).toMatchObject({ status: 'rejected', reason: { kind: 'slow' } })
    hold = false
    for (const deliver of held) deliver()
    await eventually('the permit is given back', async () => (await left(0)) === 2)
    await eventually('the grant is given back', async () => (await left(1)) === 100)
    store.close()
  })
})

describe('a channel', () => {
  test('is shared with others, whose messages are left alone', async () => {
    const { workers } = workersOf(1)
    const [worker] = workers as [(typeof workers)[number]]
    const [limiter] = limitersOf(workers, rule) as [AnyLimiter]
    for (const strange of [{}, { catraca: 'other' }, { ready: true }, [], { list: [] }]) {
      worker.worker.send(strange)
      worker.primary.send(strange)
    }
    expect((await limiter.take('k')).remaining).toBe(99)
    const heard: unknown[] = []
    worker.primary.onMessage((message) => heard.push(message))
    worker.worker.send({ ready: true })
    await limiter.take('k')
    expect(heard).toContainEqual({ ready: true })
  })

  test('tells what the memory has to tell to the one whose question caused it', async () => {
    const { workers } = workersOf(2, { primary: primaryStore({ maxKeys: 1 }) })
    const told = workers.map(() => [] as unknown[])
    const ledgers = workers.map(({ store }, index) =>
      store.open(
        'guard',
        [{ name: 'p', rule, issuer: { release: () => {} } }],
        hooksOf({ evicted: (...what) => void told[index]?.push(what) }),
        { expectedInstances: 2 },
      ),
    )
    await ledgers[0]?.apply([0], ['first'], undefined, [100], true)
    await ledgers[1]?.apply([0], ['second'], undefined, [1], true)
    expect(told).toEqual([[], [['p', 'first', true]]])
  })

  test('that is cut off by the application serves no more; those of others do', async () => {
    const memory = primaryStore()
    const [one, other] = [pair(), pair()]
    const detach = memory.attach(one.primary)
    memory.attach(other.primary)
    const limiters = [one, other].map(({ worker }) =>
      createLimiter(rule, {
        name: 'api',
        store: workerStore({ channel: worker, workers: 2 }),
        storeFailure: { expectedInstances: 2 },
      }),
    ) as [AnyLimiter, AnyLimiter]
    await limiters[0].take('k', { cost: 30 })
    detach()
    await eventually('it is told', async () => (await limiters[0].take('k')).degraded)
    expect((await limiters[1].peek('k')).remaining).toBe(70)
    memory.close()
  })

  test('of a process without one is an error', () => {
    const expected: Expected = {
      code: 'CATRACA_OPTION_INVALID',
      path: 'channelOf',
      says: ['no process with a channel', 'ChildProcess'],
    }
    expectFailure(() => channelOf({ on() {}, off() {} }), expected)
    expectFailure(() => channelOf(undefined as unknown as ProcessLike), expected)
  })

  test('of a process that is gone already says so', async () => {
    const channel = channelOf({ connected: false, send() {}, on() {}, off() {} })
    await new Promise<void>((resolve) => channel.onClose(resolve))
    let called = false
    channel.onClose(() => (called = true))()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(called).toBe(false)
  })
})

describe('options', () => {
  const channel: Channel = { send() {}, onMessage: () => () => {}, onClose: () => () => {} }

  test.each([
    ['workers', 0, 'from 1 to 1000'],
    ['workers', 1_001, 'from 1 to 1000'],
    ['workers', 1.5, 'a whole number'],
    ['timeoutMs', 0, 'from 1 to 60000'],
    ['timeoutMs', Number.NaN, 'from 1 to 60000'],
    ['channel', {}, 'channelOf(process)'],
  ])('%s: %o is refused', (option, value, allowed) => {
    const path = `workerStore.${option}`
    expectFailure(() => workerStore({ channel, workers: 2, [option]: value }), {
      code: 'CATRACA_OPTION_INVALID',
      path,
      says: [allowed],
    })
  })

  test('unknown ones are refused', () => {
    const code = 'CATRACA_OPTION_UNKNOWN'
    const worker = () => workerStore({ channel, worker: 2 } as never)
    expectFailure(worker, { code, path: 'workerStore.worker', says: ['did you mean workers?'] })
    expectFailure(() => primaryStore({ keys: 2 } as never), { code, path: 'primaryStore.keys', says: ['maxKeys'] })
    expectFailure(() => primaryStore({ maxKeys: 0 }), {
      code: 'CATRACA_OPTION_INVALID',
      path: 'memoryStore.maxKeys',
      says: ['1 to 100000000'],
    })
  })
})

test.each([
  [fixedWindow({ limit: 160, window: '1m' }), 4, 2],
  [fixedWindow({ limit: 159, window: '1m' }), 4, undefined],
  [fixedWindow({ limit: 1_000_000, window: '1m' }), 4, 100],
  [fixedWindow({ limit: 1_000, window: '1m' }), 1, 50],
  [concurrency({ limit: 1_000 }), 4, undefined],
] as const)('%# workers hold a part of what is not billed or held', (limited, workers, block) => {
  expect(siblingsLease(limited, workers)).toEqual(block === undefined ? undefined : { block, ttlUs: 10_000_000 })
})
