import { createLimiter, fixedWindow, quota, type SharedLimiter, slidingLog } from 'catraca'
import { type PolicyDocument, policyProblems } from 'catraca/policy'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { seededRandom } from '../../src/core/random.ts'
import { leaseBounds } from '../../src/stores/lease/terms.ts'
import { expectFailure } from '../contract/failure.ts'
import { FaultyStore } from '../failure/faulty-store.ts'
import { type FleetTerms, LeasedFleet } from './leased-fleet.ts'

const secondUs = 1_000_000
const noonUs = Date.UTC(2027, 0, 1, 12) * 1_000
const perSecond = fixedWindow({ limit: 1_000, window: '1s' })
const block = 20
const fleetSize = 6
const runs = 200
const onDemand: FleetTerms = { block, ttlUs: 10 * secondUs, refill: false, endsWithWindow: true }

/** The most units that a fleet under random load, 30 % above the limit, admits in one of 5 windows. */
function mostInAWindow(seed: number, terms: FleetTerms): number {
  const random = seededRandom(seed)
  const fleet = new LeasedFleet(perSecond, fleetSize, terms)
  const admitted: number[] = []
  // Some instances get far more than others, as behind a balancer that keeps connections.
  const weights = Array.from({ length: fleetSize }, () => random() ** 2)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const instanceOf = (): number => {
    let left = random() * total
    return Math.max(
      0,
      weights.findIndex((weight) => (left -= weight) < 0),
    )
  }
  for (let nowUs = noonUs; nowUs < noonUs + 5 * secondUs; nowUs += Math.ceil((random() * secondUs) / 650)) {
    if (!fleet.ask(instanceOf(), nowUs)) continue
    const window = Math.floor((nowUs - noonUs) / secondUs)
    admitted[window] = (admitted[window] ?? 0) + 1
  }
  return Math.max(...admitted)
}

describe('two tiers', () => {
  test('acceptance 87: 1000 per second, 6 instances, blocks of 20 kept over windows: at most 1000 + 6 × 19, and more than 1000', () => {
    let most = 0
    for (let seed = 1; seed <= runs; seed++)
      most = Math.max(most, mostInAWindow(seed, { ...onDemand, endsWithWindow: false }))
    expect(most).toBeLessThanOrEqual(1_000 + fleetSize * (block - 1))
    expect(most).toBeGreaterThan(1_000)
  })

  test('acceptance 87: with the next block asked for in the background: at most 1000 + 6 × 26, the published bound of a kept lease', () => {
    const { over } = leaseBounds(slidingLog({ limit: 1_000, window: '1s' }), { block }, fleetSize)
    expect(over).toBe(156)
    for (let seed = 1; seed <= runs; seed++) {
      expect(mostInAWindow(seed, { ...onDemand, refill: true, endsWithWindow: false })).toBeLessThanOrEqual(
        1_000 + over,
      )
    }
  })

  test('acceptance 87: leases that end with the window: exactly 1000 in a window that is asked for more', () => {
    expect(leaseBounds(perSecond, { block }, fleetSize).over).toBe(0)
    for (let seed = 1; seed <= runs; seed++) {
      for (const refill of [false, true]) {
        const most = mostInAWindow(seed, { ...onDemand, refill })
        expect(most).toBeLessThanOrEqual(1_000)
        expect(most).toBeGreaterThan(900)
      }
    }
  })

  test('acceptance 88: 100 per window, 6 instances, blocks of 10: five ask once, the sixth gets the rest; 55 pass, 45 are stranded until they go back', () => {
    const rule = fixedWindow({ limit: 100, window: '1s' })
    const fleet = new LeasedFleet(rule, fleetSize, { ...onDemand, block: 10 })
    // A key gets blocks as large as its use of late, so each instance uses ten in the window before.
    for (let at = 0; at < fleetSize; at++) for (let n = 0; n < 10; n++) fleet.ask(at, noonUs + 500_000)
    const nowUs = noonUs + secondUs + 500_000
    let admitted = 0
    for (let at = 0; at < 5; at++) if (fleet.ask(at, nowUs)) admitted++
    expect(admitted).toBe(5)
    for (let n = 0; n < 200; n++) if (fleet.ask(5, nowUs)) admitted++
    expect(admitted).toBe(55)
    const stranded = [0, 1, 2, 3, 4].map((at) => fleet.heldBy(at))
    expect(stranded).toEqual([9, 9, 9, 9, 9])
    expect(45).toBeLessThanOrEqual(leaseBounds(rule, { block: 10 }, fleetSize).under)
    // What is not used can be returned.
    for (let at = 0; at < 5; at++) fleet.close(at, nowUs)
    for (let n = 0; n < 200; n++) if (fleet.ask(5, nowUs)) admitted++
    expect(admitted).toBe(100)
  })

  test('acceptance 89: what is billed goes to the centre each time: a quota, and a policy that says exact, refuse a lease', () => {
    expectFailure(
      () =>
        createLimiter(quota({ limit: 500_000, period: 'day' }), {
          name: 'daily',
          store: new FaultyStore(),
          lease: { block: 20 },
        }),
      { code: 'CATRACA_LEASE_REFUSED', path: 'options.lease', says: ['quota', 'leave it out'] },
    )
    const lease = { block: 20 }
    const document: PolicyDocument = {
      version: 1,
      policies: {
        daily: { per: 'client', rule: { algorithm: 'quota', limit: 500_000, period: 'day' }, lease },
        billed: { per: 'client', rule: { algorithm: 'fixed-window', limit: 100, window: '1m' }, lease, exact: true },
        free: { per: 'client', rule: { algorithm: 'fixed-window', limit: 100, window: '1m' }, lease },
      },
    }
    expect(policyProblems(document).map(({ code, place }) => [code, place.join('.')])).toEqual([
      ['CATRACA_LEASE_REFUSED', 'policies.daily.lease'],
      ['CATRACA_LEASE_REFUSED', 'policies.billed.lease'],
    ])
  })
})

