import { canonicalAddress, ipv4Bits } from '../policy/address.ts'

/** The header that tells which addresses a request came through. */
export type ForwardingHeader = 'x-forwarded-for' | 'forwarded'

/** Entries that are looked at, from the right; also the most proxies that can be trusted. */
export const maxHops = 32
/** Characters that are looked at, from the right: {@link maxHops} entries with room for more than an address each. */
const maxField = 8_192
/** The longest text that can be an address with zone, brackets and port. */
const maxEntry = 90
/** The longest element of `Forwarded` that is parsed: room for a host name beside addresses. */
const maxElement = 512

/**
 * Reads a forwarding header from its end, where the nearest proxy wrote: what stands further left may have been written
 * by the caller, and is not even parsed before it is asked for. Nothing in it throws. At most 32 entries, in the last 8 KiB.
 */
export class Hops {
  private readonly field: string
  private readonly structured: boolean
  private readonly leftmost: number
  private end: number
  private left = maxHops

  /** @param header Its name says its grammar. @param field Its value; several lines joined by commas. */
  constructor(header: ForwardingHeader, field: string) {
    this.field = field
    this.structured = header === 'forwarded'
    this.end = field.length
    this.leftmost = field.length - maxField
  }

  /** The address of the next hop away: canonical, '' for an entry that is no address, undefined when there is none left. */
  next(): string | undefined {
    const { field, structured } = this
    while (this.end >= 0 && this.left > 0) {
      const comma = structured ? commaOutsideQuotes(field, this.end) : commaBefore(field, this.end)
      // The rest of this entry lies too far left to be looked at.
      if (comma < this.leftmost) return undefined
      const entry = field.slice(comma + 1, this.end).trim()
      this.end = comma
      if (entry === '') continue
      this.left--
      return (structured ? nodeAddress(entry) : entryAddress(entry)) ?? ''
    }
    return undefined
  }
}

/** Index of the last comma before `end`, or -1. */
function commaBefore(field: string, end: number): number {
  return end === 0 ? -1 : field.lastIndexOf(',', end - 1)
}

function commaOutsideQuotes(field: string, end: number): number {
  let quoted = false
  for (let at = end - 1; at >= 0; at--) {
    const char = field[at]
    if (char === '"' && !isEscaped(field, at)) quoted = !quoted
    else if (char === ',' && !quoted) return at
  }
  return -1
}

/** True when an odd number of backslashes stands before a quote. Only the end of a quoted text looks far back. */
function isEscaped(field: string, at: number): boolean {
  let slashes = 0
  while (field[at - 1 - slashes] === '\\') slashes++
  return slashes % 2 === 1
}

/**
 * An entry of `X-Forwarded-For`, which has no grammar. A port is taken off only where it cannot be part of the address:
 * `v4:port`, `[v6]`, `[v6]:port`. IPv6 without brackets is an address as a whole.
 */
function entryAddress(entry: string): string | undefined {
  if (entry.length > maxEntry) return undefined
  return canonicalAddress(entry) ?? withPort(entry, /^\d{1,5}$/)
}

/** An element of `Forwarded` (RFC 7239): the value of its one `for`, a token or a quoted string. */
function nodeAddress(element: string): string | undefined {
  if (element.length > maxElement) return undefined
  let node: string | undefined
  for (const pair of element.match(/(?:"(?:[^"\\]|\\.)*"|[^;])+/g) ?? []) {
    const match = /^for=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~0-9A-Za-z-]+))$/i.exec(pair.trim())
    if (match === null) continue
    if (node !== undefined) return undefined
    node = match[1]?.replaceAll(/\\(.)/g, '$1') ?? match[2]
  }
  if (node === undefined || node.length > maxEntry) return undefined
  // IPv6 stands in brackets here; `unknown` and `_names` are no addresses.
  if (ipv4Bits(node) !== -1) return node
  return withPort(node, /^(?:\d{1,5}|_[0-9A-Za-z._-]+)$/)
}

function withPort(text: string, port: RegExp): string | undefined {
  if (text.startsWith('[')) {
    const close = text.indexOf(']')
    const inside = text.slice(1, close)
    const rest = text.slice(close + 1)
    if (close === -1 || !inside.includes(':') || (rest !== '' && !(rest[0] === ':' && port.test(rest.slice(1)))))
      return undefined
    return canonicalAddress(inside)
  }
  const colon = text.indexOf(':')
  const address = text.slice(0, Math.max(0, colon))
  return ipv4Bits(address) !== -1 && port.test(text.slice(colon + 1)) ? address : undefined
}
