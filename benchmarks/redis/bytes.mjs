// Bytes that a key of each rule takes in Redis. Prints JSON.
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  quota,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { redisStore } from 'catraca/redis'
import Redis from 'ioredis'

const client = new Redis(Number(process.argv[2]))
await client.flushall()
const store = redisStore({ client, prefix: 'b', timeoutMs: 5_000 })
const minute = { limit: 600, window: '1m' }
const kinds = [
  ['token bucket', tokenBucket(minute), 1],
  ['GCRA', gcra(minute), 1],
  ['leaky meter', leakyMeter(minute), 1],
  ['leaky queue', leakyQueue({ limit: 600, window: '1m', capacity: 600 }), 1],
  ['fixed window', fixedWindow(minute), 1],
  ['sliding counter', slidingCounter(minute), 1],
  ['quota', quota({ limit: 500_000, period: 'day', timeZone: 'America/Sao_Paulo' }), 1],
  ['sliding log', slidingLog({ limit: 1_000, window: '1h' }), 1],
  ['sliding log', slidingLog({ limit: 1_000, window: '1h' }), 1_000],
  ['concurrency', concurrency({ limit: 100, permitTtl: '1h' }), 1],
  ['concurrency', concurrency({ limit: 100, permitTtl: '1h' }), 100],
]
const rows = []
for (const [index, kind] of kinds.entries()) {
  const [rule, made] = kind
  const times = Number(kind[2])
  const name = `r${index}`
  const limiter = createLimiter(made, { name, store, storeFailure: { expectedInstances: 1 } })
  for (let turn = 0; turn < times; turn++) await limiter.take('user:0000123')
  const [key] = await client.keys(`*:${name}*`)
  const entries = times === 1 ? '1 admitted' : `${times} in the list`
  rows.push({ rule, state: entries, bytes: await client.memory('USAGE', key) })
}
console.log(JSON.stringify(rows))
process.exit(0)
