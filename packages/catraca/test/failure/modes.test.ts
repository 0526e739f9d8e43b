import { concurrency, fixedWindow, gcra, leakyQueue, quota, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ceilingShare, shareOf } from '../../src/stores/failure/share.ts'
import { kindNames, make } from '../contract/kinds.ts'
import { Instance } from './faulty-store.ts'

/** A minute has just begun. */
const noon = Date.UTC(2027, 0, 1, 12)

beforeEach(() => vi.useFakeTimers({ now: noon }))
afterEach(() => vi.useRealTimers())

const five = tokenBucket({ limit: 5, window: '1m' })

describe('modes without the store', () => {
  test('acceptance 148: open: all of 1,000 requests pass a limit of 5, uncharged', async () => {
    const instance = new Instance([['api', five, 'open']], { expectedInstances: 1 })
    await instance.lose()
    for (let request = 0; request < 1_000; request++) {
      const decision = await instance.ask('k')
      expect(decision).toMatchObject({ allowed: true, degraded: true, charged: 0, remaining: 5, reason: 'ok' })
    }
  })

  test('acceptance 148: closed: all are refused with reason store-closed and a wait of 1 s', async () => {
    const instance = new Instance([['api', five, 'closed']], { expectedInstances: 1 })
    await instance.lose()
    for (let request = 0; request < 10; request++) {
      const decision = await instance.ask(`k${request}`)
      expect(decision).toMatchObject({
        allowed: false,
        degraded: true,
        charged: 0,
        remaining: 0,
        reason: 'store-closed',
        retryAfterMs: 1_000,
      })
    }
  })

  test('acceptance 153: the default mode is local: a limit of 5 admits 5 of 100', async () => {
    const instance = new Instance([['api', five]], { expectedInstances: 1 })
    instance.store.fault = 'gone'
    expect(await instance.admitted(100, () => 'k')).toBe(5)
    const refused = await instance.ask('k')
    expect(refused).toMatchObject({ allowed: false, degraded: true, reason: 'limited', retryAfterMs: 12_000 })
  })

  test('a stack with one closed policy is refused whole and charges no other', async () => {
    const instance = new Instance(
      [
        ['a', five],
        ['login', five, 'closed'],
        ['b', five, 'open'],
      ],
      { expectedInstances: 1 },
    )
    await instance.lose()
    const decision = await instance.ask('k')
    expect(decision).toMatchObject({ allowed: false, reason: 'store-closed', policy: 'login', charged: 0 })
    expect(decision.policies.map(({ allowed }) => allowed)).toEqual([true, false, true])
    expect(decision.stack.every((one) => one.degraded && one.charged === 0)).toBe(true)
  })

  test('local policies of a stack are charged all or none; open ones pass beside them', async () => {
    const instance = new Instance(
      [
        ['user', tokenBucket({ limit: 2, window: '1m' })],
        ['tenant', tokenBucket({ limit: 3, window: '1m' })],
        ['extra', five, 'open'],
      ],
      { expectedInstances: 1 },
    )
    await instance.lose()
    const ask = (user: string) => instance.ask([user, 't', 'x'])
    const first = await ask('u1')
    expect(first).toMatchObject({ allowed: true, degraded: true, policy: 'user', charged: 1 })
    expect(first.stack.map(({ charged, remaining, degraded }) => [charged, remaining, degraded])).toEqual([
      [1, 1, true],
      [1, 2, true],
      [0, 5, true],
    ])
    await ask('u1')
    // The third is refused by the user, so the tenant still has the one left that another user takes.
    expect((await ask('u1')).policies.map(({ allowed }) => allowed)).toEqual([false, true, true])
    expect((await ask('u2')).allowed).toBe(true)
    expect((await ask('u2')).policy).toBe('tenant')
  })

  test('a peek says what would be, is degraded, and charges nothing', async () => {
    const instance = new Instance(
      [
        ['a', five],
        ['q', quota({ limit: 6, period: 'day' })],
      ],
      { expectedInstances: 1, ceiling: { limit: 100, windowUs: 1e6 } },
    )
    await instance.lose()
    for (let peek = 0; peek < 3; peek++) {
      const decision = await instance.ask('p', 2, false)
      expect(decision).toMatchObject({ allowed: true, degraded: true, charged: 0 })
      expect(decision.policies.map(({ remaining }) => remaining)).toEqual([5, 6])
    }
  })

  test('each answer of a stack of many modes is one decision with a receipt only where something was charged', async () => {
    const open = new Instance(
      [
        ['a', five, 'open'],
        ['b', five, 'open'],
      ],
      { expectedInstances: 1 },
    )
    await open.lose()
    expect(await open.ask('k')).toMatchObject({ allowed: true, charged: 0, receipt: '' })
  })
})

