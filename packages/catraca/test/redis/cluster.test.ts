import { type RedisCluster, startCluster } from '@catraca/gateway/redis-server'
import { concurrency, createLimiter, fixedWindow, quota, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Cluster } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { KeyNames } from '../../src/stores/redis/keys.ts'
import { amend } from '../../src/stores/redis/script.generated.ts'
import type { RemoteStore } from '../../src/stores/remote.ts'
import { connectCluster, eventually, notes, ready, rulesOf, times, trips } from './support.ts'

let cluster: RedisCluster
let client: Cluster
let store: RemoteStore

beforeAll(async () => {
  cluster = await startCluster()
  client = connectCluster(cluster.nodes)
  await ready(client)
}, 60_000)

afterAll(async () => {
  client.disconnect()
  await cluster.stop()
})

beforeEach(() => {
  store = redisStore({ client, timeoutMs: 5_000 })
})

afterEach(async () => {
  store.close()
  await Promise.all(cluster.nodes.map((node) => node.command('FLUSHALL')))
})

const window = '1000d'

test.each(Object.entries(rulesOf(50)))('%s: of 400 calls at once exactly 50 pass', async (name, rule) => {
  const limiter = createLimiter(rule, { name, store, onStoreFailure: 'closed' })
  const all = await Promise.all(times(400, () => limiter.take('k')))
  expect(all.filter(({ allowed }) => allowed).length).toBe(50)
  expect(all.filter(({ degraded }) => degraded).length).toBe(0)
})

test('exact per key over all nodes: 60 keys, 10 each of 20', async () => {
  const limiter = createLimiter(tokenBucket({ limit: 10, window }), { name: 'keys', store, onStoreFailure: 'closed' })
  const all = await Promise.all(times(1_200, (index) => limiter.take(`k${index % 60}`)))
  expect(all.filter(({ allowed }) => allowed).length).toBe(600)
  const sizes = await Promise.all(cluster.nodes.map(async (node) => Number(await node.command('DBSIZE'))))
  expect(sizes.every((size) => size > 5)).toBe(true)
})

const stack = {
  tenant: fixedWindow({ limit: 100, window }),
  user: tokenBucket({ limit: 30, window }),
  held: concurrency({ limit: 1_000, permitTtl: '1h' }),
}

test('it says what it charges all or nothing', () => {
  expect(store.atomic).toBe('tag')
})

test('acceptance 86: policies under one tag stand on one node and are all or nothing in one trip', async () => {
  const limiter = createLimiter(stack, { name: 'tagged', store, tag: 'tenant', onStoreFailure: 'closed' })
  await limiter.take({ tenant: 't', user: 'warm', held: 'h' })
  const tag = /\{\w+\}/
  const keys = (await Promise.all(cluster.nodes.map(async (node) => (await node.command('KEYS', '*')) as string[])))
    .flat()
    .filter((key) => !key.includes('{catraca}'))
  expect(keys.length).toBe(3)
  expect(new Set(keys.map((key) => tag.exec(key)?.[0])).size).toBe(1)

  const before = await trips(...cluster.nodes)
  const all = []
  for (let turn = 0; turn < 40; turn++) all.push(await limiter.take({ tenant: 't', user: 'u', held: 'h' }))
  expect(all.map(({ allowed }) => allowed)).toEqual(times(40, (turn) => turn < 30))
  // The refused ones are known here for a while: one trip each at most.
  const spent = (await trips(...cluster.nodes)) - before
  expect(spent).toBeGreaterThanOrEqual(31)
  expect(spent).toBeLessThanOrEqual(40)
  const left = await limiter.peek({ tenant: 't', user: 'other', held: 'h' })
  expect(left.policies.map(({ remaining }) => remaining)).toEqual([69, 30, 969])
})

test('one tag, concurrent: what passes is charged everywhere, what is refused nowhere', async () => {
  const limiter = createLimiter(stack, { name: 'busy', store, tag: 'tenant', onStoreFailure: 'closed' })
  const all = await Promise.all(times(400, (index) => limiter.take({ tenant: 't', user: `u${index % 5}`, held: 'h' })))
  const admitted = all.filter(({ allowed }) => allowed)
  expect(admitted.length).toBe(100)
  const left = await limiter.peek({ tenant: 't', user: 'u0', held: 'h' })
  expect(left.policies[0]?.remaining).toBe(0)
  expect(left.policies[2]?.remaining).toBe(900)
  const users = await Promise.all(times(5, (index) => limiter.peek({ tenant: 'other', user: `u${index}`, held: 'x' })))
  // The user under another tenant's tag is another state: it has everything.
  expect(users.every(({ policies }) => policies[1]?.remaining === 30)).toBe(true)
})

