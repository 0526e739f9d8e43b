import type { Decision } from './decision.ts'
import type { DiagnosisCode } from './errors.ts'

/** Every event of a limiter and what its listener receives. */
export interface Events {
  /** Every decision of `take` and `tryTake`. */
  decision: { decision: Decision }
  /** An admitted request after which at least 80 % of the limit of `policy` is used. */
  nearLimit: { decision: Decision; policy: string; usedShare: number }
  /** The shared store is gone and the declared failure mode decides. */
  degraded: { cause: unknown }
  /** The shared store is back. */
  recovered: { durationMs: number; decisions: number }
  /** The shared store cannot answer for one key, which was left as it is; the failure mode of `policy` decided. */
  'store.fault': { policy: string; key: string; cause: unknown }
  /** The shared store lost its memory or was replaced; so many decisions were charged since it was last known the same. */
  'store.lost': { kind: 'restart' | 'flush' | 'failover'; decisionsAtRisk: number }
  /** This process stood still for longer than the deadline of the store, which is not to blame. */
  'loop.paused': { pauseMs: number }
  /** The bound of the store was reached and `key` was forgotten; `limited` when it was over its limit. */
  evicted: { policy: string; key: string; limited: boolean }
  /** A clock was moved: the process's own, or a state was found more than 60 s ahead of it. */
  'clock.step': { stepMs: number; source: 'clock' | 'state' }
  /** A likely mistake in how the limiter is used; each code once. */
  diagnosis: { code: DiagnosisCode; help: string; message: string }
  /** Policies were replaced at run time. */
  reloaded: { policies: readonly string[] }
}
export type EventName = keyof Events
export type Listener<Name extends EventName> = (event: Events[Name]) => void
/** Listeners by event name, as given in the option `on`. */
export type Listeners = { readonly [Name in EventName]?: Listener<Name> }

/** Every event name, for checks at run time. */
export const eventNames: readonly EventName[] = [
  'decision',
  'nearLimit',
  'degraded',
  'recovered',
  'store.fault',
  'store.lost',
  'loop.paused',
  'evicted',
  'clock.step',
  'diagnosis',
  'reloaded',
]

/** Typed listeners. A listener that throws throws into the call that caused the event, after the state was written. */
export class Emitter {
  readonly #listeners = new Map<EventName, Set<(event: never) => void>>()

  /** Calls `listener` at each event of that name; returns the way to stop. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners)
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
    }
  }

  has(name: EventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0
  }

  emit<Name extends EventName>(name: Name, event: Events[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) (listener as Listener<Name>)(event)
  }

  clear(): void {
    this.#listeners.clear()
  }
}
