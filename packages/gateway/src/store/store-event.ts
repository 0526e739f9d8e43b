import { inspect } from 'node:util'

/** What happened to the store that instances share. */
export type StoreEvent =
  /** It does not answer, or cannot be reached: what `onStoreFailure` declares decides from now on. Once per outage. */
  | { readonly type: 'degraded'; readonly cause: string }
  /** It decides again; `decisions` were made without it. */
  | { readonly type: 'recovered'; readonly durationMs: number; readonly decisions: number }
  /** It cannot answer for one key, which was left as it is. Once per key. */
  | { readonly type: 'fault'; readonly policy: string; readonly key: string; readonly cause: string }
  /** It lost its memory or was replaced; so many decisions were charged since it was last known to be the same. */
  | { readonly type: 'lost'; readonly kind: 'restart' | 'flush' | 'failover'; readonly decisionsAtRisk: number }
  /** This process stood still for longer than the timeout of the store, which is not to blame. */
  | { readonly type: 'paused'; readonly pauseMs: number }

/** Longer keys are cut in a line of text. */
const shownKey = 100

const kinds = {
  restart: 'was restarted without its memory',
  flush: 'was emptied',
  failover: 'was replaced by another server',
} as const

/** An event as one line of text. */
export function storeWords(event: StoreEvent, address: string): string {
  const store = `the store at ${address}`
  switch (event.type) {
    case 'degraded':
      return `${store} does not answer (${event.cause}); policies decide without it, as their onStoreFailure says`
    case 'recovered':
      return `${store} answers again after ${spanWords(event.durationMs)}; ${counted(event.decisions, 'made without it')}`
    case 'fault':
      return `${store} holds something else under a key of ${event.policy}, ${shown(event.key)}, and it was decided without it: ${event.cause}`
    case 'lost':
      return `${store} ${kinds[event.kind]}; ${counted(event.decisionsAtRisk, 'charged to it since it was last looked at')}`
    default:
      return `this process stood still for about ${rounded(event.pauseMs)} ms, longer than the timeout of the store, which is not to blame`
  }
}

function counted(decisions: number, what: string): string {
  return decisions === 1 ? `1 decision was ${what}` : `${decisions} decisions were ${what}`
}

function spanWords(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}

function shown(key: string): string {
  return inspect(key.length > shownKey ? `${key.slice(0, shownKey)}…` : key)
}

/** One digit, so that lines that say the same are the same and can be counted. */
function rounded(ms: number): number {
  return Number(ms.toPrecision(1))
}
