import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, type Decision, fixedWindow, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Source } from '../../src/core/decision.ts'
import { LeasedLedger } from '../../src/stores/lease/leased-ledger.ts'
import { mostHeld } from '../../src/stores/lease/terms.ts'
import { type AnyLimiter, connect, eventually, ready, sleep, times, trips } from '../redis/support.ts'
import { silent } from './setup.ts'

let server: RedisProcess
let client: Redis
let runs = 0

beforeAll(async () => {
  server = await RedisProcess.start()
  client = connect(server.port)
  await ready(client)
})

afterAll(async () => {
  client.disconnect()
  await server.stop()
})

const window = '1000d'
const rules: readonly (readonly [string, Rule])[] = [
  ['fixed', fixedWindow({ limit: 100, window })],
  ['first', fixedWindow({ limit: 100, window, anchor: 'first' })],
  ['counter', slidingCounter({ limit: 100, window })],
  ['parts', slidingCounter({ limit: 100, window, subWindows: 5 })],
  ['log', slidingLog({ limit: 100, window })],
  ['bucket', tokenBucket({ limit: 100, window })],
]

/** A process of a service; several may be of one client, as each store has its own calls and deadlines. */
function start(rule: Rule, name: string, lease?: { block: number; ttl?: '1h' | '1s' | '200ms' }): AnyLimiter {
  const store = redisStore({ client, timeoutMs: 5_000 })
  onTestFinished(() => store.close())
  const leased = lease === undefined ? {} : { lease }
  return createLimiter(rule, { name, store, onStoreFailure: 'closed', ...leased })
}

async function use(limiter: AnyLimiter, units: number): Promise<Decision[]> {
  const taken: Decision[] = []
  for (let request = 0; request < units; request++) taken.push(await limiter.take('k'))
  expect(taken.every(({ allowed, degraded }) => allowed && !degraded)).toBe(true)
  return taken
}

describe.each(rules)('%s', (kind, rule) => {
  const name = (what: string): string => `${kind}-${what}`

  test('three processes admit the limit, no more, and most of it without a trip', async () => {
    const all = times(3, () => start(rule, name('share'), { block: 10, ttl: '1h' }))
    const before = await trips(server)
    let admitted = 0
    for (let round = 0; round < 60; round++) {
      const answers = await Promise.all(all.map((limiter) => limiter.take('k')))
      admitted += answers.filter(({ allowed, degraded }) => allowed && !degraded).length
    }
    expect(admitted).toBeLessThanOrEqual(100)
    expect(admitted).toBeGreaterThanOrEqual(100 - 2 * mostHeld(10))
    expect((await trips(server)) - before).toBeLessThan(110)
  })

  test('close gives all back: another process can then take everything', async () => {
    const one = start(rule, name('close'), { block: 20, ttl: '1h' })
    const other = start(rule, name('close'), { block: 20, ttl: '1h' })
    await use(one, 30)
    one.close()
    await eventually('it is back', async () => (await other.peek('k')).remaining === 70)
    expect((await other.take('k', { cost: 70 })).allowed).toBe(true)
    expect((await other.take('k')).allowed).toBe(false)
  })

  test('what nobody uses goes back by itself', async () => {
    const one = start(rule, name('idle'), { block: 20, ttl: '200ms' })
    const plain = start(rule, name('idle'))
    await use(one, 30)
    await eventually('it is back', async () => (await plain.peek('k')).remaining === 70)
  })

  test('a refund of a unit in hand, and of one whose lease is over', async () => {
    const one = start(rule, name('refund'), { block: 20, ttl: '200ms' })
    const plain = start(rule, name('refund'))
    const taken = await use(one, 30)
    expect(await one.refund(taken.at(-1) as Decision)).toBe(1)
    expect(await one.refund(taken.at(-1) as Decision)).toBe(0)
    await eventually('what is in hand is back', async () => (await plain.peek('k')).remaining === 71)
    const back = await one.refund(taken[0] as Decision)
    // Of a bucket what was given back before counts as if it lay above, which errs against the caller.
    if (kind === 'bucket') expect(back).toBeLessThanOrEqual(1)
    else expect(back).toBe(1)
    expect((await plain.peek('k')).remaining).toBe(71 + Math.floor(back))
  })

  test('reset: all of the limit is there', async () => {
    const one = start(rule, name('reset'), { block: 20, ttl: '1h' })
    await use(one, 30)
    await one.reset('k')
    expect((await one.peek('k')).remaining).toBe(100)
    const answers = await Promise.all(times(120, () => one.take('k')))
    expect(answers.filter(({ allowed }) => allowed).length).toBe(100)
  })
})

