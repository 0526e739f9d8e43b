const dot = 46
const zero = 48
const nine = 57

/** Longer texts are no addresses: 45 characters at most, and room for a zone. */
const maxLength = 80

/**
 * The 32 bits of an IPv4 address as a whole number; -1 when the text is none. Exactly four decimal parts from 0 to 255
 * without leading zeros: `010.1.1.1` means 8.1.1.1 to some and 10.1.1.1 to others, so it is no address.
 */
export function ipv4Bits(text: string): number {
  const { length } = text
  if (length < 7 || length > 15) return -1
  let bits = 0
  let part = -1
  let dots = 0
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code === dot) {
      if (part === -1) return -1
      bits = bits * 256 + part
      part = -1
      dots++
    } else {
      // Zero as the first digit of a longer part.
      if (code < zero || code > nine || part === 0) return -1
      part = (part === -1 ? 0 : part * 10) + code - zero
      if (part > 255) return -1
    }
  }
  return dots === 3 && part !== -1 ? bits * 256 + part : -1
}

/** The eight groups of an IPv6 address, its zone dropped; undefined when the text is none. */
export function ipv6Groups(text: string): number[] | undefined {
  if (text.length > maxLength) return undefined
  const percent = text.indexOf('%')
  if (percent !== -1 && !/^[0-9A-Za-z.:_~-]+$/.test(text.slice(percent + 1))) return undefined
  const address = percent === -1 ? text : text.slice(0, percent)
  const gap = address.indexOf('::')
  if (gap === -1) {
    const groups = groupsOf(address)
    return groups?.length === 8 ? groups : undefined
  }
  // A dotted part can only be the last of the whole address.
  const left = gap === 0 ? [] : groupsOf(address.slice(0, gap), false)
  const right = gap + 2 === address.length ? [] : groupsOf(address.slice(gap + 2))
  if (left === undefined || right === undefined || left.length + right.length > 7) return undefined
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right]
}

function groupsOf(text: string, mayEndDotted = true): number[] | undefined {
  const groups: number[] = []
  const parts = text.split(':')
  for (const [index, part] of parts.entries()) {
    if (/^[0-9A-Fa-f]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16))
    else {
      const bits = mayEndDotted && index === parts.length - 1 ? ipv4Bits(part) : -1
      if (bits === -1) return undefined
      groups.push(bits >>> 16, bits & 0xffff)
    }
  }
  return groups
}

/** The bits of the IPv4 address that `::ffff:a.b.c.d` carries, in any spelling; -1 for every other address. */
export function mappedBits(groups: readonly number[]): number {
  const [a, b, c, d, e, f, high = 0, low = 0] = groups
  return a === 0 && b === 0 && c === 0 && d === 0 && e === 0 && f === 0xffff ? high * 65_536 + low : -1
}

/**
 * An address in its one spelling, or undefined for any text that is none: IPv4 as it is, IPv6 as RFC 5952 writes it
 * without zone, and the IPv4 address where IPv6 only carries one (`::ffff:1.2.3.4`, `::ffff:102:304`). Never throws.
 * Cost: for IPv4 one pass over the text and no memory.
 */
export function canonicalAddress(text: string): string | undefined {
  if (ipv4Bits(text) !== -1) return text
  // Most texts that are not IPv4 and have no colon are names: no need to look closer.
  const groups = text.includes(':') ? ipv6Groups(text) : undefined
  if (groups === undefined) return undefined
  const mapped = mappedBits(groups)
  return mapped === -1 ? ipv6Text(groups) : ipv4Text(mapped)
}

/**
 * The network an address is counted as, or undefined for any text that is no address: IPv4 by itself; IPv6 by its first
 * `ipv6Prefix` bits (1 to 128, default 64), written `2001:db8:1:2::/64`, because one caller owns at least a /64.
 */
export function networkOf(text: string, ipv6Prefix = 64): string | undefined {
  if (ipv4Bits(text) !== -1) return text
  const groups = ipv6Groups(text)
  if (groups === undefined) return undefined
  const mapped = mappedBits(groups)
  return mapped === -1 ? `${ipv6Text(masked(groups, ipv6Prefix))}/${ipv6Prefix}` : ipv4Text(mapped)
}

const privateIpv4: readonly (readonly [from: number, bits: number])[] = [
  [0x0a000000, 8],
  [0xac100000, 12],
  [0xc0a80000, 16],
  [0x7f000000, 8],
  [0xa9fe0000, 16],
  [0x64400000, 10],
]

/**
 * True for a canonical address that is nobody's on the internet: private, loopback, link-local, shared by carriers
 * (RFC 1918, 3927, 6598, 4193, 4291).
 */
export function isPrivateAddress(address: string): boolean {
  const bits = ipv4Bits(address)
  if (bits !== -1) return privateIpv4.some(([from, length]) => bits >>> (32 - length) === from >>> (32 - length))
  const groups = ipv6Groups(address)
  if (groups === undefined) return false
  const [first = 0] = groups
  const loopback = groups.every((group, index) => group === (index === 7 ? 1 : 0))
  return loopback || (first & 0xfe00) === 0xfc00 || (first & 0xffc0) === 0xfe80
}

/** The six groups of a NAT64 prefix such as `64:ff9b::/96` (RFC 6052); undefined for any other text. */
export function nat64Prefix(text: string): readonly number[] | undefined {
  const address = typeof text === 'string' && text.endsWith('/96') ? text.slice(0, -3) : ''
  const groups = address.includes(':') ? ipv6Groups(address) : undefined
  return groups === undefined || groups[6] !== 0 || groups[7] !== 0 ? undefined : groups.slice(0, 6)
}

/** The IPv4 address that a canonical IPv6 address carries under one of the prefixes, else the address as it is. */
export function withoutNat64(address: string, prefixes: readonly (readonly number[])[]): string {
  const groups = address.includes(':') ? ipv6Groups(address) : undefined
  if (groups === undefined) return address
  const found = prefixes.some((prefix) => prefix.every((group, index) => groups[index] === group))
  return found ? ipv4Text((groups[6] as number) * 65_536 + (groups[7] as number)) : address
}

/** The groups with all bits after the first `prefix` cleared. */
export function masked(groups: readonly number[], prefix: number): number[] {
  return groups.map((group, index) => {
    const kept = Math.min(16, Math.max(0, prefix - index * 16))
    return group & (0xffff << (16 - kept))
  })
}

function ipv4Text(bits: number): string {
  return `${bits >>> 24}.${(bits >>> 16) & 255}.${(bits >>> 8) & 255}.${bits & 255}`
}

/** RFC 5952: lower case, no leading zeros, the first of the longest runs of at least two zero groups as `::`. */
function ipv6Text(groups: readonly number[]): string {
  let start = 0
  let length = 1
  for (let from = 0; from < 8; from++) {
    let to = from
    while (groups[to] === 0) to++
    if (to - from > length) [start, length] = [from, to - from]
    if (to > from) from = to
  }
  const text = (some: readonly number[]): string => some.map((group) => group.toString(16)).join(':')
  if (length === 1) return text(groups)
  return `${text(groups.slice(0, start))}::${text(groups.slice(start + length))}`
}
