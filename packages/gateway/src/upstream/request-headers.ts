import type { EdgeRequest } from '../edge/messages.ts'
import { peerAddress } from '../edge/peer-address.ts'
import { endsHere, namedByConnection } from './hop-by-hop.ts'

/**
 * Written anew or answered here; what the service is told about the limits no caller can say. The other spelling of the forwarding fields is dropped so that the two cannot differ. */
const ours: ReadonlySet<string> = new Set(['host', 'expect', 'forwarded', 'x-forwarded-for', 'catraca-answer'])

/**
 * The header fields for the upstream, names and values in turn, in the order and spelling in which they came.
 *
 * Host is left to the client that sends them: the upstream's own. What the caller claims about earlier hops
 * (`X-Forwarded-*`, `X-Real-IP`) is passed on only when proxies in front are trusted. `withheld` is the field that
 * carries the caller's key for this gateway, or ''.
 */
export function requestHeaders(request: EdgeRequest, trusted: boolean, withheld: string): string[] {
  const { rawHeaders, headers } = request
  const named = namedByConnection(headers.connection)
  const fields: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    const lower = name.toLowerCase()
    if (ours.has(lower) || lower === withheld || endsHere(lower, named) || (!trusted && claimsHops(lower))) continue
    fields.push(name, rawHeaders[at + 1] as string)
  }
  const chain = trusted ? headers['x-forwarded-for'] : undefined
  const peer = peerAddress(request.socket)
  fields.push('X-Forwarded-For', chain === undefined ? peer : `${String(chain)}, ${peer}`)
  if (!trusted || headers['x-forwarded-proto'] === undefined) fields.push('X-Forwarded-Proto', 'http')
  if (headers.host !== undefined && (!trusted || headers['x-forwarded-host'] === undefined)) {
    fields.push('X-Forwarded-Host', headers.host)
  }
  if (request.told !== undefined) fields.push('Catraca-Answer', request.told)
  return fields
}

function claimsHops(name: string): boolean {
  return name.startsWith('x-forwarded-') || name === 'x-real-ip'
}
