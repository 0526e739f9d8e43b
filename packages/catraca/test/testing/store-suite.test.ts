import { RedisProcess } from '@catraca/gateway/redis-server'
import { memoryStore, type RemoteStore } from 'catraca'
import { redisStore } from 'catraca/redis'
import { type DeclareTest, faultyStore, type StoreScene, storeSuite } from 'catraca/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../redis/support.ts'

describe('memory', () => {
  storeSuite(test, async () => {
    const store = memoryStore()
    return { stores: [store, store], close: async () => store.close() }
  })
})

describe('a store that is told to fail, and is not', () => {
  storeSuite(test, async () => {
    const store = faultyStore()
    const sibling = store.sibling()
    return closing([store, sibling])
  })
})

describe('Redis', () => {
  let redis: RedisProcess
  beforeAll(async () => {
    redis = await RedisProcess.start()
  })
  afterAll(() => redis.stop())
  let count = 0

  storeSuite(test, async () => {
    const prefix = `suite-${++count}`
    const clients = [connect(redis.port), connect(redis.port)] as const
    const [first, second] = clients.map((client) => redisStore({ client, prefix, timeoutMs: 10_000 }))
    const scene = closing([first as RemoteStore, second as RemoteStore])
    return {
      ...scene,
      close: async () => {
        await scene.close()
        for (const client of clients) client.disconnect()
      },
    }
  })
})

function closing(stores: readonly [RemoteStore, RemoteStore]): StoreScene {
  return {
    stores,
    close: async () => {
      for (const store of stores) store.close()
    },
  }
}

/** Names of the tests that fail for a store. */
async function failing(start: () => Promise<StoreScene>): Promise<string[]> {
  const failed: string[] = []
  const runs: Promise<void>[] = []
  const declare: DeclareTest = (name, run) => void runs.push(run().catch(() => void failed.push(name)))
  storeSuite(declare, start)
  await Promise.all(runs)
  return failed
}

describe('a store that breaks its contract is found', () => {
  test('instances that count each for themselves', async () => {
    const failed = await failing(async () => closing([faultyStore(), faultyStore()]))
    expect(failed).toHaveLength(10)
    expect(failed.every((name) => name.includes('of 40 that ask at once on two instances'))).toBe(true)
  })

  test('one that is gone', async () => {
    const failed = await failing(async () => {
      const store = faultyStore({ faults: { gone: 1 } })
      return closing([store, store])
    })
    expect(failed.length).toBeGreaterThan(40)
  })

  test('one that forgets keys', async () => {
    const failed = await failing(async () => {
      const store = memoryStore({ maxKeys: 1_000 })
      return { stores: [store, store], close: async () => store.close() }
    })
    expect(failed).toEqual(['thousands of keys are told apart'])
  })
})
