import { RedisProcess } from '@catraca/gateway/redis-server'
import { fixedWindow, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import * as fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { grantFrom } from '../../src/stores/memory/grant-from.ts'
import { grant } from '../../src/stores/redis/script.generated.ts'
import { StoreFault } from '../../src/stores/remote.ts'
import { Book } from '../contract/ledger.ts'
import { Both, figures, playGrants } from '../lease/both.ts'
import { type Instance, Known, type LeasedPolicy, loadGrants, type OpenInstance } from '../lease/support.ts'
import { histories } from '../properties/support/histories.ts'
import { type Setting, type Specimen, type Subject, subjects } from '../properties/support/subjects.ts'
import { kinOf } from '../properties/support/variants.ts'

let server: RedisProcess
let redis: Redis
let open: OpenInstance
let runs = 0

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = new Redis(server.port)
  open = await loadGrants(redis)
})

afterAll(async () => {
  // Lives of keys are noted without waiting.
  await redis.ping()
  redis.disconnect()
  await server.stop()
})

afterEach(() => void vi.restoreAllMocks())

const numRuns = Number(process.env['CATRACA_TRACES'] ?? 1_000)
const second = 1_000_000
const noon = Date.UTC(2027, 0, 1, 12) * 1_000

const leasable = subjects.filter((subject) => {
  const { lease } = subject.specimen({ limit: 5, windowUs: second, capacity: 5, calendar: 0 }).rule
  return lease !== 'never'
})

/** Rates that no tick divides evenly, and counts that need ticks of a millisecond. */
const awkward: readonly Setting[] = [
  { limit: 7, windowUs: 10 * second, capacity: 7, calendar: 0 },
  { limit: 600, windowUs: 60 * second, capacity: 90, calendar: 0 },
  { limit: 3, windowUs: 7 * second, capacity: 11, calendar: 0 },
  { limit: 1_000_000_000, windowUs: 3_600 * second, capacity: 1_000_000_000, calendar: 0 },
]

function settingsOf(subject: Subject): fc.Arbitrary<Setting> {
  // A log of so many entries is refused.
  const fits = awkward.filter(({ limit }) => subject.name !== 'sliding log' || limit < 1_000_000)
  return fc.oneof({ arbitrary: subject.settings, weight: 2 }, { arbitrary: fc.constantFrom(...fits), weight: 1 })
}

function opened(specimens: readonly Specimen[], expires: boolean, change: 'keep' | 'proportional' | 'reset'): Both {
  const instance = open(
    `run${runs++}`,
    specimens.map(({ rule }) => ({ name: 'p', rule, onRuleChange: change })),
  )
  instance.shared.expires = expires
  return new Both(instance, specimens, change)
}

test('all leasable rules are among those that are compared', () => {
  expect(leasable.map(({ name }) => name)).toEqual([
    'fixed window by the clock',
    'fixed window with an offset',
    'fixed window from the first request',
    'sliding log',
    'sliding counter',
    'sliding counter in parts',
    'token bucket',
    'gcra',
    'leaky meter',
  ])
  const coarse = slidingCounter({ limit: 1_000_000_000, window: '1h' })
  expect(coarse.tickUs).toBe(1_000)
})

