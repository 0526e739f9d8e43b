import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, type Decision, fixedWindow, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Simulated } from '../redis/simulated.ts'
import { type AnyLimiter, commandCounts, connect, ready, rulesOf, sleep, times } from '../redis/support.ts'
import { mostWithin } from './run.ts'

let server: RedisProcess
let redis: Redis

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = connect(server.port)
  await ready(redis)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

async function client(): Promise<Redis> {
  const one = connect(server.port)
  onTestFinished(() => one.disconnect())
  await ready(one)
  return one
}

/** A limiter as an instance of its own has it: another store over another connection. */
function limiterOf(over: Redis, name: string, rule: Rule): AnyLimiter {
  const store = redisStore({ client: over, timeoutMs: 10_000 })
  onTestFinished(() => store.close())
  return createLimiter(rule, { name, store, onStoreFailure: 'closed' })
}

function admitted(decisions: readonly Decision[]): number {
  expect(decisions.filter(({ degraded }) => degraded).length).toBe(0)
  return decisions.filter(({ allowed }) => allowed).length
}

/** Read, decide, increment: three commands, as limiters are often written. */
async function naive(over: Redis, key: string, limit: number, between: () => Promise<unknown>): Promise<boolean> {
  const read = Number(await over.get(key))
  await between()
  if (read >= limit) return false
  await over.incr(key)
  return true
}

const perMinute = slidingLog({ limit: 50, window: '1m' })

describe('acceptance 239: reading, deciding and writing are one step', () => {
  test('acceptance 62: two instances read 9 of 10: the naive form ends at 11, the script at 10', async () => {
    const [one, other] = [await client(), await client()]
    await redis.set('naive62', '9')
    let waiting = 0
    let both: (() => void) | undefined
    const met = new Promise<void>((resolve) => {
      both = resolve
    })
    const meet = async (): Promise<void> => {
      if (++waiting === 2) both?.()
      await met
    }
    const passed = await Promise.all([one, other].map((over) => naive(over, 'naive62', 10, meet)))
    expect([passed, await redis.get('naive62')]).toEqual([[true, true], '11'])

    const limiters = [one, other].map((over) =>
      limiterOf(over, 'script62', fixedWindow({ limit: 10, window: '1000d' })),
    )
    for (let turn = 0; turn < 9; turn++) await limiters[0]?.take('k')
    const decisions = await Promise.all(limiters.map((limiter) => limiter.take('k')))
    expect(admitted(decisions)).toBe(1)
    expect((await (limiters[0] as AnyLimiter).peek('k')).remaining).toBe(0)
  })

  test.each([1, 20])(
    'acceptance 63: 400 at once from two instances of %i connections: exactly 50, five times',
    async (count) => {
      const instances = await Promise.all(times(2, () => Promise.all(times(count, client))))
      const limiters = instances.flat().map((over) => limiterOf(over, `script63x${count}`, perMinute))
      const rounds = []
      for (let round = 0; round < 5; round++) {
        const asked = times(400, (index) => (limiters[index % limiters.length] as AnyLimiter).take(`round${round}`))
        rounds.push(admitted(await Promise.all(asked)))
      }
      expect(rounds).toEqual([50, 50, 50, 50, 50])
    },
  )

  test('acceptance 64: the naive form admits 50 or more, and more in at least one of five rounds', async () => {
    const instances = await Promise.all(times(40, client))
    const rounds = []
    for (let round = 0; round < 5; round++) {
      const asked = times(400, (index) => naive(instances[index % 40] as Redis, `naive64:${round}`, 50, async () => {}))
      rounds.push((await Promise.all(asked)).filter(Boolean).length)
    }
    expect(Math.min(...rounds)).toBeGreaterThanOrEqual(50)
    expect(Math.max(...rounds)).toBeGreaterThan(50)
  })

  test('acceptance 65: of two replicas that want the last token one gets it', async () => {
    const limiters = [await client(), await client()].map((over) =>
      limiterOf(over, 'last', tokenBucket({ limit: 1, window: '1000d', burst: 1 })),
    )
    for (let turn = 0; turn < 50; turn++) {
      expect(admitted(await Promise.all(limiters.map((limiter) => limiter.take(`k${turn}`))))).toBe(1)
    }
  })

  test('acceptance 67: of 1000 increments from two instances none is lost', async () => {
    const rule = fixedWindow({ limit: 2_000, window: '1000d' })
    const limiters = [await client(), await client()].map((over) => limiterOf(over, 'sum', rule))
    expect(admitted(await Promise.all(times(1_000, (index) => (limiters[index % 2] as AnyLimiter).take('k'))))).toBe(
      1_000,
    )
    expect((await (limiters[0] as AnyLimiter).peek('k')).remaining).toBe(1_000)
  })

  test('acceptance 68: a client that dies in between leaves a key without an end; the script never does', async () => {
    const dying = await client()
    await dying.incr('naive68')
    dying.disconnect()
    expect(await redis.ttl('naive68')).toBe(-1)
    for (let turn = 0; turn < 20; turn++) {
      const one = await client()
      const limiter = limiterOf(one, 'script68', perMinute)
      const asked = limiter.take(`k${turn}`)
      if (turn % 2 === 0) await new Promise(setImmediate)
      one.disconnect()
      await asked
    }
    await sleep(50)
    const keys = await redis.keys('*script68*')
    const lives = await Promise.all(keys.map((key) => redis.pttl(key)))
    expect(lives.every((life) => life > 0)).toBe(true)
  })

  test.each(Object.entries(rulesOf(3)))('%s: a decision is one command of the client', async (name, rule) => {
    const limiter = limiterOf(redis, `one-${name}`, rule)
    await limiter.take('k')
    const before = await commandCounts(server)
    for (let turn = 0; turn < 10; turn++) await limiter.take(`k${turn}`)
    const after = await commandCounts(server)
    const spent = (command: string): number => (after[command] ?? 0) - (before[command] ?? 0)
    expect(spent('evalsha') + spent('eval') - spent('zcard')).toBe(10)
    expect(spent('multi') + spent('incr') + spent('expire') + spent('watch')).toBe(0)
  })
})

