import { RedisProcess } from '@catraca/gateway/redis-server'
import { concurrency, createLimiter, fixedWindow, gcra, type Rule, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RemoteStore } from '../../src/stores/remote.ts'
import { type AnyLimiter, connect, ready, sleep, times, trips } from './support.ts'

let server: RedisProcess
let redis: Redis
let store: RemoteStore
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

beforeEach(() => {
  store = redisStore({ client: redis, timeoutMs: 5_000 })
})

afterEach(() => store.close())

test('a single server charges whole stacks all or nothing, and says so', () => {
  expect(store.atomic).toBe('stack')
})

function limiterOf(rule: Rule): AnyLimiter {
  return createLimiter(rule, { name: `l${runs++}`, store, onStoreFailure: 'closed' })
}

/** Asks as an adapter does: what is known here first. */
async function ask(limiter: AnyLimiter, cost = 1): ReturnType<AnyLimiter['take']> {
  return limiter.tryTake('k', { cost }) ?? limiter.take('k', { cost })
}

/** Trips that `run` costs. */
async function spent(run: () => Promise<unknown>): Promise<number> {
  const before = await trips(server)
  await run()
  return (await trips(server)) - before
}

const slow = fixedWindow({ limit: 3, window: '1000d' })

test('a caller who hammers costs a trip per second, whatever it asks', async () => {
  const limiter = limiterOf(slow)
  for (let turn = 0; turn < 4; turn++) await ask(limiter)
  const count = await spent(async () => {
    for (let turn = 0; turn < 2_000; turn++) expect((await ask(limiter)).reason).toBe('limited')
  })
  // It takes some ms; where the machine is slow, a second more.
  expect(count).toBeLessThanOrEqual(3)
})

test('a refusal is believed for a second at most', async () => {
  const limiter = limiterOf(slow)
  for (let turn = 0; turn < 4; turn++) await ask(limiter)
  expect(limiter.tryTake('k')?.allowed).toBe(false)
  await sleep(1_050)
  expect(limiter.tryTake('k')).toBeUndefined()
})

test('a known refusal tells the wait as of now, and nobody waits longer than the store said', async () => {
  const limiter = limiterOf(gcra({ limit: 1, window: '300ms', burst: 1 }))
  const began = performance.now()
  await ask(limiter)
  const refused = await ask(limiter)
  const promised = began + 300
  expect(refused.allowed).toBe(false)
  await sleep(50)
  const known = limiter.tryTake('k')
  if (known !== undefined) {
    expect(known.retryAfterMs).toBeLessThan(refused.retryAfterMs)
    expect(known.allowed).toBe(false)
  }
  // It is let in at what any of the refusals promised, though it was refused here all the time.
  while (!(await ask(limiter)).allowed) await sleep(1)
  expect(performance.now()).toBeLessThan(promised + 1_000)
  expect(performance.now()).toBeGreaterThan(promised - 5)
})

test('the wait counts from the sending of the question, not from its answer', async () => {
  const limiter = limiterOf(tokenBucket({ limit: 1, window: '400ms', burst: 1 }))
  await limiter.take('k')
  const sent = performance.now()
  const refused = await limiter.take('k')
  const known = limiter.tryTake('k')
  const since = performance.now() - sent
  if (known !== undefined) {
    expect(known.retryAfterMs).toBeLessThanOrEqual(refused.retryAfterMs)
    expect(known.retryAfterMs).toBeGreaterThan(refused.retryAfterMs - since - 1)
  }
})

test('another key, another cost and another policy are asked for', async () => {
  const limiter = limiterOf(slow)
  for (let turn = 0; turn < 4; turn++) await ask(limiter)
  expect(limiter.tryTake('k')).toBeDefined()
  expect(limiter.tryTake('other')).toBeUndefined()
  expect(limiter.tryTake('k', { cost: 2 })).toBeUndefined()
  expect(limiterOf(slow).tryTake('k')).toBeUndefined()
})

test('permits are asked for each time: they come back at any moment', async () => {
  const limiter = limiterOf(concurrency({ limit: 1, permitTtl: '1h' }))
  const held = await limiter.take('k')
  const count = await spent(async () => {
    for (let turn = 0; turn < 10; turn++) expect((await ask(limiter)).reason).toBe('concurrency')
  })
  expect(count).toBe(10)
  await limiter.release(held)
  expect((await ask(limiter)).allowed).toBe(true)
})

describe('what this process changes is known here at once', () => {
  const changes: Record<
    string,
    (limiter: AnyLimiter, taken: Awaited<ReturnType<AnyLimiter['take']>>) => Promise<unknown>
  > = {
    refund: (limiter, taken) => limiter.refund(taken),
    reset: (limiter) => limiter.reset('k'),
  }

  test.each(Object.keys(changes))('%s', async (name) => {
    const limiter = limiterOf(slow)
    const [taken] = await Promise.all(times(3, () => limiter.take('k')))
    expect((await ask(limiter)).allowed).toBe(false)
    await changes[name]?.(limiter, taken as Awaited<ReturnType<AnyLimiter['take']>>)
    expect((await ask(limiter)).allowed).toBe(true)
  })

  test('block and unblock', async () => {
    const limiter = limiterOf(slow)
    await limiter.block('k', '1h')
    expect((await ask(limiter)).reason).toBe('blocked')
    expect((await ask(limiter)).reason).toBe('blocked')
    await limiter.unblock('k')
    expect((await ask(limiter)).allowed).toBe(true)
  })
})

test('peek asks the store', async () => {
  const limiter = limiterOf(slow)
  for (let turn = 0; turn < 4; turn++) await ask(limiter)
  expect(await spent(() => limiter.peek('k'))).toBe(1)
})

test('a policy that was not asked says that nothing of it was charged, so nothing of it can be released', async () => {
  const rules = { tight: fixedWindow({ limit: 1, window: '1000d' }), held: concurrency({ limit: 5, permitTtl: '1h' }) }
  const limiter = createLimiter(rules, { name: `l${runs++}`, store, storeFailure: { expectedInstances: 1 } })
  for (let turn = 0; turn < 2; turn++) await limiter.take({ tight: 'a', held: 'b' })
  const known = await limiter.take({ tight: 'a', held: 'b' })
  expect(known.allowed).toBe(false)
  expect(known.stack.map(({ charged }) => charged)).toEqual([0, 0])
})
