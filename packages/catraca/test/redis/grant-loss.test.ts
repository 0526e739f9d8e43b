import { RedisProcess } from '@catraca/gateway/redis-server'
import { fixedWindow, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import * as fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { outlastsRule } from '../../src/stores/lease/terms.ts'
import { Both, playGrants } from '../lease/both.ts'
import { type Instance, Known, loadGrants, type OpenInstance } from '../lease/support.ts'
import { histories } from '../properties/support/histories.ts'
import { type Specimen, subjects } from '../properties/support/subjects.ts'

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
  await redis.ping()
  redis.disconnect()
  await server.stop()
})

/** All instances of a test share one memory, which it loses by `flush`. */
let markerKey = ''
beforeEach(() => {
  markerKey = `marker${runs++}`
})
afterEach(() => void vi.restoreAllMocks())

const second = 1_000_000
const noon = Date.UTC(2027, 0, 1, 12) * 1_000
const ttlUs = 60 * second
const lease = { block: 10, ttlUs }
const rule = tokenBucket({ limit: 10, window: '10s' })

/** An instance of one limiter, which knows nothing of the memory yet. */
function join(of: Rule = rule, terms = lease): Instance {
  return open('loss', [{ name: 'p', rule: of, lease: terms }], new Known(markerKey))
}

/** What somebody who asks for everything is given; 0 where he is refused. */
async function allOf(instance: Instance, us: number, key = 'a'): Promise<number> {
  instance.shared.at(us)
  const { allowed, cost } = await instance.shared.ledger.grant(0, key, undefined, 1, 10)
  return allowed ? cost : 0
}

function look(instance: Instance, us: number, fresh: string): Promise<{ marker: string; lostUs: number }> {
  instance.shared.at(us)
  return instance.look(fresh)
}

const flush = (): Promise<unknown> => redis.flushall()

describe('the marker', () => {
  test('a new deployment, of which nobody knows a marker, learns nothing', async () => {
    await flush()
    const [one, two] = [join(), join()]
    expect(await allOf(one, noon, 'a')).toBe(10)
    expect(await look(one, noon + 1, 'm1')).toMatchObject({ lostUs: 0 })
    expect(await look(two, noon + 2, 'm2')).toEqual({ marker: one.known.marker, lostUs: 0 })
    expect(await allOf(two, noon + 3, 'b')).toBe(10)
    expect([one.known.looks, two.known.looks]).toEqual([0, 0])
  })

  test('an instance that finds it gone notes the instant, by a reading or by a grant, and others learn of it', async () => {
    for (const first of ['look', 'grant'] as const) {
      await flush()
      const [one, two, newcomer] = [join(), join(), join()]
      for (const instance of [one, two]) await look(instance, noon, 'before')
      await flush()
      const lostUs = noon + 3 * second
      if (first === 'look') expect(await look(one, lostUs, 'after')).toEqual({ marker: 'after', lostUs })
      else {
        expect(await allOf(one, lostUs)).toBe(0)
        expect(one.known.looks).toBe(1)
      }
      // Used up as of that instant: a unit comes back each second.
      expect(await allOf(two, lostUs + 2 * second, 'b')).toBe(2)
      expect(two.known.looks).toBe(1)
      expect(await allOf(newcomer, lostUs + 3 * second, 'c')).toBe(3)
      expect(await look(two, lostUs + 4 * second, 'other')).toMatchObject({ lostUs })
      expect(await allOf(two, lostUs + 5 * second, 'd')).toBe(5)
      expect(two.known.looks).toBe(1)
    }
  })

  test('a newcomer that begins a memory before an old instance finds it', async () => {
    await flush()
    const old = join()
    await look(old, noon, 'before')
    await flush()
    const newcomer = join()
    expect(await allOf(newcomer, noon + second, 'a')).toBe(10)
    expect(await look(newcomer, noon + second, 'unused')).toMatchObject({ lostUs: 0 })
    // The old one knows of a loss, of which nobody knew before: it is noted as of now.
    const lostUs = noon + 4 * second
    expect(await allOf(old, lostUs, 'b')).toBe(0)
    expect(await allOf(newcomer, lostUs + second, 'c')).toBe(1)
    // What has a state keeps it.
    expect(await allOf(newcomer, lostUs + second, 'a')).toBe(4)
    // The marker stays that of the newcomer, so for it nothing is lost.
    expect(await look(newcomer, lostUs + second, 'unused')).toEqual({ marker: newcomer.known.marker, lostUs })
  })

  test('an instance that comes late to a loss that was noted does not move the instant', async () => {
    await flush()
    const [one, late] = [join(), join()]
    for (const instance of [one, late]) await look(instance, noon, 'before')
    await flush()
    const lostUs = noon + second
    await look(one, lostUs, 'after')
    expect(await allOf(late, lostUs + 7 * second)).toBe(7)
    expect(await look(late, lostUs + 8 * second, 'x')).toEqual({ marker: 'after', lostUs })
  })

  test('a second loss is noted anew', async () => {
    await flush()
    const [one, two] = [join(), join()]
    for (const instance of [one, two]) await look(instance, noon, 'm0')
    await flush()
    await look(one, noon + second, 'm1')
    await look(two, noon + second, 'x')
    await flush()
    const lostUs = noon + 30 * second
    expect(await look(one, lostUs, 'm2')).toEqual({ marker: 'm2', lostUs })
    expect(await allOf(two, lostUs + 4 * second)).toBe(4)
    expect(await look(two, lostUs + 4 * second, 'x')).toEqual({ marker: 'm2', lostUs })
    // An instance that slept through both.
    const asleep = join()
    asleep.known.marker = 'm0'
    expect(await allOf(asleep, lostUs + 5 * second, 'b')).toBe(5)
  })

  test('who knows of a loss has it counted where the new memory does not say so', async () => {
    await flush()
    const one = join()
    one.known.lostUs = noon
    expect(await allOf(one, noon + 2 * second)).toBe(2)
  })

  test('in a cluster, where it is on another node, only what the instance knows counts', async () => {
    await flush()
    const one = open('loss', [{ name: 'p', rule, lease }])
    expect(await allOf(one, noon, 'a')).toBe(10)
    one.known.lostUs = noon
    expect(await allOf(one, noon + 3 * second, 'b')).toBe(3)
  })

  test('matters for one lease time, to the microsecond', async () => {
    await flush()
    const slow = tokenBucket({ limit: 10, window: '60s' })
    expect(outlastsRule(slow, lease)).toBe(true)
    const one = join(slow)
    one.known.lostUs = noon
    // All but a fraction of the last unit has come back.
    expect(await allOf(one, noon + ttlUs - 1, 'a')).toBe(9)
    expect(await allOf(one, noon + ttlUs, 'b')).toBe(10)
  })

  test('a rule that counts for longer than a lease lasts starts fresh', async () => {
    await flush()
    const long = tokenBucket({ limit: 10, window: '61s' })
    expect(outlastsRule(long, lease)).toBe(false)
    const one = join(long)
    await look(one, noon, 'before')
    await flush()
    expect(await allOf(one, noon + second)).toBe(10)
    expect(one.known.looks).toBe(1)
  })

  test('questions other than grants do not learn', async () => {
    await flush()
    const one = join()
    one.known.lostUs = noon
    one.shared.at(noon + second)
    expect((await one.shared.take(0, 'a', 10)).allowed).toBe(true)
  })
})