describe('the share of an instance', () => {
  test('acceptance 150: pro 600 per minute burst 90, N=6: 100 per minute burst 15 per client', async () => {
    const pro = tokenBucket({ limit: 600, window: '1m', burst: 90 })
    expect(shareOf(pro, 6).options).toEqual({ limit: 100, windowMs: 60_000, burst: 15 })
    const instance = new Instance([['pro', pro]], { expectedInstances: 6 })
    await instance.lose()
    expect(await instance.admitted(90, () => 'acme')).toBe(15)
    expect(await instance.admitted(90, () => 'other')).toBe(15)
    // 100 per minute come back: 600 ms for each.
    await vi.advanceTimersByTimeAsync(6_000)
    expect(await instance.admitted(90, () => 'acme')).toBe(10)
  })

  test('acceptance 150: all clients of one instance together pass at most ceiling ÷ N = 100 a second, then reason ceiling', async () => {
    const pro = tokenBucket({ limit: 600, window: '1m', burst: 90 })
    const ceiling = { limit: 600, windowUs: 1_000_000 }
    const instance = new Instance([['pro', pro]], { expectedInstances: 6, ceiling })
    await instance.lose()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(await instance.admitted(500, (request) => `client ${request % 50}`)).toBe(100)
    const refused = await instance.ask('a new client')
    expect(refused).toMatchObject({ allowed: false, reason: 'ceiling', degraded: true, charged: 0, remaining: 0 })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
    expect(refused.retryAfterMs).toBeLessThanOrEqual(2_000)
  })

  test('acceptance 90: L=60 and N=6: each instance admits 10, all 60, and a client of one instance sees 10', async () => {
    const rule = fixedWindow({ limit: 60, window: '1m' })
    const fleet = Array.from({ length: 6 }, () => new Instance([['api', rule]], { expectedInstances: 6 }))
    for (const instance of fleet) await instance.lose()
    const admitted = []
    for (const instance of fleet) admitted.push(await instance.admitted(60, () => 'spread'))
    expect(admitted).toEqual([10, 10, 10, 10, 10, 10])
    expect(await fleet[0]?.admitted(60, () => 'one-sided')).toBe(10)
  })

  test.each(kindNames)('of %s is its limit ÷ instances, rounded down, and at least 1', (kind) => {
    expect([6, 7, 100].map((instances) => shareOf(make(kind, 20), instances).limit)).toEqual([3, 2, 1])
    const rule = make(kind, 20)
    expect(shareOf(rule, 1)).toBe(rule)
    expect(shareOf(rule, 6).algorithm).toBe(rule.algorithm)
  })

  test('keeps all other options of a rule', () => {
    const rules = [
      fixedWindow({ limit: 60, window: '1.5s', anchor: 'first' }),
      slidingLog({ limit: 60, window: '0.001ms' }),
      slidingCounter({ limit: 60, window: '36500d' }),
      slidingCounter({ limit: 60, window: '7s', subWindows: 7 }),
      gcra({ limit: 60, window: '7s', burst: 60 }),
      leakyQueue({ limit: 60, window: '7s', capacity: 60 }),
      quota({ limit: 60, period: 'month', timeZone: 'America/Sao_Paulo', anchor: '2027-01-31' }),
      concurrency({ limit: 60, permitTtl: '3s' }),
    ]
    for (const rule of rules) {
      const divided = Object.fromEntries(
        Object.entries(rule.options).map(([name, value]) => [name, value === 60 ? 10 : value]),
      )
      expect(shareOf(rule, 6).options).toEqual(divided)
    }
  })

  test('of a bucket is made smaller where it could not be counted exactly, never larger and never refused', () => {
    const rule = tokenBucket({ limit: 1e12, window: '36500d' })
    for (const instances of [2, 3, 7, 11, 13, 99_991, 100_000]) {
      const { limit, burst } = shareOf(rule, instances).options as { limit: number; burst: number }
      expect(limit).toBeLessThanOrEqual(1e12 / instances)
      expect(burst).toBeLessThanOrEqual(1e12 / instances)
      expect(limit).toBeGreaterThan(0.99 * (1e12 / instances))
      expect(Math.min(limit, burst)).toBeGreaterThanOrEqual(1)
    }
  })

  test('of the ceiling is at least 1 per window', () => {
    expect(ceilingShare({ limit: 5, windowUs: 1e6 }, 6).options).toEqual({ limit: 1, windowMs: 1_000 })
    expect(ceilingShare({ limit: 600, windowUs: 1e6 }, 7).options).toEqual({ limit: 85, windowMs: 1_000 })
  })

  test('a cost above the share that the limit allows is refused with a wait of 1 s, one above the limit for ever', async () => {
    const instance = new Instance([['api', tokenBucket({ limit: 60, window: '1m' })]], { expectedInstances: 6 })
    await instance.lose()
    expect(await instance.ask('k', 11)).toMatchObject({ allowed: false, reason: 'limited', retryAfterMs: 1_000 })
    expect(await instance.ask('k', 61)).toMatchObject({ allowed: false, reason: 'impossible', retryAfterMs: Infinity })
    expect(await instance.ask('k', 10)).toMatchObject({ allowed: true, charged: 10, remaining: 0 })
  })
})

