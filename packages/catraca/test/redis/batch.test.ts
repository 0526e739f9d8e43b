import { RedisProcess } from '@catraca/gateway/redis-server'
import * as fc from 'fast-check'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { Source } from '../../src/core/decision.ts'
import type { Call } from '../../src/stores/redis/calls.ts'
import { RedisLedger } from '../../src/stores/redis/redis-ledger.ts'
import { batch, decide } from '../../src/stores/redis/script.generated.ts'
import { timedScripts } from './simulated.ts'
import { connect, ready, rulesOf, times } from './support.ts'

let server: RedisProcess
/** Two databases of one server: one is asked question by question, the other in batches. */
let alone: Redis
let together: Redis

beforeAll(async () => {
  server = await RedisProcess.start()
  alone = connect(server.port)
  together = connect(server.port, { db: 1 })
  await Promise.all([ready(alone), ready(together)])
})

afterEach(() => vi.restoreAllMocks())

afterAll(async () => {
  alone.disconnect()
  together.disconnect()
  await server.stop()
})

const rules = rulesOf(4)
const sources: Source[] = Object.entries(rules).map(([name, rule]) => ({ name, rule, issuer: { release: () => {} } }))
const question = fc.record({
  members: fc.uniqueArray(fc.nat(sources.length - 1), { minLength: 1, maxLength: 3 }),
  key: fc.constantFrom('a', 'b', 'c'),
  cost: fc.constantFrom(1, 1, 1, 2, 5),
  charge: fc.constantFrom(true, true, true, false),
})
const turns = fc.array(
  fc.record({
    pauseUs: fc.constantFrom(0, 1, 1_000_000, 86_400_000_000),
    asked: fc.array(question, { maxLength: 12 }),
  }),
  { maxLength: 8 },
)

const text = (script: { sha: string }): string => timedScripts.get(script.sha) as string

test('questions in a batch are answered as one after the other', async () => {
  let run = 0
  await fc.assert(
    fc.asyncProperty(turns, async (rounds) => {
      const calls: Call[] = []
      const store = {
        calls: { send: (call: Call) => calls.push(call) },
        prefix: `run${run++}`,
        cluster: false,
        rebased: () => {},
        charged: () => {},
      }
      const ledger = new RedisLedger(store as never, 'l', sources, () => {})
      let now = 1_800_000_000_000_000
      for (const { pauseUs, asked } of rounds) {
        now += pauseUs
        vi.spyOn(Date, 'now').mockReturnValue(now / 1_000)
        calls.length = 0
        for (const { members, key, cost, charge } of asked) {
          const keys = members.map(() => key)
          const costs = members.map(() => cost)
          void ledger.apply(members, keys, undefined, costs, charge)
        }
        if (calls.length === 0) continue
        const single = calls.map(({ keys, args }) => alone.eval(text(decide), keys.length, ...keys, ...args, `${now}`))
        const keys = calls.flatMap((call) => call.keys)
        const args = calls.flatMap((call) => [`${call.keys.length}`, `${call.args.length}`, ...call.args])
        const all = together.eval(text(batch), keys.length, ...keys, `${calls.length}`, ...args, `${now}`)
        expect(await all).toEqual(await Promise.all(single))
      }
    }),
    { numRuns: 150 },
  )
  // What was written is the same too.
  const keys = (await alone.keys('*')).toSorted()
  expect((await together.keys('*')).toSorted()).toEqual(keys)
  const states = (redis: Redis): Promise<unknown[]> => Promise.all(keys.map((key) => redis.getBuffer(key)))
  expect(await states(together)).toEqual(await states(alone))
})

test('a question that fails in a batch says so, and the others are answered', async () => {
  const store = { calls: { send: (call: Call) => calls.push(call) }, prefix: 'bad', cluster: false, charged: () => {} }
  const calls: Call[] = []
  const ledger = new RedisLedger(store as never, 'l', sources, () => {})
  vi.spyOn(Date, 'now').mockReturnValue(1_800_000_000_000)
  for (const key of ['a', 'bad', 'worse', 'b']) {
    for (const member of sources.keys()) void ledger.apply([member], [key], undefined, [1], true)
  }
  await Promise.all(
    calls.flatMap(({ keys }, index): Promise<unknown>[] => {
      const turn = Math.floor(index / sources.length)
      if (turn === 1) return keys.map((key) => together.rpush(key, 'x'))
      return turn === 2 ? keys.map((key) => together.set(key, 'a text of another program; longer')) : []
    }),
  )
  const keys = calls.flatMap((call) => call.keys)
  const args = calls.flatMap((call) => [`${call.keys.length}`, `${call.args.length}`, ...call.args])
  const answers = (await together.eval(
    text(batch),
    keys.length,
    ...keys,
    `${calls.length}`,
    ...args,
    '1800000000000000',
  )) as unknown[][]
  const kinds = answers.map(([first]) => (typeof first === 'string' ? /WRONGTYPE|CATRACA/.exec(first)?.[0] : 'answer'))
  const each = (what: string): string[] => times(sources.length, () => what)
  expect(kinds).toEqual([...each('answer'), ...each('WRONGTYPE'), ...each('CATRACA'), ...each('answer')])
})
