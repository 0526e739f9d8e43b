// One client, one kind of decision, several numbers of callers; a process per measurement, so that none shares type
// feedback with another. Prints JSON.
import { createLimiter, slidingCounter, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'

const [clientName, op, callersText, msText, portText] = process.argv.slice(2)
const port = Number(portText)
const ms = Number(msText)
const keys = Array.from({ length: 100_000 }, (_, index) => `user:${String(index).padStart(6, '0')}`)
const clientOf = {
  async 'ioredis 5'() {
    const { default: Redis } = await import('ioredis-5')
    return new Redis(port)
  },
  async 'ioredis 6'() {
    const { default: Redis } = await import('ioredis')
    return new Redis(port)
  },
  async 'redis 6'() {
    const { createClient } = await import('redis')
    return createClient({ url: `redis://127.0.0.1:${port}` }).connect()
  },
  async 'redis 6, timeout 0'() {
    const { createClient } = await import('redis')
    return createClient({ url: `redis://127.0.0.1:${port}`, commandOptions: { timeout: 0 } }).connect()
  },
}
const client = await clientOf[clientName]()
const isIoredis = clientName.startsWith('ioredis')
if (isIoredis) await client.ping()

const store = () => redisStore({ client, prefix: 'bench', timeoutMs: 5_000 })
const one = { storeFailure: { expectedInstances: 1 } }
const hour = { limit: 1_000_000, window: '1h' }
const flexible = (name, points = 1_000_000) =>
  new RateLimiterRedis({ storeClient: client, useRedisPackage: !isIoredis, keyPrefix: name, points, duration: 3_600 })
const consume = (limiter) => (key) => limiter.consume(key).catch((refusal) => refusal)
const parts = (key) => [key, `tenant:${key.slice(-2)}`, 'all']

const ops = {
  async ping() {
    return () => client.ping()
  },
  async incr() {
    return (key) => client.incr(key)
  },
  async catraca() {
    const limiter = createLimiter(tokenBucket(hour), { name: 'a', store: store(), ...one })
    return (key) => limiter.take(key)
  },
  async 'catraca counter'() {
    const limiter = createLimiter(slidingCounter(hour), { name: 'a', store: store(), ...one })
    return (key) => limiter.take(key)
  },
  async 'catraca stack of 3'() {
    const rules = { user: tokenBucket(hour), tenant: tokenBucket(hour), all: tokenBucket({ ...hour, limit: 1e9 }) }
    const limiter = createLimiter(rules, { name: 'a', store: store(), ...one })
    return (key) => {
      const [user, tenant, all] = parts(key)
      return limiter.take({ user, tenant, all })
    }
  },
  async 'catraca 3 calls'() {
    const shared = store()
    const limiters = ['a', 'b', 'c'].map((name) => createLimiter(tokenBucket(hour), { name, store: shared, ...one }))
    return (key) => Promise.all(parts(key).map((part, index) => limiters[index].take(part)))
  },
  async 'catraca refused'() {
    const limiter = createLimiter(tokenBucket({ limit: 1, window: '1h' }), { name: 'd', store: store(), ...one })
    return (key) => limiter.take(key.slice(0, -3))
  },
  async 'rate-limiter-flexible'() {
    return consume(flexible('a'))
  },
  async 'rate-limiter-flexible 3 calls'() {
    const limiters = ['a', 'b', 'c'].map((name) => consume(flexible(name, 1e9)))
    return (key) => Promise.all(parts(key).map((part, index) => limiters[index](part)))
  },
  async 'rate-limiter-flexible refused'() {
    const limiter = consume(flexible('d', 1))
    return (key) => limiter(key.slice(0, -3))
  },
  async 'rate-limit-redis'() {
    const { RedisStore } = await import('rate-limit-redis')
    const sendCommand = isIoredis
      ? (name, ...args) => client.call(name, ...args)
      : (...args) => client.sendCommand(args)
    const peer = new RedisStore({ sendCommand })
    await peer.init({ windowMs: 3_600_000 })
    return (key) => peer.increment(key)
  },
}

const decide = await ops[op]()
let turn = 0
async function run(callers, forMs) {
  const latencies = []
  const end = performance.now() + forMs
  const began = performance.now()
  const cpu = process.cpuUsage()
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (;;) {
        const start = performance.now()
        if (start >= end) return
        turn = (turn + 7_919) % keys.length
        await decide(keys[turn])
        latencies.push(performance.now() - start)
      }
    }),
  )
  const tookMs = performance.now() - began
  const { user, system } = process.cpuUsage(cpu)
  latencies.sort((a, b) => a - b)
  const at = (share) => latencies[Math.floor(share * (latencies.length - 1))]
  return {
    callers,
    perSecond: (latencies.length / tookMs) * 1_000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuUs: (user + system) / latencies.length,
    decisions: latencies.length,
  }
}

await run(16, 250)
const info = async (section) =>
  String(isIoredis ? await client.info(section) : await client.sendCommand(['INFO', section]))
const statsOf = async () => {
  const text = await info('commandstats')
  const found = [...text.matchAll(/cmdstat_(evalsha|eval|incr):calls=(\d+),usec=(\d+)/g)]
  return found.reduce((sum, [, , calls, usec]) => [sum[0] + Number(calls), sum[1] + Number(usec)], [0, 0])
}
const results = []
for (const callers of callersText.split(',').map(Number)) {
  await run(callers, 100)
  const before = await statsOf()
  const result = await run(callers, ms)
  const after = await statsOf()
  results.push({
    ...result,
    serverUs: (after[1] - before[1]) / result.decisions,
    trips: (after[0] - before[0]) / result.decisions,
  })
}
console.log(JSON.stringify(results))
process.exit(0)
