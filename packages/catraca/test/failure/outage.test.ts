import { concurrency, fixedWindow, leakyQueue, tokenBucket } from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { StoreFault } from '../../src/stores/remote.ts'
import { FaultyStore, Instance, type Named, sources } from './faulty-store.ts'

const noon = Date.UTC(2027, 0, 1, 12)

beforeEach(() => vi.useFakeTimers({ now: noon }))
afterEach(() => vi.useRealTimers())

const hour = fixedWindow({ limit: 60, window: '1h' })
const six = { expectedInstances: 6 } as const
const one = { expectedInstances: 1 } as const
const many = tokenBucket({ limit: 1_000_000, window: '1h' })

describe('an outage', () => {
  test('acceptance 152: of 10 s: one event at entry with the cause, one at exit with duration and decisions taken', async () => {
    const instance = new Instance([['api', many]], one)
    await instance.ask('k')
    expect(instance.told).toEqual([])
    instance.store.fault = 'gone'
    for (let step = 0; step < 100; step++) {
      const decision = await instance.ask('k')
      expect(decision).toMatchObject({ allowed: true, degraded: true })
      await vi.advanceTimersByTimeAsync(100)
    }
    expect(instance.told).toEqual([{ hook: 'degraded', cause: expect.any(StoreFault) as unknown }])
    instance.store.fault = undefined
    await vi.advanceTimersByTimeAsync(500)
    // It began at the first request and ended with the probe at 10.4 s: 5 failures at 0 … 0.4 s, then one each 0.5 s.
    expect(instance.told.slice(1)).toEqual([{ hook: 'recovered', durationMs: 10_400, decisions: 100 }])
    expect((await instance.ask('k')).degraded).toBe(false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(instance.told.length).toBe(2)
  })

  test('counts no peek, and no decision about an unfit key from before it', async () => {
    const instance = new Instance([['api', many]], one)
    instance.store.unfit.add('bad')
    await instance.ask('bad')
    instance.store.fault = 'gone'
    await instance.ask('k')
    await instance.ask('k', 1, false)
    instance.store.fault = undefined
    await instance.ask('k')
    expect(instance.told.at(-1)).toMatchObject({ hook: 'recovered', decisions: 1 })
  })

  test('is told once to each ledger of the store, each with its own decisions', async () => {
    const store = new FaultyStore()
    const first = new Instance([['api', many]], one, store, 'first')
    const second = new Instance([['api', many]], one, store, 'second')
    const closed = new Instance([['api', many]], one, store, 'closed')
    closed.ledger.close()
    store.fault = 'gone'
    await first.ask('k')
    await first.ask('k')
    await second.ask('k')
    const late = new Instance([['api', many]], one, store, 'late')
    store.fault = undefined
    await vi.advanceTimersByTimeAsync(500)
    const exits = [first, second, late].map(({ told }) => told.at(-1))
    expect(exits).toEqual([2, 1, 0].map((decisions) => ({ hook: 'recovered', durationMs: 500, decisions })))
    expect([first, second, late, closed].map(({ told }) => told.length)).toEqual([2, 2, 2, 0])
  })

  test.each(['gone', 'slow'] as const)(
    '%s: calls try the store until 5 in a row failed, then nothing is sent',
    async (fault) => {
      const instance = new Instance([['api', many]], one)
      const { store } = instance
      store.fault = fault
      for (let call = 0; call < 5; call++) {
        expect(instance.ledger.health).toBe(call === 0 ? 'healthy' : 'degraded')
        expect(instance.ledger.tryApply([0], ['k'], undefined, [1])).toBeUndefined()
        await instance.ask('k')
      }
      expect(store.sent.length).toBe(5)
      const decision = await instance.ask('k')
      await instance.ask('k', 1, false)
      await instance.ledger.renew(decision)
      await instance.ledger.refund(decision, 1)
      await expect(instance.ledger.reset(0, 'k', undefined)).rejects.toMatchObject({
        code: 'CATRACA_STORE_UNAVAILABLE',
      })
      const known = instance.ledger.tryApply([0], ['k'], undefined, [1])
      expect(known).toMatchObject({ allowed: true, degraded: true, charged: 1 })
      expect(store.sent.length).toBe(5)
    },
  )

  test('a store that refuses is not asked a second time', async () => {
    const instance = new Instance([['api', many]], one)
    instance.store.fault = 'refuses'
    for (let call = 0; call < 10; call++) expect((await instance.ask('k')).degraded).toBe(true)
    expect(instance.store.sent).toEqual(['apply'])
  })

  test('a success before the fifth failure ends it', async () => {
    const instance = new Instance([['api', many]], one)
    instance.store.nextFaults.push('slow', 'slow', 'slow', 'slow')
    for (let call = 0; call < 5; call++) await instance.ask('k')
    expect(instance.told.map(({ hook }) => hook)).toEqual(['degraded', 'recovered'])
    expect(instance.told[1]).toMatchObject({ decisions: 4 })
    expect(instance.ledger.health).toBe('healthy')
  })

  test('probes go every 500 ms, one at a time, none while healthy, and the fleet of ledgers has one timer', async () => {
    const store = new FaultyStore()
    const instances = ['a', 'b', 'c'].map((name) => new Instance([['api', many]], one, store, name))
    for (const instance of instances) await instance.ask('k')
    expect(vi.getTimerCount()).toBe(1) // the sweep of the memory behind the fake store
    store.fault = 'refuses'
    for (const instance of instances) await instance.ask('k')
    expect(vi.getTimerCount()).toBe(3) // and the sweep of the local states, and the probe
    await vi.advanceTimersByTimeAsync(499)
    expect(store.sent.filter((call) => call === 'probe').length).toBe(0)
    await vi.advanceTimersByTimeAsync(9_501)
    expect(store.sent.filter((call) => call === 'probe').length).toBe(20)
    expect(vi.getTimerCount()).toBe(1) // the states have ended
    store.fault = undefined
    await vi.advanceTimersByTimeAsync(500)
    expect(instances.map(({ ledger }) => ledger.health)).toEqual(['healthy', 'healthy', 'healthy'])
    expect(vi.getTimerCount()).toBe(0)
    const sent = store.sent.length
    await vi.advanceTimersByTimeAsync(60_000)
    expect(store.sent.length).toBe(sent)
  })

  test('the health is probing while a probe is under way, and decisions still do not wait', async () => {
    const instance = new Instance([['api', many]], one)
    await instance.lose()
    let answer = (): void => {}
    vi.spyOn(instance.store, 'probe').mockImplementation(() => new Promise((resolve) => (answer = resolve)))
    await vi.advanceTimersByTimeAsync(500)
    expect(instance.ledger.health).toBe('probing')
    const sent = instance.store.sent.length
    expect(instance.ledger.tryApply([0], ['k'], undefined, [1])?.degraded).toBe(true)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(instance.store.sent.length).toBe(sent)
    answer()
    await vi.advanceTimersByTimeAsync(0)
    expect(instance.ledger.health).toBe('healthy')
  })

  test('a probe that began before the fifth failure does not end the outage', async () => {
    const instance = new Instance([['api', many]], one)
    const { store } = instance
    let answer = (): void => {}
    const probe = vi.spyOn(store, 'probe').mockImplementation(() => new Promise((resolve) => (answer = resolve)))
    store.fault = 'slow'
    await instance.ask('k')
    await vi.advanceTimersByTimeAsync(500)
    for (let call = 0; call < 4; call++) await instance.ask('k')
    answer()
    await vi.advanceTimersByTimeAsync(0)
    expect(instance.ledger.health).toBe('degraded')
    await vi.advanceTimersByTimeAsync(500)
    expect(probe).toHaveBeenCalledTimes(2)
    answer()
    await vi.advanceTimersByTimeAsync(0)
    expect(instance.ledger.health).toBe('healthy')
  })

  test('a probe of an outage that is over says nothing about the next', async () => {
    const instance = new Instance([['api', many]], one)
    const { store } = instance
    const answers: (() => void)[] = []
    vi.spyOn(store, 'probe').mockImplementation(() => new Promise((resolve) => void answers.push(resolve)))
    store.nextFaults.push('slow')
    await instance.ask('k')
    await vi.advanceTimersByTimeAsync(500)
    await instance.ask('k')
    expect(instance.ledger.health).toBe('healthy')
    store.nextFaults.push('slow')
    await instance.ask('k')
    answers[0]?.()
    await vi.advanceTimersByTimeAsync(0)
    expect(instance.ledger.health).toBe('degraded')
    await vi.advanceTimersByTimeAsync(500)
    expect(instance.ledger.health).toBe('probing')
    expect(answers.length).toBe(2)
  })

  test('a quiet service recovers by the probe after a single fault', async () => {
    const instance = new Instance([['api', many]], one)
    instance.store.nextFaults.push('gone')
    await instance.ask('k')
    expect(instance.ledger.health).toBe('degraded')
    await vi.advanceTimersByTimeAsync(500)
    expect(instance.ledger.health).toBe('healthy')
  })

  test('answers to calls from before the store was given up neither end nor begin an outage', async () => {
    const instance = new Instance([['api', many]], one)
    const { store } = instance
    const begun = store.health.begin()
    await instance.lose()
    store.health.succeeded(begun)
    expect(instance.ledger.health).toBe('degraded')
    store.fault = undefined
    await vi.advanceTimersByTimeAsync(500)
    store.health.failed(begun, new StoreFault('slow', 'late'))
    expect(instance.ledger.health).toBe('healthy')
  })

  test('no timer is left when the store is closed', async () => {
    const instance = new Instance([['api', many]], one)
    await instance.lose()
    instance.ledger.close()
    instance.store.close()
    const sent = instance.store.sent.length
    await vi.advanceTimersByTimeAsync(10_000)
    expect(instance.store.sent.length).toBe(sent)
  })

  test('a listener that throws takes no decision away', async () => {
    const store = new FaultyStore()
    const thrown: unknown[] = []
    const keep = (error: unknown): void => void thrown.push(error)
    process.on('unhandledRejection', keep)
    const boom = (): never => {
      throw new Error('listener')
    }
    const hooks = { evicted() {}, rebased() {}, closed() {}, lost() {}, paused() {} }
    const ledger = store.open(
      'x',
      sources([['api', many]]),
      { ...hooks, degraded: boom, recovered: boom, faulty: boom },
      one,
    )
    store.nextFaults.push('gone')
    await expect(ledger.apply([0], ['k'], undefined, [1], true)).resolves.toMatchObject({ degraded: true })
    await expect(ledger.apply([0], ['k'], undefined, [1], true)).resolves.toMatchObject({ degraded: false })
    vi.useRealTimers()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', keep)
    expect(thrown.map(String)).toEqual(['Error: listener', 'Error: listener'])
  })
})

describe('a key that the store cannot answer for', () => {
  test('is decided by the mode and told of once; others are decided by the store', async () => {
    const instance = new Instance([['api', hour]], six)
    const { store } = instance
    store.unfit.add('bad')
    expect(await instance.admitted(20, () => 'bad')).toBe(10)
    expect(await instance.admitted(20, () => 'good')).toBe(20)
    expect(store.sent.length).toBe(40)
    expect(instance.ledger.health).toBe('healthy')
    expect(instance.told).toEqual([{ hook: 'faulty', policy: 'api', key: 'bad' }])
    await vi.advanceTimersByTimeAsync(5_000)
    expect(store.sent).not.toContain('probe')
  })

  test('is one of the last 1,000 that are remembered', async () => {
    const instance = new Instance([['api', hour]], six)
    const ask = async (key: string): Promise<void> => {
      instance.store.unfit.add(key)
      await instance.ask(key)
    }
    for (let key = 0; key <= 1_000; key++) await ask(`k${key}`)
    await ask('k1')
    expect(instance.told.length).toBe(1_001)
    await ask('k0')
    expect(instance.told.length).toBe(1_002)
  })
})

describe('what was used without the store', () => {
  test('is kept between two outages: a window that was used up stays used up', async () => {
    const instance = new Instance([['api', hour]], six)
    for (let outage = 0; outage < 3; outage++) {
      await instance.lose()
      expect(await instance.admitted(20, () => 'k')).toBe(outage === 0 ? 10 : 0)
      instance.store.fault = undefined
      await vi.advanceTimersByTimeAsync(500)
      expect(instance.ledger.health).toBe('healthy')
    }
  })

  test('acceptance 156: local use of 50 during an outage is all that passes beyond the limit after it', async () => {
    const rule = fixedWindow({ limit: 300, window: '1h' })
    const instance = new Instance([['api', rule]], six)
    expect(await instance.admitted(100, () => 'k')).toBe(100)
    await instance.lose()
    expect(await instance.admitted(100, () => 'k')).toBe(50)
    instance.store.fault = undefined
    await vi.advanceTimersByTimeAsync(500)
    expect(await instance.admitted(500, () => 'k')).toBe(200)
  })

  test('a store that flaps, failing every other call, gives no more than the share beyond the limit', async () => {
    const instance = new Instance([['api', hour]], six)
    let admitted = 0
    for (let call = 0; call < 400; call++) {
      if (call % 2 === 0) instance.store.nextFaults.push('slow')
      if ((await instance.ask('k')).allowed) admitted++
    }
    expect(admitted).toBe(60 + 10)
    // Nothing but the pairs that it is: each fault an outage of one decision.
    expect(instance.told.length).toBe(400)
  })

  test('is refunded where it was charged: also when the store is back', async () => {
    const instance = new Instance([['api', hour]], six)
    const central = await instance.ask('k', 7)
    await instance.lose()
    const local = await instance.ask('k', 7)
    expect(await instance.ledger.refund(central, 7)).toBe(0)
    instance.store.fault = undefined
    await vi.advanceTimersByTimeAsync(500)
    expect(await instance.ledger.refund(local, 7)).toBe(7)
    expect(await instance.ledger.refund(central, 7)).toBe(7)
    expect((await instance.ask('k', 1, false)).remaining).toBe(60)
  })

  test('permits are released and renewed where they were taken', async () => {
    const instance = new Instance([['jobs', concurrency({ limit: 6, permitTtl: '10s' })]], six)
    await instance.lose()
    const held = await instance.ask('k')
    expect((await instance.ask('k')).reason).toBe('concurrency')
    await vi.advanceTimersByTimeAsync(9_000)
    expect(await instance.ledger.renew(held)).toBe(true)
    await vi.advanceTimersByTimeAsync(9_000)
    expect((await instance.ask('k')).allowed).toBe(false)
    expect(await instance.ledger.renew(held)).toBe(true)
    expect(await instance.ledger.refund(held, 1)).toBe(1)
    expect(await instance.ledger.refund(held, 1)).toBe(0)
    expect(await instance.ledger.renew(held)).toBe(false)
    const next = await instance.ask('k')
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await instance.ledger.renew(next)).toBe(false)
  })

  test('is forgotten by a reset that the store answered', async () => {
    const instance = new Instance([['api', hour]], six)
    await instance.lose()
    await instance.ask('k', 10)
    await expect(instance.ledger.reset(0, 'k', undefined)).rejects.toMatchObject({ code: 'CATRACA_STORE_UNAVAILABLE' })
    instance.store.fault = undefined
    await vi.advanceTimersByTimeAsync(500)
    await instance.ledger.reset(0, 'k', undefined)
    await instance.lose()
    expect((await instance.ask('k', 10)).allowed).toBe(true)
  })

  test('comes over when policies are replaced during an outage', async () => {
    const instance = new Instance([['api', hour]], six)
    await instance.lose()
    await instance.ask('k', 8)
    instance.ledger.replace(sources([['api', fixedWindow({ limit: 120, window: '1h' })]]), six)
    expect((await instance.ask('k', 1, false)).remaining).toBe(12)
  })
})