test('a block stops its own process at once and others after one lease time at most; unblock ends it', async () => {
  const rule = slidingLog({ limit: 1_000, window })
  const one = start(rule, 'block', { block: 20, ttl: '1s' })
  const other = start(rule, 'block', { block: 20, ttl: '1s' })
  await use(one, 40)
  await use(other, 40)
  await one.block('k', '1h')
  expect(await one.take('k')).toMatchObject({ allowed: false, reason: 'blocked' })
  expect(await one.peek('k')).toMatchObject({ allowed: false, reason: 'blocked' })
  // The other may use what it holds, no more.
  let admitted = 0
  for (let request = 0; request < 200; request++) if ((await other.take('k')).allowed) admitted++
  expect(admitted).toBeLessThanOrEqual(mostHeld(20))
  const idle = start(rule, 'block', { block: 20, ttl: '1s' })
  expect(await idle.take('k')).toMatchObject({ allowed: false, reason: 'blocked' })
  await one.unblock('k')
  await eventually('all go on', async () => (await one.take('k')).allowed && (await other.take('k')).allowed)
})

test('a process that is not asked while a key is blocked does not use its units after the lease', async () => {
  const rule = slidingLog({ limit: 1_000, window })
  const one = start(rule, 'block-later', { block: 20, ttl: '200ms' })
  const other = start(rule, 'block-later', { block: 20, ttl: '200ms' })
  await use(other, 40)
  await one.block('k', '1h')
  await sleep(250)
  expect(await other.take('k')).toMatchObject({ allowed: false, reason: 'blocked' })
})

test('one key under two tags is two states, leased apart', async () => {
  const store = redisStore({ client, timeoutMs: 5_000 })
  onTestFinished(() => store.close())
  const limit = slidingLog({ limit: 20, window })
  const limiter = createLimiter(
    { user: limit, tenant: slidingLog({ limit: 1_000, window }) },
    {
      name: 'tags',
      store,
      tag: 'tenant',
      onStoreFailure: 'closed',
      lease: { block: 8, ttl: '1h' },
    },
  )
  const take = (tenant: string) => limiter.take({ user: 'u', tenant })
  for (const tenant of ['a', 'b', 'a:b']) {
    const answers: Decision[] = []
    for (let request = 0; request < 30; request++) answers.push(await take(tenant))
    expect(answers.filter(({ allowed }) => allowed).length).toBe(20)
  }
  await limiter.reset({ user: 'u', tenant: 'a' })
  expect((await take('a')).allowed).toBe(true)
  expect((await take('b')).allowed).toBe(false)
})

test('a new list of policies while callers wait: they are answered, and charged where they asked', async () => {
  const store = redisStore({ client, timeoutMs: 5_000 })
  onTestFinished(() => store.close())
  const issuer = { release: () => {} }
  const rule = slidingLog({ limit: 100, window })
  const leased = (name: string): Source => ({ name, rule, issuer, lease: { block: 10, ttlUs: 3_600_000_000 } })
  const name = `replaced${runs++}`
  const ledger = new LeasedLedger(store, name, [leased('stays'), leased('gone')], silent, { expectedInstances: 1 })
  onTestFinished(() => ledger.close())
  const take = (member: number) => ledger.apply([member], ['k'], undefined, [1], true)
  for (let request = 0; request < 5; request++) await take(0)
  const waiting = [...times(30, () => take(0)), ...times(10, () => take(1))]
  ledger.replace([leased('new'), leased('stays')], { expectedInstances: 1 })
  const answers = await Promise.all(waiting)
  const stayed = answers.slice(0, 30)
  expect(stayed.every(({ allowed, degraded }) => allowed && !degraded)).toBe(true)
  const left = async (member: number): Promise<number> =>
    (await ledger.apply([member], ['k'], undefined, [1], false)).remaining
  await eventually('what was in hand is back', async () => (await left(1)) === 100 - 35)
  expect(await left(0)).toBe(100)
})
