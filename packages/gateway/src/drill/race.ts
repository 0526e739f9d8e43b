import { createLimiter, fixedWindow } from 'catraca'
import { redisStore } from 'catraca/redis'
import { Redis } from 'ioredis'
import { RedisProcess } from './redis-process.ts'

/** One round: how many of the calls passed each way. */
export interface RaceRound {
  readonly naive: number
  readonly script: number
}

/** Calls at once, half of them through each of two instances. */
export const raceCalls = 400
export const raceLimit = 50
const windowMs = 60_000

/**
 * 400 calls at once through two instances that share 50 per minute: once by reading, deciding and adding in three steps,
 * as it is often written, and once by the script. Starts its own Redis and ends it.
 */
export async function runRace(rounds: number): Promise<RaceRound[]> {
  const server = await RedisProcess.start()
  const clients = [new Redis(server.port), new Redis(server.port)] as const
  const stores = clients.map((client) => redisStore({ client, prefix: 'race', timeoutMs: 5_000 }))
  const rule = fixedWindow({ limit: raceLimit, window: windowMs, anchor: 'first' })
  const options = { name: 'race', storeFailure: { expectedInstances: 2 }, onStoreFailure: 'closed' } as const
  const limiters = stores.map((store) => createLimiter(rule, { ...options, store }))
  try {
    const results: RaceRound[] = []
    for (let round = 0; round < rounds; round++) {
      const naive = await passed((call) => naively(clients[call % 2] as Redis, `naive:${round}`))
      const script = await passed(async (call) => {
        const decision = await limiters[call % 2]?.take(`round:${round}`)
        return decision?.allowed === true
      })
      results.push({ naive, script })
    }
    return results
  } finally {
    for (const limiter of limiters) limiter.close()
    for (const client of clients) client.disconnect()
    await server.stop()
  }
}

async function passed(call: (index: number) => Promise<boolean>): Promise<number> {
  const answers = await Promise.all(Array.from({ length: raceCalls }, (_, index) => call(index)))
  return answers.filter(Boolean).length
}

/** Reads, decides, adds: two that read the same number both pass. */
async function naively(client: Redis, key: string): Promise<boolean> {
  const used = Number((await client.get(key)) ?? 0)
  if (used >= raceLimit) return false
  await client.incr(key)
  await client.pexpire(key, windowMs)
  return true
}