describe('a fleet whose store is gone', () => {
  beforeEach(() => vi.useFakeTimers({ now: noonUs / 1_000 }))
  afterEach(() => vi.useRealTimers())

  type Instance = { store: FaultyStore; limiter: SharedLimiter<ReturnType<typeof fixedWindow>> }

  function fleet(): Instance[] {
    return Array.from({ length: fleetSize }, () => {
      const store = new FaultyStore()
      const limiter = createLimiter(fixedWindow({ limit: 600, window: '1m' }), {
        name: 'api',
        store,
        lease: { block },
        storeFailure: { expectedInstances: fleetSize },
      })
      store.fault = 'refuses'
      return { store, limiter }
    })
  }

  async function admitted({ limiter }: Instance, asked: number): Promise<number> {
    let count = 0
    for (let n = 0; n < asked; n++) if ((await limiter.take('client')).allowed) count++
    return count
  }

  test('acceptance 151: 600 per minute over 6 instances stay 600 in all, whatever the spread; a client of one instance gets 100', async () => {
    const even = fleet()
    let sum = 0
    for (const one of even) sum += await admitted(one, 200)
    expect(sum).toBe(600)
    const uneven = fleet()
    sum = 0
    for (const [at, one] of uneven.entries()) sum += await admitted(one, 20 * 2 ** at)
    expect(sum).toBe(20 + 40 + 80 + 100 + 100 + 100)
    expect(await admitted(fleet()[0] as Instance, 600)).toBe(100)
  })

  test('acceptance 151: units in hand are spent first, then the share', async () => {
    const [one] = fleet() as [Instance]
    one.store.fault = undefined
    // Warm: the key gets larger blocks with use.
    while (one.store.sent.length < 6) await one.limiter.take('client')
    one.store.fault = 'refuses'
    const held = await admitted(one, 1_000)
    expect(held).toBeGreaterThan(100)
    expect(held).toBeLessThanOrEqual(100 + leaseBounds(fixedWindow({ limit: 600, window: '1m' }), { block }, 1).held)
  })
})
