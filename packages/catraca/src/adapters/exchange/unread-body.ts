import { later } from '../../core/clock.ts'
import type { NodeRequest, NodeResponse, NodeSocket } from './messages.ts'

/** A body up to this long is read and dropped, so that the connection can go on; a longer one costs the connection. */
const drainBytes = 64 * 1024
/** How long the rest of a body is dropped after the last answer of a connection. */
const lingerMs = 2_000

/** True when the request announces a body. */
export function hasBody({ headers }: Pick<NodeRequest, 'headers'>): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && Number(length) > 0)
}

/**
 * To be called before an answer is begun while the request's body may not have been read: makes sure that the caller
 * sees the answer. Closing a connection while bytes arrive resets it, and the answer is lost with it. So a short body
 * is left to be dropped; after a long one the connection is closed for writing and goes on dropping for a while.
 */
export function spareUnreadBody(request: NodeRequest, response: Pick<NodeResponse, 'shouldKeepAlive'>): void {
  if (request.complete || !hasBody(request)) return
  const length = request.headers['content-length']
  if (length !== undefined && Number(length) <= drainBytes) return
  response.shouldKeepAlive = false
  request.socket.destroySoon = lingeringClose
}

/** Stands in for `destroySoon`, which the server calls after the last answer of a connection. */
function lingeringClose(this: NodeSocket): void {
  this.end()
  const cancel = later(lingerMs, () => this.destroy())
  this.once('close', () => cancel?.())
}
