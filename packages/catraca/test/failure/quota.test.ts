import { quota, tokenBucket } from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Decision, type Source } from '../../src/core/decision.ts'
import { QuotaShares } from '../../src/stores/failure/quota-shares.ts'
import { Instance, sources } from './faulty-store.ts'

const noon = Date.UTC(2027, 0, 1, 12)
const untilMidnightMs = 43_200_000

beforeEach(() => vi.useFakeTimers({ now: noon }))
afterEach(() => vi.useRealTimers())

const day = quota({ limit: 600, period: 'day' })
const six = { expectedInstances: 6 } as const

/** An instance to which the store said that so many of 600 are used, and that then lost it. */
async function lostAfter(used: number): Promise<Instance> {
  const instance = new Instance([['daily', day]], six)
  if (used > 0) await instance.ask('k', used)
  await instance.lose()
  return instance
}

async function back(instance: Instance): Promise<void> {
  instance.store.fault = undefined
  await vi.advanceTimersByTimeAsync(500)
}

describe('a quota without the store', () => {
  test('grants what was left when last seen ÷ instances: 480 of 600 used and N=6: 20', async () => {
    const instance = await lostAfter(480)
    expect((await instance.ask('k', 1, false)).remaining).toBe(20)
    expect(await instance.admitted(100, () => 'k')).toBe(20)
  })

  test('grants nothing where less was left than there are instances', async () => {
    const instance = await lostAfter(595)
    expect(await instance.admitted(100, () => 'k')).toBe(0)
  })

  test('grants limit ÷ instances to a key never seen: 100, and at least 1', async () => {
    const instance = await lostAfter(0)
    expect(await instance.admitted(200, () => 'other')).toBe(100)
    const tiny = new Instance([['daily', quota({ limit: 2, period: 'day' })]], six)
    await tiny.lose()
    expect(await tiny.admitted(10, () => 'k')).toBe(1)
  })

  test('tells a wait of 1 s where the store may have units left, and until the period ends where it has none', async () => {
    const instance = await lostAfter(480)
    await instance.ask('k', 20)
    expect(await instance.ask('k')).toMatchObject({ allowed: false, reason: 'quota', retryAfterMs: 1_000, charged: 0 })
    const empty = await lostAfter(600)
    const refused = await empty.ask('k')
    expect(refused).toMatchObject({ allowed: false, reason: 'quota', retryAfterMs: untilMidnightMs })
    expect(refused.resetAfterMs).toBe(untilMidnightMs)
    expect(await empty.ask('k', 601)).toMatchObject({ reason: 'impossible', retryAfterMs: Infinity })
  })

  test('begins anew with the next period', async () => {
    const instance = await lostAfter(600)
    expect((await instance.ask('k')).allowed).toBe(false)
    await vi.advanceTimersByTimeAsync(untilMidnightMs)
    expect(await instance.admitted(200, () => 'k')).toBe(100)
  })

  test('is charged with its stack or not at all', async () => {
    const instance = new Instance(
      [
        ['daily', day],
        ['rate', tokenBucket({ limit: 60, window: '1h' })],
      ],
      six,
    )
    await instance.lose()
    expect(await instance.admitted(50, () => 'k')).toBe(10)
    expect((await instance.ask('k', 1, false)).policies[0]?.remaining).toBe(90)
    const refused = await instance.ask(['k', 'fresh'], [91, 1])
    expect(refused.policies.map(({ allowed }) => allowed)).toEqual([false, true])
    expect((await instance.ask(['k', 'fresh'], 10)).allowed).toBe(true)
  })

  test('takes a refund back until it was charged to the store', async () => {
    const instance = await lostAfter(0)
    const decision = await instance.ask('k', 30)
    expect(await instance.ledger.refund(decision, 10)).toBe(10)
    expect((await instance.ask('k', 1, false)).remaining).toBe(80)
    await back(instance)
    expect(instance.store.charged).toEqual([
      { key: 'lost first', units: 1 },
      { key: 'k', units: 20 },
    ])
    expect(await instance.ledger.refund(decision, 10)).toBe(0)
  })
})

