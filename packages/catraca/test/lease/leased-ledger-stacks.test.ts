import { type Decision, fixedWindow, type Rule, slidingLog } from 'catraca'
import { describe, expect, test } from 'vitest'
import type { Source } from '../../src/core/decision.ts'
import { LeasedLedger } from '../../src/stores/lease/leased-ledger.ts'
import { FaultyStore } from '../failure/faulty-store.ts'
import { times } from '../redis/support.ts'
import { frozen, hundred, Process, settle, silent } from './setup.ts'

frozen()

const few: Rule = slidingLog({ limit: 10, window: '1h' })

describe('a stack of which all is leased', () => {
  type Both = { readonly user: Rule; readonly tenant: Rule }
  const rules: Both = { user: few, tenant: hundred }
  const keys = (user: string) => ({ user, tenant: 't' })
  const start = (): Process<Both> => new Process<Both>(rules, { block: 8 })
  const left = async (one: Process<Both>, user: string): Promise<number[]> =>
    (await one.beside().limiter.peek(keys(user))).policies.map(({ remaining }) => remaining)
  const shown = async (one: Process<Both>, user: string): Promise<number[]> =>
    (await one.limiter.peek(keys(user))).policies.map(({ remaining }) => remaining)

  test('is decided without a trip once units of all are in hand', async () => {
    const one = start()
    for (let request = 0; request < 4; request++) expect((await one.limiter.take(keys('u'))).allowed).toBe(true)
    await settle()
    const decision = one.limiter.tryTake(keys('u'))
    expect(decision).toMatchObject({ allowed: true, charged: 1 })
    expect(decision?.policies.map(({ policy, allowed }) => [policy, allowed])).toEqual([
      ['user', true],
      ['tenant', true],
    ])
    await settle()
    expect(await shown(one, 'u')).toEqual([5, 95])
  })

  test('a refusal by one charges nothing of the other, wherever its units came from', async () => {
    const one = start()
    const answers: Decision[] = []
    for (let request = 0; request < 14; request++) answers.push(await one.limiter.take(keys('u')))
    await settle()
    expect(answers.map(({ allowed }) => allowed)).toEqual(times(14, (index) => index < 10))
    const refused = answers[13] as Decision
    expect(refused).toMatchObject({ policy: 'user', reason: 'limited', charged: 0 })
    expect(refused.policies.map(({ policy, allowed }) => [policy, allowed])).toEqual([
      ['user', false],
      ['tenant', true],
    ])
    expect(await one.limiter.refund(refused)).toBe(0)
    expect(await shown(one, 'u')).toEqual([0, 90])
    const other = one.beside()
    one.limiter.close()
    await settle()
    expect(await left(other, 'u')).toEqual([0, 90])
  })

  test('many at once: what one policy has not, the other gets back', async () => {
    const one = start()
    const answers = await Promise.all(times(40, () => one.limiter.take(keys('u'))))
    await settle()
    expect(answers.filter(({ allowed }) => allowed).length).toBe(10)
    expect(await shown(one, 'u')).toEqual([0, 90])
    const others = await Promise.all(times(100, (index) => one.limiter.take(keys(`v${index % 20}`))))
    await settle()
    expect(others.filter(({ allowed }) => allowed).length).toBe(90)
  })

  test('tryTake that finds units of one only takes none', async () => {
    const one = start()
    for (let request = 0; request < 6; request++) await one.limiter.take(keys('u'))
    await settle()
    const before = await shown(one, 'u')
    expect(one.limiter.tryTake(keys('nobody yet'))).toBeUndefined()
    expect(one.limiter.tryTake(keys('u'), { cost: 9 })).toBeUndefined()
    await settle()
    expect(await shown(one, 'u')).toEqual(before)
  })

  test('is given back as a whole, once per receipt', async () => {
    const one = start()
    for (let request = 0; request < 4; request++) await one.limiter.take(keys('u'))
    const decision = await one.limiter.take(keys('u'), { cost: 2 })
    expect(decision.charged).toBe(2)
    await settle()
    expect(await one.limiter.refund(decision)).toBe(2)
    expect(await one.limiter.refund(decision)).toBe(0)
    await settle()
    expect(await shown(one, 'u')).toEqual([6, 96])
  })

  test('a cost above the block of one, or above its limit', async () => {
    const one = start()
    expect((await one.limiter.take(keys('u'), { cost: 9 })).allowed).toBe(true)
    expect(await one.limiter.take(keys('v'), { cost: 11 })).toMatchObject({ policy: 'user', reason: 'impossible' })
    await settle()
    expect(await shown(one, 'v')).toEqual([10, 91])
  })

  test('without the store: degraded as a whole, by the modes', async () => {
    const one = new Process<Both>(rules, { block: 8 }, { onStoreFailure: 'closed' })
    one.store.fault = 'gone'
    expect(await one.limiter.take(keys('u'))).toMatchObject({ allowed: false, degraded: true, reason: 'store-closed' })
    one.store.fault = undefined
  })
})

