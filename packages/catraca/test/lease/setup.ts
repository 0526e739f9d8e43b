import {
  createLimiter,
  type LeaseOptions,
  type Rule,
  type Rules,
  type SharedLimiter,
  type SharedLimiterOptions,
  slidingLog,
} from 'catraca'
import { afterEach, beforeEach, vi } from 'vitest'
import type { RemoteHooks } from '../../src/stores/remote.ts'
import { FaultyStore } from '../failure/faulty-store.ts'

export const noon = Date.UTC(2027, 0, 1, 12)
/** A rule whose units stay where they are for the length of a test. */
export const hundred: Rule = slidingLog({ limit: 100, window: '1h' })

/** Time stands still but for what a test lets pass. */
export function frozen(): void {
  beforeEach(() => void vi.useFakeTimers({ now: noon }))
  afterEach(() => void vi.useRealTimers())
}

type Options = Partial<Omit<SharedLimiterOptions, 'name' | 'store'>>

/** A process with a limiter whose units are leased. */
export class Process<R extends Rules = Rule> {
  readonly store: FaultyStore
  readonly limiter: SharedLimiter<R>
  private readonly rules: R

  /** @param beside Another process of the service. */
  constructor(rules: R, lease: LeaseOptions | undefined, options: Options = {}, beside?: Process<R>) {
    this.store = new FaultyStore(beside?.store)
    this.rules = rules
    const shared = { name: 'api', store: this.store, storeFailure: { expectedInstances: 2 }, ...options }
    this.limiter = createLimiter<R>(rules, lease === undefined ? shared : { ...shared, lease })
  }

  /** Another process of the service, with the same lease or none. */
  beside(lease?: LeaseOptions): Process<R> {
    return new Process(this.rules, lease, {}, this)
  }
}

/** Lets what nobody waits for come to its end: trips take some turns of promises. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

export const silent: RemoteHooks = {
  evicted: () => {},
  rebased: () => {},
  closed: () => {},
  degraded: () => {},
  recovered: () => {},
  faulty: () => {},
  lost: () => {},
  paused: () => {},
}
