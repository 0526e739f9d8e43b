import { nowUs as clockUs, later } from '../../core/clock.ts'
import { Breaker } from '../../resilience/breaker/breaker.ts'
import { type Central, type FaultKind, type Health, StoreFault } from '../remote.ts'

/** Failures in a row after which nothing is sent to the store. */
const failures = 5
/** Time between two trials of a store that is gone. */
const probeEveryUs = 500_000

/** What hears of outages. */
export interface OutageListener {
  /** Declared modes decide from now on. */
  degraded(cause: unknown): void
  /** The store decides again. */
  recovered(durationMs: number): void
}

/**
 * Whether a remote store answers: one for all ledgers of the store.
 *
 * The first fault begins an episode, the first success ends it. During one the calls still try the store until five in a
 * row have failed; then nothing is sent but a probe, every 500 ms, so that decisions take microseconds. A probe also goes
 * while calls may still try, for a service that nobody asks must recover too. There is one timer, and none while the
 * store is healthy.
 */
export class StoreHealth {
  readonly central: Central
  private readonly breaker = new Breaker({ failures, openUs: probeEveryUs })
  private readonly listeners = new Set<OutageListener>()
  /** The episode under way; undefined while healthy. */
  private episode: { readonly beganUs: number; readonly cause: unknown } | undefined
  /** The probe under way; undefined when there is none. */
  private trial: object | undefined
  /** How often the breaker opened: a call that began before the last time says nothing new. */
  private openings = 0
  private cancelProbe: (() => void) | undefined
  private closed = false

  constructor(central: Central) {
    this.central = central
  }

  get state(): Health {
    if (this.episode === undefined) return 'healthy'
    return this.trial === undefined ? 'degraded' : 'probing'
  }

  /** Whether a call may be sent to the store. */
  mayAsk(): boolean {
    if (this.breaker.state === 'closed') return !this.closed
    // Where there are no timers the decisions keep the probes going.
    if (this.cancelProbe === undefined && this.trial === undefined) this.probe()
    return false
  }

  /** Tells a listener of outages, of one under way at once; returns the way to stop. */
  join(listener: OutageListener): () => void {
    this.listeners.add(listener)
    if (this.episode !== undefined) listener.degraded(this.episode.cause)
    return () => {
      this.listeners.delete(listener)
    }
  }

  /** A call is sent; what is returned goes with its result. */
  begin(): number {
    return this.openings
  }

  /** A call was answered. Costs a comparison while healthy. */
  succeeded(begun: number): void {
    if (this.episode === undefined || begun !== this.openings) return
    this.breaker.succeed()
    this.recover()
  }

  /** A call was not answered. An unfit key says nothing about the store. */
  failed(begun: number, cause: unknown): void {
    const kind = kindOf(cause)
    if (kind === 'key' || begun !== this.openings || this.closed) return
    this.count(kind)
    this.degrade(cause)
  }

  /** Stops the timer: nobody uses the store any more. */
  close(): void {
    this.closed = true
    this.cancelProbe?.()
    this.cancelProbe = undefined
    this.listeners.clear()
  }

  private count(kind: FaultKind): void {
    const wasClosed = this.breaker.state === 'closed'
    if (kind === 'refuses') this.breaker.trip(clockUs())
    else this.breaker.fail(clockUs())
    if (wasClosed && this.breaker.state !== 'closed') this.openings++
  }

  private degrade(cause: unknown): void {
    if (this.episode !== undefined) return
    this.episode = { beganUs: clockUs(), cause }
    this.arm()
    for (const listener of this.listeners) listener.degraded(cause)
  }

  private recover(): void {
    const durationMs = this.episode === undefined ? 0 : Math.max(0, clockUs() - this.episode.beganUs) / 1_000
    this.episode = undefined
    this.trial = undefined
    this.cancelProbe?.()
    this.cancelProbe = undefined
    for (const listener of this.listeners) listener.recovered(durationMs)
  }

  private arm(): void {
    const { reopensAtUs } = this.breaker
    const waitUs = reopensAtUs === undefined ? probeEveryUs : reopensAtUs - clockUs()
    const waitMs = Math.ceil(Math.min(probeEveryUs, Math.max(0, waitUs)) / 1_000)
    this.cancelProbe = later(waitMs, () => {
      this.cancelProbe = undefined
      this.probe()
    })
  }

  private probe(): void {
    if (this.episode === undefined || this.closed) return
    if (this.breaker.ask(clockUs()) === 'refuse') {
      this.arm()
      return
    }
    const trial = {}
    const begun = this.openings
    this.trial = trial
    void attempt(() => this.central.probe()).then((cause) => {
      // The episode may have ended, or another store answer have come first.
      if (this.closed || this.trial !== trial) return
      this.trial = undefined
      if (begun !== this.openings) this.arm()
      else if (cause === undefined) {
        this.breaker.succeed()
        this.recover()
      } else {
        this.count(kindOf(cause))
        this.arm()
      }
    })
  }
}

/** What a call failed with; undefined when it was answered. */
async function attempt(call: () => Promise<void>): Promise<unknown> {
  try {
    await call()
    return undefined
  } catch (error) {
    return error ?? new Error('unknown')
  }
}

/** Anything that is not a fault of the store as such is taken for a store that is gone. */
export function kindOf(cause: unknown): FaultKind {
  return cause instanceof StoreFault ? cause.kind : 'gone'
}
