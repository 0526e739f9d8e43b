import { CatracaError } from '../../core/errors.ts'
import { rejectUnknown } from '../../core/parameters.ts'
import { memoryStore } from '../memory/memory-store.ts'
import { Attached } from './attached.ts'
import type { Channel } from './channel.ts'
import { SharedStates } from './shared-states.ts'

/** Options of {@link primaryStore}. */
export interface PrimaryStoreOptions {
  /** Most keys in memory, over all limiters: 1 to 10^8. Default 1,000,000, about 80 MB. */
  maxKeys?: number
}

/** The memory that processes of one machine share. Made by {@link primaryStore}. */
export interface PrimaryStore {
  /**
   * Answers the process at the other end of a channel, from now until it is gone or what is returned is called. Attach
   * in the turn in which the process was forked, so that none of its messages is missed. When the process is gone, the
   * permits that it held come back; what it used stays used.
   */
  attach(channel: Channel): () => void
  /** Forgets everything. The processes go on by their declared failure modes. */
  close(): void
}

/**
 * Holds the limits that the processes of one machine share, in the memory of this one: the other end of `workerStore`.
 * It decides by the clock of this process and takes a few µs per question, one after the other. Throws a `CatracaError`
 * for options that are not allowed.
 *
 * @example
 * const primary = primaryStore()
 * for (let count = 0; count < 4; count++) primary.attach(channelOf(fork('worker.js')))
 */
export function primaryStore(options: PrimaryStoreOptions = {}): PrimaryStore {
  rejectUnknown(['maxKeys'], options, 'primaryStore')
  const { maxKeys } = options
  const store = memoryStore(maxKeys === undefined ? {} : { maxKeys })
  const byName = new Map<string, SharedStates>()
  const attached = new Set<Attached>()
  let closed = false
  const find = (name: string): SharedStates => {
    const states = byName.get(name) ?? new SharedStates(store, name)
    byName.set(name, states)
    return states
  }
  const drop = (name: string): void => {
    byName.get(name)?.close()
    byName.delete(name)
  }
  return {
    attach(channel) {
      if (closed) throw new CatracaError('CATRACA_LIMITER_CLOSED', 'the memory was closed; make a new one')
      const one = new Attached(channel, find, drop, () => attached.delete(one))
      attached.add(one)
      return () => one.detach()
    },
    close() {
      closed = true
      for (const one of attached) one.detach()
      byName.clear()
      store.close()
    },
  }
}
