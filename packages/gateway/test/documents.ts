import { createHash } from 'node:crypto'
import type { GatewayDocument } from '@catraca/config'
import { type AccessEntry, createGateway, type StoreEvent } from '@catraca/gateway'
import { onTestFinished } from 'vitest'
import type { Running } from './helpers.ts'

/** A document with one open policy; what a test is about comes on top. */
export function documentWith(
  upstreams: GatewayDocument['upstreams'],
  rest: Partial<GatewayDocument> = {},
): GatewayDocument {
  return {
    version: 1,
    trust: { proxies: 0 },
    policies: { net: { per: 'address', rule: { algorithm: 'token-bucket', limit: 100_000, window: '1s' } } },
    upstreams,
    ...rest,
  }
}

export function keyOf(key: string, client: string, plan?: string): { sha256: string; client: string; plan?: string } {
  const sha256 = createHash('sha256').update(key).digest('hex')
  return { sha256, client, ...(plan !== undefined && { plan }) }
}

/** Starts a gateway by a document; it ends with the test. */
export async function startWith(
  document: GatewayDocument,
): Promise<Running & { entries: AccessEntry[]; events: StoreEvent[] }> {
  const warnings: string[] = []
  const entries: AccessEntry[] = []
  const events: StoreEvent[] = []
  const gateway = createGateway({
    document,
    onWarning: (line) => void warnings.push(line),
    onAccess: (entry) => void entries.push(entry),
    onStore: (event) => void events.push(event),
  })
  const port = await gateway.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => gateway.close(0))
  return { gateway, port, url: `http://127.0.0.1:${port}`, warnings, entries, events }
}
