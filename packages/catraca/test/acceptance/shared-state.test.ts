import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, type Decision, fixedWindow, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { RemoteStore } from '../../src/stores/remote.ts'
import { Simulated } from '../redis/simulated.ts'
import { type AnyLimiter, connect, eventually, lives, ready, times } from '../redis/support.ts'
import { randomArrivals, seeds } from './inputs.ts'

let server: RedisProcess
let redis: Redis
let open: Awaited<ReturnType<typeof Simulated.load>>
let store: RemoteStore

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = connect(server.port)
  await ready(redis)
  open = await Simulated.load(redis)
})

beforeEach(async () => {
  await redis.flushall()
  store = redisStore({ client: redis, timeoutMs: 20_000 })
})

afterEach(() => {
  store.close()
  vi.restoreAllMocks()
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

function limiterOf(rule: Rule): AnyLimiter {
  return createLimiter(rule, { name: 'l', store, onStoreFailure: 'closed' })
}

/** Bytes of the value and of all that the server keeps for the only key. */
async function bytes(): Promise<{ value: number; all: number }> {
  const [key = ''] = (await lives(redis)).keys()
  return { value: await redis.strlen(key), all: Number(await redis.memory('USAGE', key)) }
}

async function fill(limiter: AnyLimiter, count: number): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const asked = await Promise.all(times(Math.min(500, count - from), () => limiter.take('k')))
    expect(asked.every(({ allowed, degraded }) => allowed && !degraded)).toBe(true)
  }
}

test('acceptance 6: a window takes the same memory at 500 and at 5000, used and unused', async () => {
  const sizes = []
  for (const limit of [500, 5_000]) {
    const limiter = limiterOf(fixedWindow({ limit, window: '1000d' }))
    await fill(limiter, 1)
    sizes.push((await bytes()).all)
    await fill(limiter, limit - 1)
    expect((await limiter.take('k')).allowed).toBe(false)
    sizes.push((await bytes()).all)
    limiter.close()
    await redis.flushall()
  }
  console.info(`fixed window: ${sizes[0]} bytes`)
  expect(new Set(sizes).size).toBe(1)
})

test('acceptance 15: a log keeps at most as many entries as its limit: 1000, and 10 000', async () => {
  for (const [limit, inTheText] of [
    [1_000, 150_520],
    [10_000, 1_611_544],
  ] as const) {
    const limiter = limiterOf(slidingLog({ limit, window: '1h' }))
    await fill(limiter, limit)
    for (let turn = 0; turn < 20; turn++) expect((await limiter.take('k', { cost: 1 + turn })).allowed).toBe(false)
    const { value, all } = await bytes()
    // 20 bytes each, and the numbers and the name before them.
    expect(value).toBeGreaterThan(limit * 20)
    expect(value).toBeLessThan(limit * 20 + 100)
    expect(all).toBeLessThan(inTheText)
    console.info(`sliding log of ${limit}: ${all} bytes`)
    limiter.close()
    await redis.flushall()
  }
})

test('acceptance 24: a sliding counter keeps its counts and one instant, however much was used', async () => {
  const limiter = limiterOf(slidingCounter({ limit: 5_000, window: '1000d' }))
  await fill(limiter, 1)
  const before = await bytes()
  await fill(limiter, 4_999)
  const after = await bytes()
  console.info(`sliding counter: ${after.all} bytes, of which the value ${after.value}`)
  expect(after).toEqual(before)
  expect(after.value).toBeLessThanOrEqual(80)
})

