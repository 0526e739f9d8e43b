import { concurrency, createLimiter } from 'catraca'
import { redisStore } from 'catraca/redis'
import { Redis } from 'ioredis'

/** Takes both permits of a key and holds them until it is killed. Arguments: port. */
const store = redisStore({ client: new Redis(Number(process.argv[2]), '127.0.0.1'), timeoutMs: 5_000 })
const limiter = createLimiter(concurrency({ limit: 2, permitTtl: '1500ms' }), { name: 'killed', store })
const taken = [await limiter.take('k'), await limiter.take('k')]
console.log(taken.map(({ allowed, degraded }) => allowed && !degraded).join())
setInterval(() => {}, 1_000)