describe('a key without a state is, until then, as if used up when the memory was lost', () => {
  const leasable = subjects.filter((subject) => {
    return subject.specimen({ limit: 5, windowUs: second, capacity: 5, calendar: 0 }).rule.lease !== 'never'
  })
  const numRuns = Number(process.env['CATRACA_TRACES'] ?? 1_000) / 5

  /** The longest that a rule counts what was charged. */
  function termsOf({ rule: of }: Specimen): number {
    const {
      windowMs,
      limit,
      burst,
      subWindows = 1,
    } = of.options as {
      windowMs: number
      limit: number
      burst?: number
      subWindows?: number
    }
    if (burst !== undefined) return Math.ceil((burst * windowMs * 1_000) / limit / of.tickUs) * of.tickUs
    // A counter weighs what was charged to the end of the next window, or to that of one more part.
    const windowUs = windowMs * 1_000
    return of.algorithm === 'sliding-counter' ? windowUs + windowUs / subWindows : windowUs
  }

  test.each(leasable.map((subject) => [subject.name, subject] as const))('%s', async (_, subject) => {
    const settings = fc.oneof(
      subject.settings,
      fc.constantFrom(
        { limit: 7, windowUs: 10 * second, capacity: 7, calendar: 0 },
        { limit: 600, windowUs: 60 * second, capacity: 90, calendar: 0 },
      ),
    )
    await fc.assert(
      fc.asyncProperty(settings, fc.nat(1_000), histories(20), async (setting, share, history) => {
        const specimen = subject.specimen(setting)
        const lasts = termsOf(specimen)
        fc.pre(specimen.rule.limit < 1_000_000)
        const terms = { block: 1, ttlUs: lasts + share * 1_000 }
        expect(outlastsRule(specimen.rule, terms)).toBe(true)
        expect(outlastsRule(specimen.rule, { block: 1, ttlUs: lasts - 1 })).toBe(false)
        const lostUs = specimen.from + Math.floor(lasts * (share / 997))
        const known = new Known()
        known.lostUs = lostUs
        const policy = { name: 'p', rule: specimen.rule, lease: terms }
        const both = new Both(open(`model${runs++}`, [policy], known), [specimen])
        both.memory.charge(0, 'a', specimen.rule.limit, lostUs)
        both.grantsOnly = true
        const begin = lostUs + Math.floor((share * lasts) / 1_500)
        await playGrants(both, [specimen], history, begin, lostUs + terms.ttlUs)
      }),
      { numRuns },
    )
  })

  test.each([
    ['fixed', fixedWindow({ limit: 10, window: '20s' })],
    ['first', fixedWindow({ limit: 10, window: '20s', anchor: 'first' })],
    ['counter', slidingCounter({ limit: 10, window: '10s' })],
    ['parts', slidingCounter({ limit: 10, window: '15s', subWindows: 3 })],
    ['log', slidingLog({ limit: 10, window: '20s' })],
    ['bucket', tokenBucket({ limit: 10, window: '20s' })],
  ] as const)('%s: afterwards it is fresh', async (_, of) => {
    await flush()
    const one = join(of, { block: 1, ttlUs: 20 * second })
    one.known.lostUs = noon + 5 * second
    expect(await allOf(one, noon + 5 * second)).toBe(0)
    expect(await allOf(one, noon + 25 * second, 'b')).toBe(10)
  })
})
