import { createRequire } from 'node:module'
import type { RedisEntry } from '@catraca/config'
import { durationMs } from 'catraca/policy'
import type * as ioredis from 'ioredis'

/** Time for an answer of the store, in milliseconds, where a document does not say. */
const defaultTimeoutMs = 50
const usualPort = 6_379
const connectMs = 2_000
/** A connection that is silent for so long is made anew: its other end may be gone without a word. */
const silentMs = 2_000
const retryMs = { step: 50, most: 500 } as const
/** What is still to be sent at the end has this long. */
const goodbyeMs = 200

/** How long the store may take to answer. */
export function timeoutOf({ timeout = defaultTimeoutMs }: RedisEntry): number {
  return durationMs(timeout)
}

/** Where the store is, as it may be shown: without name and password. */
export function addressOf({ redis }: RedisEntry): string {
  const { hostname, port, pathname } = new URL(redis)
  const database = Number(pathname.slice(1))
  return `${hostname}:${port || usualPort}${database === 0 ? '' : `/${database}`}`
}

/**
 * A client for a store. It connects when it is first used, again and again while the store is gone, and queues nothing: what
 * cannot be sent or answered now is decided without the store. Loads ioredis.
 */
export function redisClient(entry: RedisEntry): ioredis.Redis {
  // Not imported: a gateway is made at once, and those without a store should not load what they do not need.
  const { Redis: Client } = createRequire(import.meta.url)('ioredis') as typeof ioredis
  const { protocol, hostname, port, username, password, pathname } = new URL(entry.redis)
  return new Client({
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port || usualPort),
    db: Number(pathname.slice(1)),
    ...(username !== '' && { username: decoded(username) }),
    ...(password !== '' && { password: decoded(password) }),
    ...(protocol === 'rediss:' && { tls: {} }),
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    connectTimeout: connectMs,
    socketTimeout: Math.max(silentMs, 2 * timeoutOf(entry)),
    disconnectTimeout: goodbyeMs,
    retryStrategy: retryDelayMs,
  })
}

/** Until the next try: soon, so that a store that is back is used soon; spread, so that not all instances come at once. */
export function retryDelayMs(attempt: number): number {
  return Math.min(attempt * retryMs.step, retryMs.most) * (0.5 + Math.random() / 2)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
