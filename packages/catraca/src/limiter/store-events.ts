import type { Emitter } from '../core/events.ts'
import type { RemoteHooks } from '../stores/remote.ts'

/** What a store tells, as events of whoever uses it. `closed` is called when the store ends the use. */
export function storeEvents(events: Pick<Emitter, 'emit'>, closed: () => void): RemoteHooks {
  return {
    evicted: (policy, key, limited) => events.emit('evicted', { policy, key, limited }),
    rebased: (stepMs) => events.emit('clock.step', { stepMs, source: 'state' }),
    closed,
    degraded: (cause) => events.emit('degraded', { cause }),
    recovered: (durationMs, decisions) => events.emit('recovered', { durationMs, decisions }),
    faulty: (policy, key, cause) => events.emit('store.fault', { policy, key, cause }),
    lost: (kind, decisionsAtRisk) => events.emit('store.lost', { kind, decisionsAtRisk }),
    paused: (pauseMs) => events.emit('loop.paused', { pauseMs }),
  }
}
