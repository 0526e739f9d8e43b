import { createHmac, randomBytes } from 'node:crypto'
import type { Identity } from 'catraca/http'
import type { EdgeRequest } from './messages.ts'

/** What is counted: callers by address, or by the value of a request header, as in `header:x-api-key`. */
export type Per = 'address' | `header:${string}`

/** The name of the header in `header:<name>`, in lower case; '' for `address`; undefined when `text` is neither. */
export function perHeader(text: string): string | undefined {
  if (text === 'address') return ''
  return /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128})$/.exec(text)?.[1]?.toLowerCase()
}

/** A secret of this run alone: keys of header values are of no use to anyone who sees them. */
export function headerSecret(): string {
  return randomBytes(32).toString('base64url')
}

/**
 * Callers by the value of a header that nobody checks. The value itself is no key: it may be a secret. Processes that
 * count together have the same `secret`.
 */
export function identifyByHeader(
  header: string,
  secret = headerSecret(),
): (request: EdgeRequest) => Identity | undefined {
  return ({ headers }) => {
    const value = headers[header]
    if (value === undefined || value.length === 0) return undefined
    const text = typeof value === 'string' ? value : value.join(', ')
    return { client: `key:${createHmac('sha256', secret).update(text).digest('base64url')}` }
  }
}
