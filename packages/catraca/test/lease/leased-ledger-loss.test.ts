import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, fixedWindow, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { leaseBounds } from '../../src/stores/lease/terms.ts'
import { type AnyLimiter, connect, eventually, type Notes, notes, ready, times } from '../redis/support.ts'

const instances = 3
const limit = 30
const block = 5

let server: RedisProcess
let admin: Redis
let runs = 0

beforeAll(async () => {
  server = await RedisProcess.start()
  admin = connect(server.port)
  await ready(admin)
})

afterAll(async () => {
  admin.disconnect()
  await server.stop()
})

interface Instance {
  readonly limiter: AnyLimiter
  readonly noted: Notes
}

/**
 * A process of a service: a client, a store and a limiter of its own; undefined `ttl`: without a lease. A prefix has a
 * marker, in which a loss is noted for an hour, so each test has one of its own.
 */
async function start(rule: Rule, name: string, ttl: string | undefined): Promise<Instance> {
  const client = connect(server.port)
  onTestFinished(() => client.disconnect())
  await ready(client)
  const store = redisStore({ client, prefix: name, timeoutMs: 5_000 })
  onTestFinished(() => store.close())
  const noted = notes()
  const lease = ttl === undefined ? {} : { lease: { block, ttl: ttl as '1h' } }
  const limiter = createLimiter(rule, { name, store, on: noted.on, onStoreFailure: 'closed', ...lease })
  return { limiter, noted }
}

/** A window by the clock that does not end during a test, half an hour or an hour long. */
function steady(ms: number): number {
  const shorter = ms - 60_000
  return ms - (Date.now() % ms) > 30_000 ? ms : shorter
}

const hour = steady(3_600_000)
const half = steady(1_800_000)

/** Rules of which a lease of an hour outlasts what they count. */
const outlasted: readonly (readonly [string, Rule])[] = [
  ['fixed', fixedWindow({ limit, window: hour })],
  ['first', fixedWindow({ limit, window: hour, anchor: 'first' })],
  ['counter', slidingCounter({ limit, window: half })],
  ['log', slidingLog({ limit, window: hour })],
  ['bucket', tokenBucket({ limit, window: hour })],
]

/** Asks all instances in turn until each was refused so often in a row. */
async function hammer(all: readonly Instance[], refusals: number): Promise<number> {
  let admitted = 0
  for (let row = 0; row < refusals; row++) {
    const answers = await Promise.all(all.flatMap(({ limiter }) => times(4, () => limiter.take('k'))))
    const passed = answers.filter(({ allowed }) => allowed).length
    admitted += passed
    if (passed > 0) row = -1
  }
  return admitted
}

describe.each(outlasted)('%s: a loss hands out nothing again', (kind, rule) => {
  const { over } = leaseBounds(rule, { block }, instances)

  test.each([
    ['FLUSHALL', 'flush'],
    ['a restart', 'restart'],
  ] as const)('%s', async (_, loss) => {
    const name = `${kind}-${loss}`
    const all = await Promise.all(times(instances, () => start(rule, name, '1h')))
    let admitted = await hammer(all, 3)
    expect(admitted).toBeGreaterThanOrEqual(limit - (instances - 1) * 7)
    expect(admitted).toBeLessThanOrEqual(limit)
    if (loss === 'flush') await admin.flushall()
    else {
      await server.restart()
      await eventually(
        'the store is back',
        async () => !(await Promise.all(all.map(({ limiter }) => limiter.peek('k')))).some(({ degraded }) => degraded),
      )
    }
    admitted += await hammer(all, 5)
    await eventually('all are told', () => all.every(({ noted }) => noted.of('store.lost').length > 0))
    expect(all.flatMap(({ noted }) => noted.of('store.lost').map((event) => event.kind))).toEqual(
      times(instances, () => loss),
    )
    admitted += await hammer(all, 5)
    expect(admitted).toBeLessThanOrEqual(limit + over)
    // A key nobody asked for before is used up too.
    const answers = await Promise.all(all.map(({ limiter }) => limiter.take('never seen')))
    expect(answers.map(({ allowed }) => allowed)).toEqual([false, false, false])
  })
})

test.each(['FLUSHALL', 'a restart', 'an outage and a restart'])(
  'where a lease does not outlast the rule each instance charges anew what it used and holds: %s',
  async (loss) => {
    const rule = slidingLog({ limit: 100, window: '1000d' })
    const name = `report${runs++}`
    const [a, b, idle] = (await Promise.all(times(3, () => start(rule, name, '1h')))) as [Instance, Instance, Instance]
    const plain = await start(rule, name, undefined)
    for (let turn = 0; turn < 4; turn++) await a.limiter.take('k')
    for (let turn = 0; turn < 9; turn++) await b.limiter.take('k')
    await idle.limiter.peek('k')
    const left = async (): Promise<number> => (await plain.limiter.peek('k')).remaining
    const before = await left()
    expect(before).toBeLessThanOrEqual(100 - 13)
    if (loss === 'FLUSHALL') await admin.flushall()
    else {
      await server.kill()
      // So often that nothing is sent to the store any more but a probe.
      if (loss === 'an outage and a restart') {
        for (const { limiter } of [a, b, idle, plain]) for (let turn = 0; turn < 10; turn++) await limiter.take('other')
      }
      await server.restart()
    }
    await eventually('a and b report', async () => (await left()) === before)
    await eventually('all are told', () => [a, b, idle].every(({ noted }) => noted.of('store.lost').length > 0))
    expect(await left()).toBe(before)
    // What is in hand is still theirs, and is counted.
    const inHand = 100 - before - 13
    const more = await hammer([a, b], 3)
    expect(more).toBe(before + inHand)
  },
)

test('a replica that took over with the memory: nothing is learnt, nothing reported', async () => {
  const rule = slidingLog({ limit, window: '1h' })
  const name = `failover${runs++}`
  const one = await start(rule, name, '1h')
  const plain = await start(rule, name, undefined)
  for (let turn = 0; turn < 9; turn++) await one.limiter.take('k')
  const { remaining } = await plain.limiter.peek('k')
  // The same memory under another run id, which is all that a failover shows of itself.
  await server.command('SAVE')
  await server.restart()
  onTestFinished(async () => {
    await admin.flushall()
    await server.command('SAVE')
  })
  await eventually('it is told', () => one.noted.of('store.lost').length > 0)
  expect(one.noted.of('store.lost')).toMatchObject([{ kind: 'failover' }])
  await eventually('the store is back', async () => !(await plain.limiter.peek('k')).degraded)
  expect((await plain.limiter.peek('k')).remaining).toBe(remaining)
  expect(await one.limiter.take('never seen', { cost: limit })).toMatchObject({ allowed: true, degraded: false })
})
