import { isIPv4 } from 'node:net'
import { network } from './address.ts'

/** Entries of `X-Forwarded-For` that are looked at, from the right; also the most proxies that can be trusted. */
export const maxHops = 32

/** The longest text that can be an address with a zone and a port. */
const maxLength = 80

/**
 * The caller's network according to `X-Forwarded-For`, behind `hops` proxies that each append the address they saw.
 *
 * Only those proxies are believed: the entry taken is the one that the outermost of them wrote, `hops` from the right.
 * Undefined when the chain is shorter than that (someone came around the proxies) or the entry is not an address.
 */
export function forwardedNetwork(header: string, hops: number): string | undefined {
  const entry = entryFromRight(header, hops)
  return entry === undefined ? undefined : network(withoutPort(entry))
}

/** The entry at `position`, counted from the right starting at 1; empty entries do not count. */
function entryFromRight(header: string, position: number): string | undefined {
  let end = header.length
  let found = 0
  for (let looked = 0; looked < maxHops && end >= 0; looked++) {
    const comma = end === 0 ? -1 : header.lastIndexOf(',', end - 1)
    const entry = header.slice(comma + 1, end).trim()
    if (entry !== '' && ++found === position) return entry.length > maxLength ? undefined : entry
    end = comma
  }
  return undefined
}

/** Takes a port off where it cannot be part of the address: `v4:port`, `[v6]`, `[v6]:port`. */
function withoutPort(entry: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(entry)?.[1]
  // Only IPv6 stands in brackets.
  if (bracketed !== undefined) return isIPv4(bracketed) ? '' : bracketed
  return /^([\d.]+):\d{1,5}$/.exec(entry)?.[1] ?? entry
}
