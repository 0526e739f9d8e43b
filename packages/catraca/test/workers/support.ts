import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { createLimiter, type Rule, type SharedLimiter, type SharedLimiterOptions } from 'catraca'
import { type Channel, type PrimaryStore, primaryStore, workerStore } from 'catraca/workers'
import { onTestFinished } from 'vitest'
import type { RemoteHooks, RemoteStore } from '../../src/stores/remote.ts'

/** Both ends of a channel that carries what one between processes does: text. */
export interface Pair {
  readonly worker: Channel
  readonly primary: Channel
  /** Messages of the worker so far, oldest first. */
  readonly sent: unknown[]
  /** Ends the channel, as the end of a process does. */
  cut(): void
}

export function pair(): Pair {
  const { port1, port2 } = new MessageChannel()
  const sent: unknown[] = []
  const cut = (): void => port1.close()
  onTestFinished(cut)
  const worker = channelOf(port1)
  const noting: Channel = {
    ...worker,
    send(message) {
      sent.push(message)
      worker.send(message)
    },
  }
  return { worker: noting, primary: channelOf(port2), sent, cut }
}

function channelOf(port: MessagePort): Channel {
  return {
    send: (message) => port.postMessage(JSON.stringify(message)),
    onMessage(listener) {
      const read = (text: string): void => listener(JSON.parse(text))
      port.on('message', read)
      return () => void port.off('message', read)
    },
    onClose(listener) {
      port.once('close', listener)
      return () => void port.off('close', listener)
    },
  }
}

export interface Worker extends Pair {
  readonly store: RemoteStore
}

/** So many workers of one memory. */
export function workersOf(
  count: number,
  { timeoutMs = 10_000, primary = primaryStore() }: { timeoutMs?: number; primary?: PrimaryStore } = {},
): { primary: PrimaryStore; workers: Worker[] } {
  onTestFinished(() => primary.close())
  const workers = Array.from({ length: count }, () => {
    const ends = pair()
    primary.attach(ends.primary)
    const store = workerStore({ channel: ends.worker, workers: count, timeoutMs })
    onTestFinished(() => store.close())
    return { ...ends, store }
  })
  return { primary, workers }
}

export type AnyLimiter = SharedLimiter<Rule>

/** A limiter of each worker, all of one name. */
export function limitersOf(
  workers: readonly Worker[],
  rule: Rule,
  options: Partial<SharedLimiterOptions> = {},
): AnyLimiter[] {
  const storeFailure = { expectedInstances: workers.length }
  return workers.map(({ store }) => createLimiter(rule, { name: 'api', store, storeFailure, ...options }))
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

export async function eventually(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const until = performance.now() + 10_000
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`${what}: not within 10 s`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Hooks that nobody listens to, but for those given. */
export function hooksOf(heard: Partial<RemoteHooks> = {}): RemoteHooks {
  const nothing = (): void => {}
  return {
    evicted: nothing,
    rebased: nothing,
    closed: nothing,
    degraded: nothing,
    recovered: nothing,
    faulty: nothing,
    lost: nothing,
    paused: nothing,
    ...heard,
  }
}
