/**
 * Every implementation as `open(limit, keys) -> { ask, read, promises }`: `ask(key)` makes one decision by the method
 * that the peer's own framework adapter calls; `read(answer)` folds the three things a server needs (may it pass, how
 * many are left, when to come back) into one number. `promises` says that it only answers with a promise; a rejection is
 * an answer too. Window: one hour.
 */
const hourMs = 3_600_000

const catraca = (makeRule) => async (limit, keys) => {
  const library = await import('catraca')
  const store = library.memoryStore({ maxKeys: Math.max(1_000_000, keys * 2) })
  const limiter = library.createLimiter(makeRule(library, limit), { store })
  return {
    ask: (key) => limiter.take(key),
    read: (decision) => fold(decision.allowed, decision.remaining, decision.retryAfterMs),
  }
}

export const implementations = {
  nothing: async () => ({ ask: (key) => key, read: (key) => key.length }),

  catraca: catraca(({ tokenBucket }, limit) => tokenBucket({ limit, window: '1h' })),
  'catraca slidingCounter': catraca(({ slidingCounter }, limit) =>
    slidingCounter({ limit: Math.min(limit, 1e6), window: '1h' }),
  ),

  'rate-limiter-flexible': async (limit) => {
    const { RateLimiterMemory } = await import('rate-limiter-flexible')
    const limiter = new RateLimiterMemory({ points: limit, duration: 3_600 })
    return {
      promises: true,
      ask: (key) => limiter.consume(key),
      read: ({ consumedPoints, remainingPoints, msBeforeNext }) =>
        fold(consumedPoints <= limit, remainingPoints, consumedPoints <= limit ? 0 : msBeforeNext),
    }
  },

  'express-rate-limit': async (limit) => {
    const { MemoryStore } = await import('express-rate-limit')
    const store = new MemoryStore()
    store.init({ windowMs: hourMs })
    return { promises: true, ask: (key) => store.increment(key), read: (hits) => readHits(hits, limit) }
  },

  'hono-rate-limiter': async (limit) => {
    const { MemoryStore } = await import('hono-rate-limiter')
    const store = new MemoryStore()
    store.init({ windowMs: hourMs })
    return { ask: (key) => store.increment(key), read: (hits) => readHits(hits, limit) }
  },

  '@fastify/rate-limit': async (limit, keys) => {
    const { default: LocalStore } = await import('@fastify/rate-limit/store/LocalStore.js')
    const store = new LocalStore(false, false, keys * 2)
    let answer
    const done = (_error, current) => {
      answer = current
    }
    return {
      ask: (key) => {
        store.incr(key, done, hourMs, limit)
        return answer
      },
      read: ({ current, ttl }) => (current <= limit ? fold(true, limit - current, 0) : fold(false, 0, ttl)),
    }
  },

  limiter: async (limit) => {
    const { RateLimiter } = await import('limiter')
    const limiters = new Map()
    return {
      ask: (key) => {
        let one = limiters.get(key)
        if (one === undefined) {
          one = new RateLimiter({ tokensPerInterval: limit, interval: hourMs })
          limiters.set(key, one)
        }
        if (one.tryRemoveTokens(1)) return fold(true, one.getTokensRemaining(), 0)
        return fold(false, one.getTokensRemaining(), one.getWaitTime(1))
      },
      read: (folded) => folded,
    }
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
