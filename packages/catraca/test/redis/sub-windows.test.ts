import { RedisProcess } from '@catraca/gateway/redis-server'
import { fixedWindow, slidingCounter, slidingLog } from 'catraca'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type Named, Simulated } from './simulated.ts'
import { connect, lives, ready } from './support.ts'

let server: RedisProcess
let redis: Redis
let open: Awaited<ReturnType<typeof Simulated.load>>

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = connect(server.port)
  await ready(redis)
  open = await Simulated.load(redis)
})
beforeEach(() => redis.flushall())
afterEach(() => void vi.restoreAllMocks())
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

const second = 1_000_000
/** A multiple of every window here. */
const t0 = Date.UTC(2027, 0, 1) * 1_000

/** A store whose keys keep the lives that they are given. */
function shared(...rules: Named['rule'][]): Simulated {
  return opened(rules.map((rule) => ({ name: 'p', rule })))
}

function opened(policies: readonly Named[]): Simulated {
  const one = open('api', policies)
  one.expires = false
  return one
}

/** The only key. */
async function stored(): Promise<{ key: string; bytes: number; type: string }> {
  const [key = '', ...others] = (await lives(redis)).keys()
  expect(others).toEqual([])
  return { key, bytes: await redis.strlen(key), type: await redis.type(key) }
}

test.each([2, 5, 60])(
  'in %i parts it is one string: two numbers, the rule, and a number per older part',
  async (parts) => {
    const rule = slidingCounter({ limit: 1_000, window: '1m', subWindows: parts })
    const partUs = (60 * second) / parts
    const store = shared(rule)
    const least = 16 + rule.script.name.length
    for (let part = 0; part < 3 * parts; part++) {
      store.at(t0 + part * partUs + (part % 7))
      for (let turn = 0; turn < 3; turn++) expect((await store.take(0, 'k', 1)).allowed).toBe(true)
      const { bytes, type } = await stored()
      expect({ part, bytes, type }).toEqual({ part, bytes: least + 8 * Math.min(part, parts), type: 'string' })
    }
    // After a window without a request nothing of before is kept.
    store.at(t0 + 6 * 60 * second)
    await store.take(0, 'k', 1)
    expect((await stored()).bytes).toBe(least)
  },
)

test('its life is a constant of the rule: a window, a part and a tenth of both', async () => {
  const rule = slidingCounter({ limit: 10, window: '100s', subWindows: 4 })
  expect(rule.script.lifeMs).toBe(135_000)
  const store = shared(rule)
  for (const [at, cost] of [
    [0, 1],
    [24, 3],
    [99, 6],
  ] as const) {
    store.at(t0 + at * second)
    await store.take(0, 'k', cost)
    const left = await redis.pttl((await stored()).key)
    expect(left).toBeLessThanOrEqual(135_000)
    expect(left).toBeGreaterThan(125_000)
  }
})

test('a clock that was ahead keeps the key until its parts have left', async () => {
  const store = shared(slidingCounter({ limit: 10, window: '10s', subWindows: 5 }))
  store.at(t0 + 50 * second)
  await store.take(0, 'k', 1)
  store.at(t0)
  await store.take(0, 'k', 1)
  // Of t0 + 50 s, counted to t0 + 62 s, and a second.
  const left = await redis.pttl((await stored()).key)
  expect(left).toBeLessThanOrEqual(63_000)
  expect(left).toBeGreaterThan(58_000)
})

test('a block and its end leave what each part counts', async () => {
  const store = shared(slidingCounter({ limit: 10, window: '10s', subWindows: 5 }))
  for (const at of [0, 2, 4]) {
    store.at(t0 + at * second)
    await store.take(0, 'k', 2)
  }
  await store.ledger.block(0, 'k', undefined, 3 * second)
  const refused = await store.take(0, 'k', 1)
  expect([refused.reason, refused.retryAfterMs, refused.remaining]).toEqual(['blocked', 3_000, 0])
  // The first part has left by a half then.
  store.at(t0 + 11 * second)
  expect((await store.take(0, 'k', 1, false)).remaining).toBe(5)
  await store.take(0, 'k', 1)
  expect((await store.take(0, 'k', 1, false)).remaining).toBe(4)
  store.at(t0 + 14 * second)
  // What was charged at 4 s and at 11 s.
  expect((await store.take(0, 'k', 1, false)).remaining).toBe(7)
})

test('a caller who comes back from another rule finds what each part counts', async () => {
  const parts = slidingCounter({ limit: 10, window: '10s', subWindows: 5 })
  const store = shared(parts, slidingLog({ limit: 20, window: '10s' }))
  for (const at of [0, 2, 4]) {
    store.at(t0 + at * second)
    await store.take(0, 'k', 2)
  }
  store.at(t0 + 5 * second)
  // The six in use are charged to the log too, as one.
  expect((await store.take(1, 'k', 1)).remaining).toBe(13)
  // And the one that the log admitted comes along.
  expect((await store.take(0, 'k', 1, false)).remaining).toBe(3)
  // Nothing in the log is left, and of the newest part half.
  store.at(t0 + 15 * second)
  expect((await store.take(0, 'k', 1, false)).remaining).toBe(9)
})

test.each([
  ['keep', 16],
  ['proportional', 12],
  ['reset', 20],
] as const)('a stack that refuses writes the counts of another limit as they stand: %s', async (onRuleChange, left) => {
  const [of10, of20] = [10, 20].map((limit) => slidingCounter({ limit, window: '10s', subWindows: 5 })) as [
    Named['rule'],
    Named['rule'],
  ]
  const store = opened([
    { name: 'p', rule: of10 },
    { name: 'p', rule: of20, onRuleChange },
    { name: 'q', rule: fixedWindow({ limit: 1, window: '10s' }) },
  ])
  for (const at of [0, 2]) {
    store.at(t0 + at * second)
    await store.take(0, 'k', 2)
  }
  await store.take(2, 'k', 1)
  store.at(t0 + 7 * second)
  const refused = await store.ledger.apply([1, 2], ['k', 'k'], undefined, [1, 1], true)
  expect(refused.stack.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
    [true, left],
    [false, 0],
  ])
  expect((await store.take(1, 'k', 1, false)).remaining).toBe(left)
  const kept = [...(await lives(redis)).keys()].find((key) => key.endsWith('p')) as string
  const numbers = onRuleChange === 'reset' ? 3 : 4
  // Written with its third number, which is 0.
  expect(await redis.strlen(kept)).toBe(1 + 8 * numbers + of20.script.name.length)
})
