import type { Socket } from 'node:net'
import { canonicalAddress } from 'catraca/http'

const peer = Symbol('peer')

/** A connection that remembers its peer: on a kept-alive connection the address is read once. */
interface KnownSocket extends Socket {
  [peer]?: string
}

/** The address of the other end of a connection, as headers carry it: IPv4 where it is one, without a zone. */
export function peerAddress(socket: Socket): string {
  const known: KnownSocket = socket
  known[peer] ??= canonicalAddress(socket.remoteAddress ?? '') ?? 'unknown'
  return known[peer]
}
