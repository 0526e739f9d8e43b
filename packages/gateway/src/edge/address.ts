import { isIPv4, isIPv6, type Socket } from 'node:net'

/**
 * The network an address belongs to, as it is counted: an IPv4 address itself, an IPv6 address by its /64, because a
 * caller owns at least that much. An IPv4 address inside IPv6 (`::ffff:1.2.3.4`, in either spelling) is the IPv4 address.
 * Undefined for any text that is not an address.
 */
export function network(text: string): string | undefined {
  if (isIPv4(text)) return text
  const groups = ipv6Groups(text)
  if (groups === undefined) return undefined
  return mappedIPv4(groups) ?? `${groups.slice(0, 4).map(hex).join(':')}::/64`
}

const peer = Symbol('peer')

/** A connection that remembers its peer: on a kept-alive connection the address is read once. */
interface KnownSocket extends Socket {
  [peer]?: string
}

/** The address of the other end of a connection, as headers carry it: IPv4 where it is one, without a zone. */
export function peerAddress(socket: Socket): string {
  const known: KnownSocket = socket
  known[peer] ??= plainAddress(socket.remoteAddress ?? 'unknown')
  return known[peer]
}

function plainAddress(text: string): string {
  const groups = isIPv4(text) ? undefined : ipv6Groups(text)
  return (groups && mappedIPv4(groups)) ?? withoutZone(text)
}

function mappedIPv4(groups: readonly number[]): string | undefined {
  const [a, b, c, d, e, f, high = 0, low = 0] = groups
  if (a !== 0 || b !== 0 || c !== 0 || d !== 0 || e !== 0 || f !== 0xffff) return undefined
  return `${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`
}

/** The eight groups of an IPv6 address; undefined when the text is none. */
function ipv6Groups(text: string): number[] | undefined {
  const address = withoutZone(text)
  if (!isIPv6(address)) return undefined
  const [head = '', tail] = address.split('::')
  const left = groupsOf(head)
  if (tail === undefined) return left
  const right = groupsOf(tail)
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right]
}

function groupsOf(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

function withoutZone(text: string): string {
  const zone = text.indexOf('%')
  return zone === -1 ? text : text.slice(0, zone)
}

function hex(group: number): string {
  return group.toString(16)
}