describe('after the outage', () => {
  test('acceptance 156: a quota is written back: 50 granted without the store and the sum of the day is 600', async () => {
    const instance = await lostAfter(300)
    const granted = await instance.admitted(500, () => 'k')
    expect(granted).toBe(50)
    await back(instance)
    expect(instance.store.charged).toContainEqual({ key: 'k', units: 50 })
    expect(await instance.admitted(500, () => 'k')).toBe(600 - 300 - granted)
  })

  test('each key is charged once, and what could not be charged after the next outage', async () => {
    const instance = await lostAfter(0)
    const { store } = instance
    await instance.ask('a', 3)
    await instance.ask('b', 4)
    store.unfit.add('a')
    await back(instance)
    const charges = (): string[] => store.charged.map(({ key, units }) => `${key} ${units}`)
    expect(charges()).toEqual(['lost first 1', 'b 4'])
    store.unfit.clear()
    await instance.lose()
    await back(instance)
    expect(charges()).toEqual(['lost first 1', 'b 4', 'a 3', 'lost first 1'])
    await instance.lose()
    await back(instance)
    expect(charges().filter((charge) => charge.startsWith('a'))).toEqual(['a 3'])
  })

  test('a second outage before the store was asked again grants only what the first left', async () => {
    const instance = await lostAfter(480)
    expect(await instance.admitted(15, () => 'k')).toBe(15)
    await back(instance)
    await instance.lose()
    expect(await instance.admitted(100, () => 'k')).toBe(5)
    await back(instance)
    // Asked again, the store knows of 500: 100 left, 16 for each.
    expect((await instance.ask('k', 1, false)).remaining).toBe(100)
    await instance.lose()
    expect(await instance.admitted(100, () => 'k')).toBe(16)
  })

  test('what was granted in a period that is over is not charged to the next', async () => {
    const instance = await lostAfter(0)
    await instance.ask('k', 10)
    await vi.advanceTimersByTimeAsync(untilMidnightMs)
    await back(instance)
    expect(instance.store.charged).toEqual([])
  })

  test('what the store does not know yet still counts when it answers', async () => {
    const instance = await lostAfter(300)
    await instance.ask('k', 50)
    instance.store.unfit.add('k')
    await back(instance)
    instance.store.unfit.clear()
    // The store says 300 used and does not know of 50.
    expect((await instance.ask('k', 1, false)).remaining).toBe(300)
    await instance.lose()
    expect((await instance.ask('k')).allowed).toBe(false)
  })

  test('what a policy granted that is gone by then is not charged', async () => {
    const instance = await lostAfter(0)
    await instance.ask('k', 10)
    instance.ledger.replace(sources([['other', day]]), six)
    await back(instance)
    expect(instance.store.charged).toEqual([])
    expect(instance.store.sent).not.toContain('charge')
  })

  test('nothing more is charged when the store is lost again meanwhile', async () => {
    const instance = new Instance([['daily', day]], six)
    await instance.lose()
    for (let key = 0; key < 100; key++) await instance.ask(`k${key}`)
    const { store } = instance
    vi.spyOn(store, 'probe').mockImplementation(async () => {
      store.fault = 'refuses'
    })
    await vi.advanceTimersByTimeAsync(500)
    expect(store.sent.filter((call) => call === 'charge').length).toBe(16)
    vi.restoreAllMocks()
    await back(instance)
    expect(store.charged.length).toBe(101)
  })

  test('a refund from the period before takes nothing from this one', async () => {
    const instance = await lostAfter(0)
    const old = await instance.ask('k', 10)
    await vi.advanceTimersByTimeAsync(untilMidnightMs)
    await instance.ask('k', 10)
    expect(await instance.ledger.refund(old, 10)).toBe(0)
  })

  test('a reset forgets what was granted and seen', async () => {
    const instance = await lostAfter(480)
    await instance.ask('k', 20)
    await back(instance)
    await instance.ledger.reset(0, 'k', undefined)
    await instance.lose()
    expect((await instance.ask('k', 1, false)).remaining).toBe(100)
  })

  test('at most 100,000 keys are remembered, those asked for last', () => {
    const shares = new QuotaShares()
    const [source] = sources([['daily', day]])
    const seen = (key: string): void =>
      shares.seen(new Decision(source as Source, key, 0, noon * 1_000, 1, 0, 0, 600, 0, 0))
    for (let key = 0; key < 100_000; key++) seen(`k${key}`)
    seen('k0')
    seen('new')
    const left = (key: string) => shares.ask(source as Source, key, 1, 6, noon * 1_000).remaining
    expect([left('k0'), left('k1'), left('k2'), left('new')]).toEqual([0, 100, 0, 0])
  })

  test('1,000 keys are charged, 16 at a time', async () => {
    const instance = new Instance([['daily', day]], six)
    await instance.lose()
    for (let key = 0; key < 1_000; key++) await instance.ask(`k${key}`, 2)
    let [under, most] = [0, 0]
    const charge = vi.spyOn(instance.ledger['central'], 'charge').mockImplementation(async () => {
      most = Math.max(most, ++under)
      await new Promise((resolve) => setTimeout(resolve, 1))
      under--
    })
    await back(instance)
    await vi.advanceTimersByTimeAsync(100)
    expect([most, under]).toEqual([16, 0])
    expect(charge).toHaveBeenCalledTimes(1_001)
  })

  test('plans of one name count a key together', async () => {
    const instance = new Instance(
      [
        ['daily', day],
        ['daily', quota({ limit: 1_200, period: 'day' })],
      ],
      six,
    )
    const ask = (member: number, cost: number, charge = true) =>
      instance.ledger.apply([member], ['k'], undefined, [cost], charge)
    await ask(0, 300)
    await ask(0, 1)
    instance.store.nextFaults.push('refuses')
    instance.store.fault = 'gone'
    await ask(0, 49)
    // 301 used when last seen: 299 ÷ 6 = 49 under the plan of 600, 899 ÷ 6 = 149 under that of 1,200.
    expect((await ask(0, 1)).allowed).toBe(false)
    expect((await ask(1, 1, false)).remaining).toBe(100)
  })
})
