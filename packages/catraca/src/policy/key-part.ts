import { sha256 } from '../core/sha256.ts'
import type { Facts } from './facts.ts'

/** Where a part of a key comes from. */
export interface KeyPart {
  /** As written in `per`. */
  readonly text: string
  readonly kind: 'address' | 'client' | 'user' | 'tenant' | 'service' | 'header' | 'body'
  /** Lower-case header name, or name of the body's member. */
  readonly name: string
}

const plain = ['address', 'client', 'user', 'tenant', 'service'] as const
export const partWords = 'address, client, user, tenant, service, header:<name> or body:<field>'

/** Reads one entry of `per`; undefined when it is none. */
export function parsePart(text: string): KeyPart | undefined {
  const kind = plain.find((name) => name === text)
  if (kind !== undefined) return { text, kind, name: '' }
  const header = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128})$/.exec(text)?.[1]
  if (header !== undefined) return { text, kind: 'header', name: header.toLowerCase() }
  const field = /^body:(.{1,128})$/s.exec(text)?.[1]
  return field === undefined ? undefined : { text, kind: 'body', name: field }
}

/**
 * Stands for a value that a request does not have: all such requests share one bucket under the rest of the key. A value
 * that begins like it gets one more NUL in front, so that no request can pose as one without a value.
 */
const nul = '\u0000'
export const missing = `${nul}missing`

/** The key of a request: the value of a single part as it is, several each with its length, so that no two meet. */
export function keyOf(parts: readonly KeyPart[], facts: Facts): string {
  const [first] = parts as readonly [KeyPart]
  if (parts.length === 1) return escaped(valueOf(first, facts))
  let key = ''
  for (const part of parts) {
    const value = valueOf(part, facts)
    key += value === undefined ? '-' : `${value.length}:${value}`
  }
  return key
}

function escaped(value: string | undefined): string {
  if (value === undefined) return missing
  return value.charCodeAt(0) === 0 ? nul + value : value
}

/** The value of a part; an empty one counts as missing. */
export function valueOf(part: KeyPart, facts: Facts): string | undefined {
  return rawValue(part, facts) || undefined
}

function rawValue({ kind, name }: KeyPart, facts: Facts): string | undefined {
  switch (kind) {
    case 'address':
      return facts.address
    case 'client':
      return facts.identity?.client
    case 'user':
      return facts.identity?.user
    case 'tenant':
      return facts.identity?.tenant
    case 'service':
      return 'service'
    case 'header': {
      // A header may be a secret, and secrets never become keys.
      const value = facts.header(name)
      return value === undefined || value === '' ? undefined : sha256(value)
    }
    default:
      return facts.bodyField(name)
  }
}
