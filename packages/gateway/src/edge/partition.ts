import { createHmac, randomBytes } from 'node:crypto'
import { network, peerAddress } from './address.ts'
import { forwardedNetwork } from './forwarded.ts'
import type { EdgeRequest } from './messages.ts'

/** What is counted: callers by address, or by the value of a request header, as in `header:x-api-key`. */
export type Per = 'address' | `header:${string}`

/** The name of the header in `header:<name>`, in lower case; '' for `address`; undefined when `text` is neither. */
export function perHeader(text: string): string | undefined {
  if (text === 'address') return ''
  return /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128})$/.exec(text)?.[1]?.toLowerCase()
}

/** Finds the key under which a request is counted. Never throws, whatever the request says. */
export class Partition {
  private readonly header: string
  private readonly hops: number
  /** Of this process alone: keys of header values are of no use to anyone who sees them. */
  private readonly secret = randomBytes(32)

  /** @param header Lower-case name of a header, or '' to count by address. @param hops Proxies in front, 0 to 32. */
  constructor(header: string, hops: number) {
    this.header = header
    this.hops = hops
  }

  /** `key:…` for a header value, `addr:…` for an address; requests without the header go by their address. */
  keyOf(request: EdgeRequest): string {
    const value = this.header === '' ? undefined : request.headers[this.header]
    if (value === undefined || value.length === 0) return this.addressKey(request)
    const text = typeof value === 'string' ? value : value.join(', ')
    return `key:${createHmac('sha256', this.secret).update(text).digest('base64url')}`
  }

  private addressKey(request: EdgeRequest): string {
    if (this.hops > 0) {
      const header = request.headers['x-forwarded-for']
      const found = typeof header === 'string' ? forwardedNetwork(header, this.hops) : undefined
      if (found !== undefined) return `addr:${found}`
    }
    return `addr:${network(peerAddress(request.socket)) ?? 'unknown'}`
  }
}