describe('instances counted live', () => {
  const live = { expectedInstances: 'live' } as const

  test('are 1 when they were never counted', async () => {
    const instance = new Instance([['api', hour]], live)
    instance.store.fault = 'gone'
    expect(await instance.admitted(100, () => 'k')).toBe(60)
  })

  test('are those of the last count, kept while the store is gone; states come over when there are others', async () => {
    const instance = new Instance([['api', hour]], live)
    const { store } = instance
    store.liveInstances = 6
    await instance.ask('k')
    await instance.lose()
    store.liveInstances = 1
    expect(await instance.admitted(100, () => 'k')).toBe(10)
    store.fault = undefined
    store.liveInstances = 3
    await vi.advanceTimersByTimeAsync(500)
    await instance.ask('k')
    await instance.lose()
    store.liveInstances = undefined
    // A third of 60 less the 10 that were used before.
    expect(await instance.admitted(100, () => 'k')).toBe(10)
    expect(await instance.admitted(100, () => 'other')).toBe(20)
  })
})

test('no promise of a decision rejects, whatever the store does', async () => {
  const instance = new Instance(
    [
      ['a', hour],
      ['b', many, 'open'],
    ],
    { expectedInstances: 'live', ceiling: { limit: 1_000, windowUs: 1e6 } },
  )
  const { store } = instance
  const faults = ['gone', 'slow', 'refuses', 'key'] as const
  for (let call = 0; call < 1_000; call++) {
    // A fixed mixture of faults and good calls, longer outages among them.
    if (call % 7 < 3) store.nextFaults.push(faults[(call * 5) % 4] as 'gone')
    store.fault = call % 200 > 150 ? 'gone' : undefined
    store.liveInstances = (call % 5) - 1
    const decision = await instance.ask([`k${call % 9}`, 'x'])
    await instance.ask('p', 1, false)
    await instance.ledger.refund(decision, 1)
    await instance.ledger.renew(decision)
    if (call % 50 === 0) await vi.advanceTimersByTimeAsync(700)
  }
  vi.spyOn(store, 'probe').mockImplementation(() => {
    throw new TypeError('a defect')
  })
  store.fault = 'gone'
  await instance.lose()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(instance.ledger.health).toBe('degraded')
})