describe('the ceiling', () => {
  const wide = tokenBucket({ limit: 1_000, window: '1m' })
  const ceiling = { limit: 60, windowUs: 60_000_000 }

  test('counts a request of a stack once, at its largest cost', async () => {
    const instance = new Instance(
      [
        ['a', wide],
        ['b', wide],
        ['free', wide, 'open'],
      ],
      { expectedInstances: 6, ceiling },
    )
    instance.store.fault = 'gone'
    expect((await instance.ask('k', [2, 6, 100])).allowed).toBe(true)
    const second = await instance.ask('k', [2, 4, 100])
    expect(second).toMatchObject({ allowed: true, remaining: 0 })
    expect(await instance.ask('k', 1)).toMatchObject({ allowed: false, reason: 'ceiling' })
  })

  test('refuses the stack and charges none of its policies', async () => {
    const instance = new Instance(
      [
        ['a', wide],
        ['b', quota({ limit: 60, period: 'day' })],
      ],
      { expectedInstances: 6, ceiling },
    )
    instance.store.fault = 'gone'
    await instance.ask('k', 9)
    const refused = await instance.ask('k', [2, 1])
    expect(refused).toMatchObject({ allowed: false, reason: 'ceiling', charged: 0 })
    expect(refused.stack.map(({ reason }) => reason)).toEqual(['ceiling', 'ceiling'])
    const last = await instance.ask('k', 1)
    expect(last.allowed).toBe(true)
  })

  test('gives back what a refunded request was charged, and nothing at the release of a permit', async () => {
    const instance = new Instance([['a', wide]], { expectedInstances: 6, ceiling })
    instance.store.fault = 'gone'
    const decision = await instance.ask('k', 10)
    expect((await instance.ask('k')).reason).toBe('ceiling')
    expect(await instance.ledger.refund(decision, 4)).toBe(4)
    expect(await instance.admitted(10, () => 'k')).toBe(4)
    const holding = new Instance([['c', concurrency({ limit: 600 })]], { expectedInstances: 6, ceiling })
    holding.store.fault = 'gone'
    for (let request = 0; request < 10; request++) {
      const held = await holding.ask('k')
      expect(await holding.ledger.refund(held, 1)).toBe(1)
    }
    expect((await holding.ask('k')).reason).toBe('ceiling')
  })

  test('counts a quota that is asked alone', async () => {
    const instance = new Instance([['a', quota({ limit: 600, period: 'day' })]], { expectedInstances: 6, ceiling })
    instance.store.fault = 'gone'
    expect((await instance.ask('k', 8)).remaining).toBe(2)
    expect((await instance.ask('k', 3)).reason).toBe('ceiling')
    expect((await instance.ask('k', 2)).allowed).toBe(true)
  })

  test('leaves a policy that refuses for longer with its own reason', async () => {
    const instance = new Instance([['a', fixedWindow({ limit: 6, window: '1d' })]], { expectedInstances: 6, ceiling })
    instance.store.fault = 'gone'
    expect(await instance.admitted(10, (request) => `k${request}`)).toBe(10)
    expect((await instance.ask('k1')).reason).toBe('limited')
    expect((await instance.ask('new')).reason).toBe('ceiling')
  })

  test('is told with a wait of 1 s where the cost is above its part', async () => {
    const instance = new Instance([['a', wide]], { expectedInstances: 6, ceiling })
    instance.store.fault = 'gone'
    expect(await instance.ask('k', 11)).toMatchObject({ allowed: false, reason: 'ceiling', retryAfterMs: 1_000 })
  })

  test('does not count policies that do not decide by their share', async () => {
    const instance = new Instance([['a', wide, 'open']], { expectedInstances: 6, ceiling })
    instance.store.fault = 'gone'
    expect(await instance.admitted(100, () => 'k')).toBe(100)
  })
})