const hundred = slidingLog({ limit: 100, window: '1m' })

describe('instances', () => {
  test('acceptance 69: three with memory of their own admit up to 300, over one store 100', async () => {
    const alone = times(3, () => createLimiter(hundred))
    expect(times(900, (index) => alone[index % 3]?.take('k').allowed).filter(Boolean).length).toBe(300)
    const clients = await Promise.all(times(3, client))
    const shared = clients.map((over) => limiterOf(over, 'three', hundred))
    expect(admitted(await Promise.all(times(900, (index) => (shared[index % 3] as AnyLimiter).take('k'))))).toBe(100)
  })

  test('acceptance 70: six admit six times the limit, nine nine times; over one store 100 in both', async () => {
    const alone = times(6, () => createLimiter(hundred))
    const spread = (): number =>
      alone.flatMap((one) => times(150, () => one.take('k'))).filter((one) => one.allowed).length
    let passed = spread()
    expect(passed).toBe(600)
    alone.push(...times(3, () => createLimiter(hundred)))
    passed += spread()
    expect(passed).toBe(900)
    const shared = (await Promise.all(times(6, client))).map((over) => limiterOf(over, 'six', hundred))
    const ask = (): Promise<Decision[]> => Promise.all(shared.flatMap((one) => times(50, () => one.take('k'))))
    let sum = admitted(await ask())
    expect(sum).toBe(100)
    shared.push(...(await Promise.all(times(3, client))).map((over) => limiterOf(over, 'six', hundred)))
    sum += admitted(await ask())
    expect(sum).toBe(100)
  })

  test('acceptance 71: from 2 to 5 to 1 under load: never more than the limit in any window', async () => {
    const rule = slidingLog({ limit: 100, window: '300ms' })
    const clients = await Promise.all(times(5, client))
    const limiters = clients.map((over) => limiterOf(over, 'scaled', rule))
    const instants: number[] = []
    const load = async (count: number, ms: number): Promise<void> => {
      const until = performance.now() + ms
      await Promise.all(
        limiters.slice(0, count).map(async (limiter) => {
          while (performance.now() < until) {
            const decisions = await Promise.all(times(20, () => limiter.take('k')))
            for (const { allowed, nowUs } of decisions) if (allowed) instants.push(nowUs)
          }
        }),
      )
    }
    for (const count of [2, 5, 1]) await load(count, 500)
    const sorted = instants.toSorted((a, b) => a - b)
    expect(sorted.length).toBeGreaterThan(400)
    expect(mostWithin(sorted, 300_000)).toBe(100)
  })
})

