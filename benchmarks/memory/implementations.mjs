/**
 * Every implementation as `open(limit, keys) -> { take, awaited }`: one decision by key, with the three answers that a
 * server needs (may it pass, how many are left, when to come back) read every time and folded into one number.
 * `take` is the synchronous form, null where the peer has none; `awaited` gives something to await.
 * The method measured is the one that the peer's own framework adapter calls. Window: one hour.
 */
const hourMs = 3_600_000

const catraca = (makeRule) => async (limit, keys) => {
  const library = await import('catraca')
  const store = library.memoryStore({ maxKeys: Math.max(1_000_000, keys * 2) })
  const limiter = library.createLimiter(makeRule(library, limit), { store })
  const read = (decision) => fold(decision.allowed, decision.remaining, decision.retryAfterMs)
  return { take: (key) => read(limiter.take(key)), awaited: async (key) => read(await limiter.take(key)) }
}

export const implementations = {
  nothing: async () => ({ take: (key) => key.length, awaited: async (key) => key.length }),

  catraca: catraca(({ tokenBucket }, limit) => tokenBucket({ limit, window: '1h' })),
  'catraca slidingCounter': catraca(({ slidingCounter }, limit) =>
    slidingCounter({ limit: Math.min(limit, 1e6), window: '1h' }),
  ),

  'rate-limiter-flexible': async (limit) => {
    const { RateLimiterMemory } = await import('rate-limiter-flexible')
    const limiter = new RateLimiterMemory({ points: limit, duration: 3_600 })
    const awaited = async (key) => {
      try {
        const { remainingPoints } = await limiter.consume(key)
        return fold(true, remainingPoints, 0)
      } catch (denied) {
        return fold(false, denied.remainingPoints, denied.msBeforeNext)
      }
    }
    return { take: null, awaited }
  },

  'express-rate-limit': async (limit) => {
    const { MemoryStore } = await import('express-rate-limit')
    const store = new MemoryStore()
    store.init({ windowMs: hourMs })
    const awaited = async (key) => readHits(await store.increment(key), limit)
    return { take: null, awaited }
  },

  'hono-rate-limiter': async (limit) => {
    const { MemoryStore } = await import('hono-rate-limiter')
    const store = new MemoryStore()
    store.init({ windowMs: hourMs })
    const take = (key) => readHits(store.increment(key), limit)
    return { take, awaited: async (key) => readHits(await store.increment(key), limit) }
  },

  '@fastify/rate-limit': async (limit, keys) => {
    const { default: LocalStore } = await import('@fastify/rate-limit/store/LocalStore.js')
    const store = new LocalStore(false, false, keys * 2)
    let answer = 0
    const done = (_error, { current, ttl }) => {
      answer = current <= limit ? fold(true, limit - current, 0) : fold(false, 0, ttl)
    }
    const take = (key) => {
      store.incr(key, done, hourMs, limit)
      return answer
    }
    return { take, awaited: async (key) => take(key) }
  },

  limiter: async (limit) => {
    const { RateLimiter } = await import('limiter')
    const limiters = new Map()
    const take = (key) => {
      let one = limiters.get(key)
      if (one === undefined) {
        one = new RateLimiter({ tokensPerInterval: limit, interval: hourMs })
        limiters.set(key, one)
      }
      if (one.tryRemoveTokens(1)) return fold(true, one.getTokensRemaining(), 0)
      return fold(false, one.getTokensRemaining(), one.getWaitTime(1))
    }
    return { take, awaited: async (key) => take(key) }
  },
}

/** Package names of the peers, for versions and import costs. */
export const packages = [
  'catraca',
  'rate-limiter-flexible',
  'express-rate-limit',
  'hono-rate-limiter',
  '@fastify/rate-limit',
  'limiter',
]

function readHits({ totalHits, resetTime }, limit) {
  if (totalHits <= limit) return fold(true, limit - totalHits, 0)
  return fold(false, 0, resetTime.getTime() - Date.now())
}

function fold(allowed, remaining, retryAfterMs) {
  return (allowed ? 1 : 0) + remaining + retryAfterMs
}
