import { createHash } from 'node:crypto'
import type { ApiKeysEntry } from '@catraca/config'
import type { Identity } from 'catraca/http'
import type { EdgeRequest } from '../edge/messages.ts'

const defaultHeader = 'x-api-key'
/** Digits of a hash that name its key in logs. */
const idDigits = 8

/** Knows clients by the SHA-256 of their key. The keys themselves are stored nowhere. */
export class ApiKeys {
  /** Lower-case name of the header that carries the key. */
  readonly header: string
  private readonly byHash: ReadonlyMap<string, Identity>

  constructor({ header = defaultHeader, keys }: ApiKeysEntry) {
    this.header = header.toLowerCase()
    this.byHash = new Map(
      keys.map(({ sha256, client, plan, tenant, id = sha256.slice(0, idDigits) }): [string, Identity] => [
        sha256,
        { client, keyId: id, ...(plan !== undefined && { plan }), ...(tenant !== undefined && { tenant }) },
      ]),
    )
  }

  /** The key a request carries; undefined for none. */
  keyIn({ headers }: EdgeRequest): string | undefined {
    const value = headers[this.header]
    return (typeof value === 'string' ? value : value?.join(', ')) || undefined
  }

  /** Whose key a request carries; undefined for none and for one that is not known. Cost: one hash. */
  identify(request: EdgeRequest): Identity | undefined {
    const key = this.keyIn(request)
    return key === undefined ? undefined : this.byHash.get(createHash('sha256').update(key).digest('hex'))
  }
}
