import { afterPoll } from '../../core/clock.ts'
import { CatracaError } from '../../core/errors.ts'

/**
 * One end of what joins two processes: what is sent at one end comes out at the other, whole and in order. Messages are
 * plain data of texts, numbers, lists and objects; others on the same channel are left alone.
 */
export interface Channel {
  /** Sends a message; what cannot be sent any more is lost without a word. May throw where the channel is gone. */
  send(message: object): void
  /** Calls `listener` with every message; returns the way to stop. */
  onMessage(listener: (message: unknown) => void): () => void
  /** Calls `listener` once when the other end is gone, also where it was gone before; returns the way to stop. */
  onClose(listener: () => void): () => void
}

/** What a process with a channel to another one has: `process` of a child, `ChildProcess`, `Worker` of a cluster. */
export interface ProcessLike {
  readonly connected?: boolean
  send?(message: object, done: (error: Error | null) => void): unknown
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'disconnect', listener: () => void): unknown
  off(event: 'message', listener: (message: unknown) => void): unknown
  off(event: 'disconnect', listener: () => void): unknown
}

/**
 * The channel between a process and one that it forked: in the child `channelOf(process)`, in the parent
 * `channelOf(child)`. Throws a `CatracaError` with the code `CATRACA_OPTION_INVALID` for a process without a channel.
 */
export function channelOf(end: ProcessLike): Channel {
  if (typeof end?.send !== 'function') {
    throw new CatracaError(
      'CATRACA_OPTION_INVALID',
      'channelOf was given no process with a channel; allowed: process of a forked child, ChildProcess, Worker of a cluster',
      { path: 'channelOf' },
    )
  }
  return {
    // Without somebody to tell, a message that cannot be sent would be an error event of the process, which ends it.
    send: (message) => void end.send?.(message, () => {}),
    onMessage(listener) {
      end.on('message', listener)
      return () => void end.off('message', listener)
    },
    onClose(listener) {
      let waiting = true
      const close = (): void => {
        if (waiting) listener()
        waiting = false
      }
      end.on('disconnect', close)
      if (end.connected === false) afterPoll(close)
      return () => {
        waiting = false
        end.off('disconnect', close)
      }
    },
  }
}