describe('acceptance 240: the clock of the server alone counts', () => {
  test.each(Object.entries(rulesOf(3)))(
    '%s: clocks of callers that are years off change nothing',
    async (name, rule) => {
      const clock = vi.spyOn(Date, 'now')
      onTestFinished(() => clock.mockRestore())
      const limiter = limiterOf(redis, `clock-${name}`, rule)
      const [seconds] = (await redis.time()) as unknown as [string, string]
      const real = Number(seconds) * 1_000
      const year = 31_556_952_000
      const passed = []
      for (const off of [0, -5 * year, 20_000, -20_000, 5 * year, year / 3]) {
        clock.mockReturnValue(real + off)
        const decision = await limiter.take('k')
        passed.push(decision.allowed)
        expect(decision.degraded).toBe(false)
        expect(Math.abs(decision.nowUs / 1_000 - real)).toBeLessThan(30_000)
      }
      expect(passed).toEqual([true, true, true, false, false, false])
    },
  )

  test('acceptance 72: an instance 20 s ahead splits a counter in two: 200 of 100; here it does not', async () => {
    const start = 1_800_000_000
    let passed = 0
    let apart = 0
    for (let second = 0; second < 60; second++) {
      const keys = [0, 20].map((ahead) => `naive72:${Math.floor((start + second + ahead) / 60)}`)
      if (keys[0] !== keys[1]) apart++
      for (const key of keys) for (let turn = 0; turn < 10; turn++) if ((await redis.incr(key)) <= 100) passed++
    }
    expect([apart, passed]).toEqual([20, 200])

    const clock = vi.spyOn(Date, 'now')
    onTestFinished(() => clock.mockRestore())
    const open = await Simulated.load(redis)
    const shared = open('skew', [{ name: 'p', rule: fixedWindow({ limit: 100, window: '60s' }) }])
    const asked: Promise<Decision>[] = []
    for (let second = 0; second < 60; second++) {
      for (const ahead of [0, 20]) {
        shared.at((start + second) * 1e6)
        // What the caller's own clock says is not asked.
        clock.mockReturnValue((start + second + ahead) * 1_000)
        for (let turn = 0; turn < 10; turn++) asked.push(shared.take(0, 'k', 1))
      }
    }
    expect(admitted(await Promise.all(asked))).toBe(100)
  })

  test('acceptance 73: two callers 20 s apart refill a bucket for ever: 1000 of 1000; the clock of the server: 119', async () => {
    const bucket = { tokens: 20, ts: 0 }
    const printed = (now: number, ts: (now: number) => number): boolean => {
      bucket.tokens = Math.min(20, bucket.tokens + Math.max(0, now - bucket.ts) * 0.01)
      bucket.ts = ts(now)
      if (bucket.tokens < 1) return false
      bucket.tokens--
      return true
    }
    const run = (ts: (now: number) => number): number => {
      Object.assign(bucket, { tokens: 20, ts: 0 })
      return times(1_000, (index) => printed(index * 10 + (index % 2) * 20_000, ts)).filter(Boolean).length
    }
    expect(run((now) => now)).toBe(1_000)
    // What the caller's clock gives when the instant never goes back: 120.
    expect(run((now) => Math.max(bucket.ts, now))).toBe(120)

    onTestFinished(() => void vi.restoreAllMocks())
    const open = await Simulated.load(redis)
    const rule = tokenBucket({ limit: 10, window: '1s', burst: 20 })
    const shared = open('apart', [{ name: 'p', rule }])
    const asked = times(1_000, (index) => {
      shared.at(1_800_000_000_000_000 + index * 10_000)
      vi.spyOn(Date, 'now').mockReturnValue(1_800_000_000_000 + index * 10 + (index % 2) * 20_000)
      return shared.take(0, 'k', 1)
    })
    expect(admitted(await Promise.all(asked))).toBe(119)
  })

  test('acceptance 74: the clock of the server goes back 5 s: no token is lost, and none is given twice', async () => {
    onTestFinished(() => void vi.restoreAllMocks())
    const open = await Simulated.load(redis)
    const rules = [
      tokenBucket({ limit: 10, window: '10s', burst: 10 }),
      slidingLog({ limit: 10, window: '10s' }),
      slidingCounter({ limit: 10, window: '10s' }),
    ]
    const start = 1_800_000_000_000_000
    for (const [index, rule] of rules.entries()) {
      const shared = open(`back${index}`, [{ name: 'p', rule }])
      shared.expires = false
      shared.at(start)
      for (let turn = 0; turn < 6; turn++) await shared.take(0, 'k', 1)
      expect((await shared.take(0, 'k', 1, false)).remaining).toBe(4)
      shared.at(start - 5_000_000)
      expect((await shared.take(0, 'k', 1, false)).remaining).toBe(4)
      expect((await shared.take(0, 'k', 1)).remaining).toBe(3)
      // Back at the instant of before nothing has come back: the time of the state did not move.
      shared.at(start)
      expect((await shared.take(0, 'k', 1, false)).remaining).toBe(3)
    }
  })
})