describe('a stack of which some is leased', () => {
  const issuer = { release: () => {} }
  const sources: Source[] = [
    { name: 'leased', rule: hundred, issuer, lease: { block: 8, ttlUs: 10_000_000 } },
    { name: 'exact', rule: few, issuer },
    { name: 'window', rule: fixedWindow({ limit: 50, window: '1h' }), issuer },
  ]
  const names = ['k', 'e', 'w']

  function open(store = new FaultyStore()): { store: FaultyStore; ledger: LeasedLedger } {
    return { store, ledger: new LeasedLedger(store, 'api', sources, silent, { expectedInstances: 1 }) }
  }

  const take = (ledger: LeasedLedger, cost = 1, charge = true): Promise<Decision> =>
    ledger.apply([0, 1, 2], names, undefined, [cost, cost, cost], charge)
  const shown = async (ledger: LeasedLedger): Promise<number[]> =>
    (await take(ledger, 1, false)).stack.map(({ remaining }) => remaining)

  test('has units in hand first, then one trip for all others', async () => {
    const { store, ledger } = open()
    for (let request = 0; request < 4; request++) expect((await take(ledger)).allowed).toBe(true)
    await settle()
    store.sent.length = 0
    expect(ledger.tryApply([0, 1, 2], names, undefined, [1, 1, 1])).toBeUndefined()
    const decision = await take(ledger)
    expect(decision.stack.map(({ source, charged }) => [source.name, charged])).toEqual([
      ['leased', 1],
      ['exact', 1],
      ['window', 1],
    ])
    expect(store.sent.filter((call) => call === 'apply').length).toBe(1)
    expect(await shown(ledger)).toEqual([95, 5, 45])
  })

  test('a refusal by one that is not leased gives back what the leased one gave', async () => {
    const { ledger } = open()
    for (let request = 0; request < 10; request++) await take(ledger)
    for (let request = 0; request < 5; request++) {
      const refused = await take(ledger)
      expect(refused).toMatchObject({ allowed: false, reason: 'limited' })
      expect(refused.source.name).toBe('exact')
      expect(refused.stack.map(({ allowed, charged }) => [allowed, charged])).toEqual([
        [true, 0],
        [false, 0],
        [true, 0],
      ])
      await settle()
    }
    expect(await shown(ledger)).toEqual([90, 0, 40])
  })

  test('a refusal by the leased one asks the others nothing', async () => {
    const { store, ledger } = open()
    await ledger.apply([0], ['k'], undefined, [100], true)
    store.sent.length = 0
    const refused = await take(ledger)
    expect(refused.stack.map(({ allowed, charged }) => [allowed, charged])).toEqual([
      [false, 0],
      [true, 0],
      [true, 0],
    ])
    await settle()
    expect(store.sent).toEqual(['grant'])
    expect(await shown(ledger)).toEqual([0, 10, 50])
  })

  test('without the store: what was in hand is used, and nothing of it is lost to a refusal', async () => {
    const { store, ledger } = open()
    for (let request = 0; request < 4; request++) await take(ledger)
    await settle()
    const before = await shown(ledger)
    store.fault = 'gone'
    expect(await take(ledger)).toMatchObject({ allowed: true, degraded: true })
    store.fault = undefined
    expect(before[0]).toBe(96)
  })
})