/** The five commands of the text: drop, count, compare, add, set the expiry; the time is an argument. */
const sortedSet = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - ARGV[2])
if redis.call('ZCARD', KEYS[1]) >= ARGV[3] + 0 then return 0 end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
redis.call('PEXPIRE', KEYS[1], 1000000)
return 1`

test('acceptance 16: sorted set, script and memory decide alike on 100 random lists', async () => {
  const base = 1_800_000_000_000
  for (const seed of seeds(100)) {
    const rule = slidingLog({ limit: 10, window: '1s' })
    const arrivals = randomArrivals(seed)
    const shared = open(`set${seed}`, [{ name: 'p', rule }])
    const asked = arrivals.map((at) => {
      shared.at((base + at) * 1_000)
      return shared.take(0, 'k', 1)
    })
    const set = arrivals.map((at, index) => redis.eval(sortedSet, 1, `set${seed}`, at, 1_000, 10, index))
    const limiter = createLimiter(rule)
    const memory = arrivals.map((at) => limiter.take('k', { now: base + at }).allowed)
    expect((await Promise.all(asked)).map(({ allowed }) => allowed)).toEqual(memory)
    expect((await Promise.all(set)).map((one) => one === 1)).toEqual(memory)
  }
})

test('acceptance 81: 500 random lists with pauses decide alike with keys that end and without', async () => {
  const start = 1_800_000_000_000
  const rule = tokenBucket({ limit: 5, window: '1s', burst: 12 })
  for (const seed of seeds(500)) {
    // Pauses around the time to fill and the life, which is 2.4 s and some.
    const arrivals = randomArrivals(seed)
      .slice(0, 40)
      .map((at, index) => at + Math.floor(index / 13) * (1_900 + seed * 11))
    const shared = open(`ends${seed}`, [{ name: 'p', rule }])
    const asked = arrivals.map((at) => {
      shared.at((start + at) * 1_000)
      return shared.take(0, 'k', 1)
    })
    const limiter = createLimiter(rule)
    const kept = arrivals.map((at) => limiter.take('k', { now: start + at }))
    const shown = ({ allowed, remaining, retryAfterMs }: Decision): unknown[] => [allowed, remaining, retryAfterMs]
    expect((await Promise.all(asked)).map(shown)).toEqual(kept.map(shown))
  }
  // A shorter life is a fault: of 20 tokens, one per second, 6 s give 6 and not 20.
  const slow = tokenBucket({ limit: 1, window: '1s', burst: 20 })
  const shared = open('short', [{ name: 'p', rule: slow }])
  shared.at(start * 1_000)
  await shared.take(0, 'k', 20)
  shared.at((start + 6_000) * 1_000)
  expect((await shared.take(0, 'k', 1, false)).remaining).toBe(6)
})

test('acceptance 82: of 20,000 callers who came once no key stays, and none is without an end', async () => {
  const limiter = limiterOf(tokenBucket({ limit: 1, window: '100ms', burst: 1 }))
  for (let from = 0; from < 20_000; from += 2_000) {
    await Promise.all(times(2_000, (index) => limiter.take(`k${from + index}`)))
  }
  const ends = [...(await lives(redis)).values()]
  expect(ends.length).toBeGreaterThan(1_000)
  // −2 is one that has ended since.
  expect(ends.filter((life) => life === -1).length).toBe(0)
  await eventually('all are gone but those of the store', async () => (await redis.dbsize()) <= 2)
})

test('acceptance 83: refusals may go unwritten: the same decisions on 500 random lists, and the key lives on', async () => {
  const rule = tokenBucket({ limit: 5, window: '1s', burst: 10 })
  for (const seed of seeds(500)) {
    const arrivals = randomArrivals(seed).slice(0, 40)
    const limiter = createLimiter(rule)
    const shared = open(`quiet${seed}`, [{ name: 'p', rule }])
    const asked = arrivals.map((at) => {
      const now = 1_800_000_000_000 + at
      const { allowed } = limiter.take('k', { now })
      shared.at(now * 1_000)
      // Those that are refused only peek here, which writes nothing.
      return shared.take(0, 'k', 1, allowed).then((decision) => decision.allowed === allowed)
    })
    expect((await Promise.all(asked)).every(Boolean)).toBe(true)
  }
  const limiter = limiterOf(tokenBucket({ limit: 10, window: '60s', burst: 10 }))
  await fill(limiter, 10)
  const [key = ''] = (await lives(redis)).keys()
  const before = await redis.dump(key)
  for (let turn = 0; turn < 100; turn++) expect((await limiter.take('k', { cost: 2 + (turn % 8) })).allowed).toBe(false)
  expect(await redis.dump(key)).toEqual(before)
  const { resetAfterMs } = await limiter.peek('k')
  expect(await redis.pttl(key)).toBeGreaterThanOrEqual(resetAfterMs)
})