test('an instance that dies between the charge and its undo leaves one cost charged, and no more', async () => {
  // Whatever gives back is never sent, as if the process had ended before it.
  const dying = new Proxy(client, {
    get(target, name) {
      if (name === 'evalsha') {
        return (sha: string, ...rest: string[]) =>
          sha === amend.sha ? new Promise(() => {}) : (target.evalsha as (...all: string[]) => unknown)(sha, ...rest)
      }
      const value = Reflect.get(target, name) as unknown
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  const parts = { tight: fixedWindow({ limit: 1, window }), loose: tokenBucket({ limit: 100, window }) }
  const options = { name: 'undo', onStoreFailure: 'closed' } as const
  const dies = redisStore({ client: dying, timeoutMs: 300 })
  const keys = { tight: 'a', loose: 'b' }
  const limiter = createLimiter(parts, { ...options, store: dies })
  expect((await limiter.take(keys)).allowed).toBe(true)
  await limiter.take(keys)
  const left = (await createLimiter(parts, { ...options, store }).peek(keys)).policies.map(({ remaining }) => remaining)
  expect(left).toEqual([0, 98])
  dies.close()
})

test('without a tag: after a refusal the policies on other nodes have everything back', async () => {
  const parts = {
    tight: fixedWindow({ limit: 5, window }),
    log: slidingLog({ limit: 100, window }),
    counter: slidingCounter({ limit: 100, window }),
    bucket: tokenBucket({ limit: 100, window }),
    quota: quota({ limit: 100, period: 'year' }),
    held: concurrency({ limit: 100, permitTtl: '1h' }),
  }
  const limiter = createLimiter(parts, { name: 'apart', store, onStoreFailure: 'closed' })
  const keys = { tight: 'a', log: 'b', counter: 'c', bucket: 'd', quota: 'e', held: 'f' }
  const first = []
  for (let turn = 0; turn < 12; turn++) first.push(await limiter.take(keys))
  expect(first.map(({ allowed }) => allowed)).toEqual(times(12, (turn) => turn < 5))
  expect(first[5]?.stack.map(({ charged }) => charged)).toEqual(times(6, () => 0))
  const left = (await limiter.peek(keys)).policies.map(({ policy, remaining }) => [policy, remaining])
  expect(Object.fromEntries(left)).toEqual({ tight: 0, log: 95, counter: 95, bucket: 95, quota: 95, held: 95 })
  // At once: never more than the tightest, and in the end the others have spent what passed.
  const other = { ...keys, tight: 'other' }
  const all = await Promise.all(times(30, () => limiter.take(other)))
  const passed = all.filter(({ allowed }) => allowed).length
  expect(passed).toBeLessThanOrEqual(5)
  const after = (await limiter.peek(other)).policies.map(({ remaining }) => remaining)
  expect(after).toEqual([5 - passed, ...times(5, () => 95 - passed)])
})

describe('a slot on its way to another node', () => {
  test('MOVED and ASK are followed: every call is counted once', async () => {
    const { on, told } = notes()
    const limiter = createLimiter(tokenBucket({ limit: 1_000, window }), { name: 'moving', store, on })
    const name = new KeyNames('catraca', 'moving', 'moving').nameOf('k', undefined)
    const take = async (count: number): Promise<void> => {
      for (let turn = 0; turn < count; turn++) expect((await limiter.take('k')).degraded).toBe(false)
    }
    await take(10)
    const slot = await cluster.slotOf(name)
    const from = cluster.nodeOf(slot)
    const to = cluster.nodes.find((node) => node !== from) as (typeof cluster.nodes)[number]
    await cluster.beginMove(slot, to)
    await take(10)
    await cluster.migrateKeys(slot, to)
    // The old owner says ASK now.
    await take(10)
    await cluster.endMove(slot, to)
    // And now MOVED.
    await take(10)
    expect((await limiter.peek('k')).remaining).toBe(960)
    expect(told).toEqual([])
    await cluster.moveSlot(slot, from)
  })
})

test('CLUSTERDOWN: a slot that nobody serves makes the mode decide, until it is served again', async () => {
  const own = connectCluster(cluster.nodes, { slotsRefreshTimeout: 500 })
  onTestFinished(() => own.disconnect())
  await ready(own)
  const shared = redisStore({ client: own, timeoutMs: 1_000 })
  onTestFinished(() => shared.close())
  const { of, on } = notes()
  const limiter = createLimiter(tokenBucket({ limit: 1_000, window }), {
    name: 'down',
    store: shared,
    on,
    onStoreFailure: 'closed',
  })
  expect((await limiter.take('k')).degraded).toBe(false)
  const slot = await cluster.slotOf(new KeyNames('catraca', 'down', 'down').nameOf('k', undefined))
  await Promise.all(cluster.nodes.map((node) => node.command('CLUSTER', 'DELSLOTS', `${slot}`).catch(() => {})))
  const owner = cluster.nodeOf(slot)
  await eventually('the cluster is down', async () =>
    /cluster_state:fail/.test(String(await owner.command('CLUSTER', 'INFO'))),
  )
  expect(await limiter.take('k')).toMatchObject({ allowed: false, degraded: true, reason: 'store-closed' })
  // Nodes that had not heard of it yet may have told the owner meanwhile that the slot is served.
  await owner.command('CLUSTER', 'ADDSLOTS', `${slot}`).catch((error: Error) => {
    if (!/already busy/.test(error.message)) throw error
  })
  await eventually('the store decides again', () => limiter.health === 'healthy')
  await eventually('also for that key', async () => !(await limiter.take('k')).degraded)
  expect(of('degraded').length).toBeGreaterThanOrEqual(1)
  await eventually('all nodes know the owner', async () => {
    const infos = await Promise.all(cluster.nodes.map((node) => node.command('CLUSTER', 'INFO')))
    return infos.every((info) => /cluster_state:ok/.test(String(info)) && /slots_ok:16384/.test(String(info)))
  })
}, 60_000)
