import { RedisProcess } from '@catraca/gateway/redis-server'
import {
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  quota,
  type Rule,
  type RuleChange,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Simulated } from './simulated.ts'
import { type AnyLimiter, connect, ready, times } from './support.ts'

let server: RedisProcess
let redis: Redis
let runs = 0

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = connect(server.port)
  await ready(redis)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

/** A limiter as one version of a service has it; all versions share the name. */
function version(rule: Rule, name: string, onRuleChange: RuleChange = 'keep'): AnyLimiter {
  const store = redisStore({ client: redis, timeoutMs: 10_000 })
  onTestFinished(() => store.close())
  return createLimiter(rule, { name, store, onRuleChange, onStoreFailure: 'closed' })
}

const window = '1000d'
const makers: Record<string, (limit: number) => Rule> = {
  fixed: (limit) => fixedWindow({ limit, window }),
  first: (limit) => fixedWindow({ limit, window, anchor: 'first' }),
  offset: (limit) => fixedWindow({ limit, window, offset: '12.5h' }),
  spread: (limit) => fixedWindow({ limit, window, offset: 'key' }),
  log: (limit) => slidingLog({ limit, window }),
  counter: (limit) => slidingCounter({ limit, window }),
  parts: (limit) => slidingCounter({ limit, window, subWindows: 5 }),
  bucket: (limit) => tokenBucket({ limit, window }),
  gcra: (limit) => gcra({ limit, window }),
  quota: (limit) => quota({ limit, period: 'year' }),
}

describe.each(Object.entries(makers))('%s: 60 of 100 used and the limit becomes 200', (kind, make) => {
  test.each([
    ['keep', 140],
    ['proportional', 80],
    ['reset', 200],
  ] as const)('%s: %i are left', async (change, left) => {
    const name = `to200-${kind}-${change}`
    await version(make(100), name).take('k', { cost: 60 })
    const after = version(make(200), name, change)
    // Entries of a list stay what they are.
    const expected = kind === 'log' && change === 'proportional' ? 140 : left
    const { remaining, degraded } = await after.peek('k')
    expect([degraded, remaining]).toEqual([false, expected])
    expect((await after.take('k', { cost: expected })).allowed).toBe(true)
    expect((await after.take('k')).allowed).toBe(false)
  })

  test('two versions that alternate a thousand times admit no more than the larger alone', async () => {
    const name = `alternate-${kind}`
    const versions = [version(make(100), name), version(make(200), name)]
    let admitted = 0
    const asked = await Promise.all(times(1_000, (index) => (versions[index % 2] as AnyLimiter).take('k')))
    for (const { allowed, degraded } of asked) {
      expect(degraded).toBe(false)
      if (allowed) admitted++
    }
    expect(admitted).toBeGreaterThanOrEqual(100)
    expect(admitted).toBeLessThanOrEqual(200)
    expect((await (versions[1] as AnyLimiter).peek('k')).remaining).toBe(200 - admitted)
  })
})

describe('a log', () => {
  test('counts all of 400 entries of one instant', async () => {
    onTestFinished(() => void vi.restoreAllMocks())
    const open = await Simulated.load(redis)
    const shared = open(`instant${runs++}`, [{ name: 'p', rule: slidingLog({ limit: 400, window: '1s' }) }])
    shared.at(1_800_000_000_000_000)
    const decisions = await Promise.all(times(401, () => shared.take(0, 'k', 1)))
    expect(decisions.map(({ allowed }) => allowed)).toEqual(times(401, (index) => index < 400))
    shared.at(1_800_000_000_999_999)
    expect((await shared.take(0, 'k', 1)).allowed).toBe(false)
    shared.at(1_800_000_001_000_000)
    expect((await shared.take(0, 'k', 400)).allowed).toBe(true)
  })

  test('of 10,000 entries stays exact, also when some of them are given back', async () => {
    const limiter = version(slidingLog({ limit: 10_000, window }), 'long')
    const taken: Decision[] = []
    for (let round = 0; round < 20; round++) taken.push(...(await Promise.all(times(500, () => limiter.take('k')))))
    expect(taken.filter(({ allowed }) => allowed).length).toBe(10_000)
    expect((await limiter.take('k')).allowed).toBe(false)
    const back = [0, 1, 4_999, 5_000, 9_998, 9_999].map((index) => taken[index] as Decision)
    for (const one of back) expect(await limiter.refund(one)).toBe(1)
    expect((await limiter.peek('k')).remaining).toBe(6)
    expect((await Promise.all(times(10, () => limiter.take('k')))).filter(({ allowed }) => allowed).length).toBe(6)
  })
})