describe('policies that are replaced while a question is under way that the store does not answer', () => {
  const rule = tokenBucket({ limit: 2, window: '1h' })

  /** Asks about every policy, replaces them, and loses the store; what was decided, and by which policies. */
  async function across(before: readonly Named[], after: readonly Named[], instance: Instance, verb: 'apply' | 'upTo') {
    const { store, ledger } = instance
    let answer = (): void => {}
    store.until = new Promise<void>((resolve) => {
      answer = resolve
    })
    const members = before.map((_, member) => member)
    const keys = before.map(() => 'k')
    const ones = before.map(() => 1)
    const asked =
      verb === 'apply'
        ? ledger.apply(members, keys, undefined, ones, true)
        : ledger.applyUpTo(members, keys, undefined, 1)
    ledger.replace(sources(after), one)
    store.fault = 'gone'
    answer()
    const { allowed, stack } = await asked
    return { allowed, stack: stack.map(({ policy, charged }) => [policy, charged]) }
  }

  test.each(['apply', 'upTo'] as const)('are each charged by name, and one that is gone is not (%s)', async (verb) => {
    const before: Named[] = [
      ['gone', rule],
      ['a', rule],
      ['b', rule],
    ]
    const after: Named[] = [
      ['new', rule],
      ['b', rule],
      ['a', rule],
    ]
    const instance = new Instance(before, one)
    expect(await across(before, after, instance, verb)).toEqual({
      allowed: true,
      stack: [
        ['gone', 0],
        ['a', 1],
        ['b', 1],
      ],
    })
    const left = await instance.ask('k', 1, false)
    expect(left.stack.map(({ policy, remaining }) => [policy, remaining])).toEqual([
      ['new', 2],
      ['b', 1],
      ['a', 1],
    ])
  })

  test('and none is left: it passes, unless its policy is closed', async () => {
    const open: Named[] = [['a', rule]]
    expect(await across(open, [], new Instance(open, one), 'apply')).toMatchObject({ allowed: true })
    const closed: Named[] = [['a', rule, 'closed']]
    expect(await across(closed, [], new Instance(closed, one), 'apply')).toMatchObject({ allowed: false })
  })

  test('a place in a queue is that of the policy of the name', async () => {
    const queue = leakyQueue({ limit: 1, window: '10s', capacity: 1 })
    const instance = new Instance(
      [
        ['gone', queue],
        ['a', queue],
      ],
      one,
    )
    const { store, ledger } = instance
    let answer = (): void => {}
    store.until = new Promise<void>((resolve) => {
      answer = resolve
    })
    const asked = [0, 1].map((member) => ledger.reserve(member, 'k', undefined, 1, 60_000_000))
    ledger.replace(sources([['a', queue]]), one)
    store.fault = 'gone'
    answer()
    const decisions = await Promise.all(asked)
    expect(decisions.map(({ policy, allowed, charged }) => [policy, allowed, charged])).toEqual([
      ['gone', true, 0],
      ['a', true, 1],
    ])
    await expect(ledger.reserve(0, 'k', undefined, 1, 0)).resolves.toMatchObject({ allowed: false })
  })

  test('a key that is unfit is told of under the policy that was asked', async () => {
    const instance = new Instance([['gone', rule]], one)
    instance.store.nextFaults.push('key')
    const asked = instance.ask('k')
    instance.ledger.replace(sources([['new', rule]]), one)
    await asked
    expect(instance.told).toEqual([{ hook: 'faulty', policy: 'gone', key: 'k' }])
  })
})
