import type { RedisProcess } from '@catraca/gateway/redis-server'
import { Redis } from 'ioredis'

/** A connection that stays through faults, for what is done to a server: it keeps its rights when others lose theirs. */
export function adminOf(server: RedisProcess): Redis {
  const admin = new Redis(server.port, '127.0.0.1', { retryStrategy: () => 50 })
  admin.on('error', () => {})
  return admin
}
