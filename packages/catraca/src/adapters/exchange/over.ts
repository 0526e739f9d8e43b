import type { Signal } from '../../limiter/signal.ts'
import type { NodeRequest, NodeResponse, NodeSocket } from './messages.ts'

/** What is to be done when a connection closes; one listener each, however many requests are pipelined on it. */
const endings = new WeakMap<NodeSocket, Set<() => void>>()

/** What is to be done when a connection closes, now that somebody asks. */
function endingsOf(socket: NodeSocket): Set<() => void> {
  const known = endings.get(socket)
  if (known !== undefined) return known
  const all = new Set<() => void>()
  endings.set(socket, all)
  socket.once('close', () => {
    for (const one of all) one()
  })
  return all
}

/** Tells of a caller who leaves; who waits for a turn then gives it up. Costs nothing until somebody listens. */
export function leavingOf(socket: NodeSocket): Signal {
  return {
    get aborted() {
      return socket.destroyed === true
    },
    addEventListener: (_, listener) => void endingsOf(socket).add(listener),
    removeEventListener: (_, listener) => void endings.get(socket)?.delete(listener),
  }
}

/**
 * Calls `end` once when the answer is over, sent or not. An answer that waits behind others of its connection tells
 * nothing when the caller leaves, so the connection is listened to as well.
 */
export function onceOver({ socket }: Pick<NodeRequest, 'socket'>, response: NodeResponse, end: () => void): void {
  const ends = endingsOf(socket)
  const once = (): void => {
    if (ends.delete(once)) end()
  }
  ends.add(once)
  response.once('close', once)
}

/** True when the caller left, or others answered: then the request is neither served nor charged. */
export function isOver({ socket }: Pick<NodeRequest, 'socket'>, response: NodeResponse): boolean {
  return response.closed || response.destroyed || response.headersSent || socket.destroyed === true
}

/** True for an answer that was sent whole; some servers end a broken one before they destroy it. */
export function isWhole({ writableFinished, errored }: NodeResponse): boolean {
  return writableFinished && !errored
}
