import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, type Decision, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Simulated } from '../redis/simulated.ts'
import { connect, lives, ready, times } from '../redis/support.ts'

let server: RedisProcess
let redis: Redis
let open: Awaited<ReturnType<typeof Simulated.load>>
let runs = 0

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = connect(server.port)
  await ready(redis)
  open = await Simulated.load(redis)
})

afterEach(() => vi.restoreAllMocks())

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

/** As the documents print it: allowed, remaining, wait in ms, seconds until full. */
function printed({ allowed, remaining, retryAfterMs, resetAfterMs }: Decision): number[] {
  return [allowed ? 1 : 0, remaining, retryAfterMs, Math.ceil(resetAfterMs / 1_000)]
}

const start = 1_800_000_000_000_000
const plans = {
  free: tokenBucket({ limit: 1, window: '1s', burst: 10 }),
  pro: tokenBucket({ limit: 10, window: '1s', burst: 90 }),
  enterprise: tokenBucket({ limit: 100, window: '1s', burst: 900 }),
  anon: tokenBucket({ limit: 20, window: '60s', burst: 5 }),
}
const figures = [
  {
    check: 75,
    plan: 'free',
    capacity: 10,
    first: [1, 9, 0, 1],
    all: [0, 9, 1_000, 1],
    spent: [1, 0, 0, 10],
    more: [0, 0, 1_000, 10],
  },
  {
    check: 76,
    plan: 'pro',
    capacity: 90,
    first: [1, 89, 0, 1],
    all: [0, 89, 100, 1],
    spent: [1, 0, 0, 9],
    more: [0, 0, 100, 9],
  },
  {
    check: 77,
    plan: 'enterprise',
    capacity: 900,
    first: [1, 899, 0, 1],
    all: [0, 899, 10, 1],
    spent: [1, 0, 0, 9],
    more: [0, 0, 10, 9],
  },
  {
    check: 78,
    plan: 'anon',
    capacity: 5,
    first: [1, 4, 0, 3],
    all: [0, 4, 3_000, 3],
    spent: [1, 0, 0, 15],
    more: [0, 0, 3_000, 15],
  },
] as const

test.each(figures)(
  'acceptance $check: what plan $plan answers',
  async ({ plan, capacity, first, all, spent, more }) => {
    const shared = open(`plan${runs++}`, [{ name: 'p', rule: plans[plan] }])
    shared.at(start)
    expect(printed(await shared.take(0, 'a', 1))).toEqual(first)
    expect(printed(await shared.take(0, 'a', capacity))).toEqual(all)
    expect(printed(await shared.take(0, 'b', capacity))).toEqual(spent)
    expect(printed(await shared.take(0, 'b', 1))).toEqual(more)
  },
)

describe('the life of a key', () => {
  /** Seconds to fill from empty. */
  const fills = [
    { name: 'free', rule: plans.free, fill: 10 },
    { name: 'pro', rule: plans.pro, fill: 9 },
    { name: 'enterprise', rule: plans.enterprise, fill: 9 },
    { name: 'anon', rule: plans.anon, fill: 15 },
    { name: 'B20', rule: tokenBucket({ limit: 10, window: '1s', burst: 20 }), fill: 2 },
  ]

  test.each(fills)(
    'acceptance 79, acceptance 80: $name lives more than 1 s longer than it takes to fill, and less than 10 s',
    async ({ name, rule, fill }) => {
      const store = redisStore({ client: redis, timeoutMs: 5_000, prefix: `life-${name}` })
      onTestFinished(() => store.close())
      const limiter = createLimiter(rule, { name, store, onStoreFailure: 'closed' })
      for (const cost of [1, rule.limit - 1, 1]) {
        await limiter.take('k', { cost })
        const life = [...(await lives(redis))].find(([key]) => key.startsWith(`life-${name}`))?.[1] ?? 0
        // Some ms have passed since.
        expect(life).toBeGreaterThan(fill * 1_000 + 500)
        expect(life).toBeLessThanOrEqual(fill * 1_000 + 10_000)
      }
    },
  )
})

test('acceptance 84: 19.5 tokens come back as 19.5, not as 19', async () => {
  const shared = open(`half${runs++}`, [{ name: 'p', rule: tokenBucket({ limit: 10, window: '1s', burst: 20 }) }])
  shared.at(start)
  await shared.take(0, 'k', 1)
  shared.at(start + 50_000)
  const half = await shared.take(0, 'k', 1, false)
  expect([half.remaining, half.resetAfterMs]).toEqual([19, 50])
  await shared.take(0, 'k', 1)
  // 18.5 and another half.
  shared.at(start + 100_000)
  expect((await shared.take(0, 'k', 19, false)).allowed).toBe(true)
  shared.at(start + 99_999)
  expect((await shared.take(0, 'k', 19, false)).allowed).toBe(false)
})

test('acceptance 85: what a call of the store takes, with 20 connections on this machine', async () => {
  const clients = await Promise.all(
    times(20, async () => {
      const one = connect(server.port)
      onTestFinished(() => one.disconnect())
      await ready(one)
      return one
    }),
  )
  const limiters = clients.map((client) => {
    const store = redisStore({ client, timeoutMs: 5_000 })
    onTestFinished(() => store.close())
    return createLimiter(plans.enterprise, { name: 'timed', store })
  })
  const took: number[] = []
  await Promise.all(
    limiters.map(async (limiter, index) => {
      for (let turn = 0; turn < 100; turn++) {
        const began = performance.now()
        const decision = await limiter.take(`k${index}:${turn}`)
        took.push(performance.now() - began)
        expect(decision.degraded).toBe(false)
      }
    }),
  )
  const sorted = took.toSorted((a, b) => a - b)
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] as number).toFixed(2)
  console.info(`store call: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, 20 connections, ${sorted.length} calls`)
  expect(sorted.length).toBe(2_000)
})
