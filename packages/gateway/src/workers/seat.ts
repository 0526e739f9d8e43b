import type { GatewayDocument } from '@catraca/config'
import type { Listeners, RemoteStore } from 'catraca'
import type { PolicyDocument } from 'catraca/policy'

/** The place of a gateway that is one of several processes. */
export interface Seat {
  /** How many there are. */
  readonly workers: number
  /** The memory that all of them share; undefined where the document has a store of its own. */
  readonly store: RemoteStore | undefined
  /** Of `headerSecret`, the same for all. */
  readonly secret: string
}

/** The most instances that a document may state. */
const maxInstances = 100_000

/**
 * The policies of a gateway as one of its processes has them. The memory is shared by the workers, and is lost to all of
 * them together; a store that instances share is shared by all workers of all instances, each of which counts.
 */
export function policiesFor(policies: PolicyDocument, { store }: GatewayDocument, workers: number): PolicyDocument {
  const { defaults, storeFailure, ...rest } = policies
  const { expectedInstances: other, ...kept } = defaults ?? {}
  const stated = storeFailure?.expectedInstances ?? other
  const instances = typeof store === 'object' ? timesWorkers(stated, workers) : workers
  return {
    ...rest,
    ...(defaults !== undefined && { defaults: kept }),
    ...(instances !== undefined && { storeFailure: { ...storeFailure, expectedInstances: instances } }),
  }
}

/** So many instances, of so many processes each. */
export function timesWorkers<N extends number | 'live' | undefined>(instances: N, workers: number): N | number {
  return typeof instances === 'number' ? Math.min(maxInstances, instances * workers) : instances
}

/** What a worker tells of the memory that it shares with the others. */
export function memoryListeners(warn: (line: string) => void): Listeners {
  return {
    degraded: ({ cause }) => {
      const why = cause instanceof Error ? cause.message : String(cause)
      warn(`the process that holds the limits does not answer (${why}); the workers decide without it`)
    },
    recovered: ({ decisions }) =>
      warn(`the process that holds the limits answers again; ${decisions} decisions were made without it`),
  }
}