describe('the script grants as memory does', () => {
  for (const subject of leasable) {
    for (const clock of ['steady', 'set'] as const) {
      test(`${subject.name}, clock ${clock}`, async () => {
        await fc.assert(
          fc.asyncProperty(settingsOf(subject), histories(25, clock), async (setting, history) => {
            const specimens = [subject.specimen(setting)]
            await playGrants(opened(specimens, clock === 'steady', 'keep'), specimens, history)
          }),
          { numRuns: numRuns / 4 },
        )
      })
    }
  }

  test.each(['keep', 'proportional', 'reset'] as const)('under rules that change among kin, %s', async (change) => {
    const kin = fc.oneof(
      ...leasable.map((subject) => kinOf(subject).map((settings) => settings.map((one) => subject.specimen(one)))),
    )
    await fc.assert(
      fc.asyncProperty(kin, histories(25), async (specimens, history) => {
        // Memory brings a state along that Redis has forgotten; of another tick it may be ahead of now by one.
        const expires = specimens.every(({ rule }) => rule.tickUs === 1)
        await playGrants(opened(specimens, expires, change), specimens, history)
      }),
      { numRuns: numRuns / 2 },
    )
  })

  test('under rules of any kind, from one to another', async () => {
    const any = fc.oneof(...leasable.map((subject) => subject.settings.map((setting) => subject.specimen(setting))))
    const lists = fc.array(any, { minLength: 2, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(lists, histories(20), async (specimens, history) => {
        // A state of another tick that has ended leaves its tick in memory, which may be ahead of now by one.
        fc.pre(specimens.every(({ rule }) => rule.tickUs === 1))
        await playGrants(opened(specimens, false, 'keep'), specimens, history)
      }),
      { numRuns: numRuns / 4 },
    )
  })
})

test('grants that travel together are each decided as if alone, in order, and one that fails harms no other', async () => {
  const rules = [
    ...ten.map(([, rule]) => rule),
    tokenBucket({ limit: 7, window: '10s' }),
    tokenBucket({ limit: 600, window: '1m', burst: 90 }),
  ]
  const policies = rules.map((rule, member) => ({ name: `p${member}`, rule }))
  const instance = open(`run${runs++}`, policies, new Known('together'))
  const { ledger } = instance.shared
  instance.shared.at(noon)
  const calls: number[] = []
  const { send } = instance.store.calls
  instance.store.calls = {
    send: (call) => {
      calls.push(call.keyCount)
      send(call)
    },
  }
  const stored = ledger.nameOf(1, 'bad', undefined)
  await redis.set(stored, 'what another program wrote, longer than numbers', 'PX', 60_000)
  const asked = rules.flatMap((rule, member) => [
    [member, 'k', 1, 4] as const,
    [member, 'k', 2, rule.limit] as const,
    [member, 'k', 1, 3] as const,
  ])
  const answers = await Promise.allSettled([
    // The first of a turn goes at once, by itself.
    ledger.grant(0, 'before', undefined, 1, 1),
    ledger.grant(1, 'bad', undefined, 1, 2),
    ...asked.map(([member, key, least, most]) => ledger.grant(member, key, undefined, least, most)),
  ])
  const [before, bad] = answers.splice(0, 2)
  expect(before).toMatchObject({ status: 'fulfilled', value: { cost: 1 } })
  expect(bad).toMatchObject({ status: 'rejected', reason: { kind: 'key' } })
  const memory = new Book(policies.map(({ name, rule }) => [name, rule])).ledger
  const expected = asked.map(([member, key, least, most]) => {
    const timed = {
      applySome: (...[members, keys, costs, us, charge]: Parameters<typeof memory.applySome>) =>
        memory.applySome(members, keys, costs, us ?? noon, charge),
    }
    return figures(grantFrom(timed as typeof memory, member, key, least, most))
  })
  expect(answers.map((one) => one.status === 'fulfilled' && figures(one.value))).toEqual(expected)
  // Each with the marker.
  expect(calls).toEqual([2, asked.length + 2])
})

test('a debt of units charged unasked lasts until it is paid', async () => {
  const instance = open(`run${runs++}`, [{ name: 'p', rule: tokenBucket({ limit: 10, window: '10s' }) }])
  const { ledger } = instance.shared
  instance.shared.at(noon)
  for (let report = 0; report < 3; report++) await ledger.charge(0, 'k', undefined, 10)
  // What was full when it was written last would be forgotten after eleven seconds.
  instance.shared.at(noon + 20 * second)
  expect((await ledger.grant(0, 'k', undefined, 1, 10)).allowed).toBe(false)
  instance.shared.at(noon + 21 * second)
  expect(await ledger.grant(0, 'k', undefined, 1, 10)).toMatchObject({ allowed: true, cost: 1 })
})

const window = '10s'
const ten: readonly (readonly [string, Rule])[] = [
  ['fixed', fixedWindow({ limit: 10, window })],
  ['first', fixedWindow({ limit: 10, window, anchor: 'first' })],
  ['counter', slidingCounter({ limit: 10, window })],
  ['log', slidingLog({ limit: 10, window })],
  ['bucket', tokenBucket({ limit: 10, window })],
]

function one(rule: Rule, more: Partial<LeasedPolicy> = {}): Instance {
  const instance = open(`one${runs++}`, [{ name: 'p', rule, ...more }])
  instance.shared.at(noon)
  return instance
}

describe.each(ten)('%s', (_, rule) => {
  const grantOf = (instance: Instance, least: number, most: number) =>
    instance.shared.ledger.grant(0, 'a', undefined, least, most)
  const leftOf = async (instance: Instance): Promise<number> => (await instance.shared.take(0, 'a', 1, false)).remaining

  test('gives what is left, at least the least, or nothing', async () => {
    const instance = one(rule)
    expect(await grantOf(instance, 1, 4)).toMatchObject({ allowed: true, cost: 4, charged: 4, remaining: 6 })
    expect(await grantOf(instance, 3, 8)).toMatchObject({ allowed: true, cost: 6, charged: 6, remaining: 0 })
    const refused = await grantOf(instance, 2, 8)
    expect(refused).toMatchObject({ allowed: false, reason: 'limited', cost: 2, charged: 0, remaining: 0 })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
  })

  test('a blocked key is refused, and has what it had when the block is over', async () => {
    const instance = one(rule)
    await instance.shared.ledger.block(0, 'a', undefined, 2 * second)
    expect(await grantOf(instance, 1, 4)).toMatchObject({
      allowed: false,
      reason: 'blocked',
      cost: 1,
      remaining: 0,
      retryAfterMs: 2_000,
    })
    instance.shared.at(noon + 2 * second - 1)
    expect((await grantOf(instance, 1, 4)).reason).toBe('blocked')
    instance.shared.at(noon + 2 * second)
    expect(await grantOf(instance, 1, 20)).toMatchObject({ allowed: true, cost: 10 })
  })

  test('a cost above the limit is impossible and takes nothing, as the least; as the most it takes the limit', async () => {
    const instance = one(rule)
    const impossible = await grantOf(instance, 11, 12)
    expect(impossible).toMatchObject({ allowed: false, reason: 'impossible', cost: 11, retryAfterMs: Infinity })
    expect(await leftOf(instance)).toBe(10)
    expect(await grantOf(instance, 10, 12)).toMatchObject({ allowed: true, cost: 10, remaining: 0 })
  })

  test('what is granted past the deadline is given back', async () => {
    const instance = one(rule)
    const { calls } = instance.store
    instance.store.calls = {
      send: (call) => {
        calls.send(call)
        if (call.script === grant) call.end(new StoreFault('slow', 'told to be late'))
      },
    }
    await expect(grantOf(instance, 1, 7)).rejects.toMatchObject({ kind: 'slow' })
    // Under another tag it is another state, and goes back there.
    await expect(instance.shared.ledger.grant(0, 'a', 'tag', 1, 3)).rejects.toMatchObject({ kind: 'slow' })
    instance.store.calls = calls
    await expect.poll(() => leftOf(instance)).toBe(10)
    const tagged = () => instance.shared.ledger.apply([0], ['a'], ['tag'], [1], false)
    await expect.poll(async () => (await tagged()).remaining).toBe(10)
    // None of it is given back twice: then more than the limit would be there.
    expect(await grantOf(instance, 1, 20)).toMatchObject({ cost: 10 })
    expect((await grantOf(instance, 1, 20)).allowed).toBe(false)
  })

  test('a refusal is remembered for the cost that was refused, unless charges are given back as a matter of course', async () => {
    const instance = one(rule)
    const forgetful = one(rule, { refunds: true } as Partial<LeasedPolicy>)
    for (const { shared } of [instance, forgetful]) {
      expect((await shared.ledger.grant(0, 'a', undefined, 10, 10)).allowed).toBe(true)
      expect((await shared.ledger.grant(0, 'a', undefined, 2, 8)).allowed).toBe(false)
    }
    const known = ({ shared }: Instance, cost: number) => shared.ledger.tryApply([0], ['a'], undefined, [cost])
    expect(known(instance, 2)).toMatchObject({ allowed: false, cost: 2 })
    expect([known(instance, 1), known(instance, 8), known(forgetful, 2)]).toEqual([undefined, undefined, undefined])
  })
})
