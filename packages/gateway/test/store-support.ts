import type { GatewayDocument } from '@catraca/config'
import type { StoreEvent } from '@catraca/gateway'
import { RedisProcess } from '@catraca/gateway/redis-server'
import { onTestFinished } from 'vitest'
import { documentWith, keyOf } from './documents.ts'
import { ask } from './helpers.ts'

/** A Redis that ends with the test. */
export async function startRedis(): Promise<RedisProcess> {
  const redis = await RedisProcess.start()
  onTestFinished(() => redis.stop())
  return redis
}

/**
 * Three policies over a shared store, one in each mode, each on its own route; one client. The store has long to answer, so
 * that a busy machine is not taken for an outage.
 */
export function sharedDocument(
  origin: string,
  redis: string,
  { limit = 12, instances = 3, timeout = 2_000 }: { limit?: number; instances?: number; timeout?: number } = {},
): GatewayDocument {
  const rule = { algorithm: 'sliding-log', limit, window: '1h' }
  return documentWith(
    { app: origin },
    {
      store: { redis, timeout },
      storeFailure: { expectedInstances: instances },
      auth: { apiKeys: { keys: [keyOf('key', 'acme')] } },
      policies: {
        api: { match: { routes: ['GET /api'] }, per: 'client', rule },
        courtesy: { match: { routes: ['GET /open'] }, per: 'address', rule, onStoreFailure: 'open' },
        login: { match: { routes: ['POST /login'] }, per: 'address', rule, onStoreFailure: 'closed' },
      },
    },
  )
}

/** Asks as the client of {@link sharedDocument}. */
export async function call(url: string, path = '/api', method = 'GET'): Promise<number> {
  return (await ask(`${url}${path}`, { method, headers: { 'x-api-key': 'key' } })).status
}

/** So many at once, by the status they are answered with. */
export async function calls(count: number, urls: readonly string[], path = '/api'): Promise<Record<number, number>> {
  const asked = Array.from({ length: count }, (_, index) => call(urls[index % urls.length] as string, path))
  const tally: Record<number, number> = {}
  for (const status of await Promise.all(asked)) tally[status] = (tally[status] ?? 0) + 1
  return tally
}

/** Without those of this process, which may stand still when the machine is busy. */
export function ofStore(events: readonly StoreEvent[]): StoreEvent[] {
  return events.filter(({ type }) => type !== 'paused')
}

/** As {@link ofStore}. */
export function linesOfStore(warnings: readonly string[]): string[] {
  return warnings.filter((line) => !line.startsWith('this process stood still'))
}
