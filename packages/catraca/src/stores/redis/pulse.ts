import { later } from '../../core/clock.ts'
import { type Calls, PromisedCall } from './calls.ts'
import type { Wire } from './client.ts'
import { storeKey } from './keys.ts'
import { pulse } from './script.generated.ts'

/** How often the store is looked at. */
const everyMs = 1_000
/** An instance that has not been heard of for so long does not count any more. */
const instanceLifeUs = 3_500_000

/** What happened to the store since it was last looked at. */
export type Loss = 'restart' | 'flush' | 'failover'

/**
 * Looks at the store once a second and at each connection: whether it is still the one it was, and how many instances use
 * it. A marker key that is gone says that the memory was lost, by a restart where the server's run id is another, else by
 * a flush; another run id and the same marker say that a replica took over. Both keys live for an hour after the last
 * reading; where there was no reading before, an absent marker is a start.
 */
export class Pulse {
  /** Instances heard of lately, this one included. */
  instances: number | undefined
  /** Decisions charged since the store was last known to be the same. */
  charged = 0
  /** When somebody found that the memory was lost, µs by the clock of the store; 0 where nobody did. */
  lostUs = 0
  private readonly wire: Wire
  private readonly calls: Calls
  private readonly keys: readonly [marker: string, instances: string]
  private readonly lost: (kind: Loss, decisionsAtRisk: number) => void
  private readonly id = name()
  private known: { marker: string; runId: string } | undefined
  private stopTimer: (() => void) | undefined
  private stopReady: (() => void) | undefined
  private reading: Promise<void> | undefined

  constructor(wire: Wire, calls: Calls, prefix: string, lost: (kind: Loss, decisionsAtRisk: number) => void) {
    this.wire = wire
    this.calls = calls
    this.keys = [storeKey(prefix, 'marker'), storeKey(prefix, 'instances')]
    this.lost = lost
  }

  /** The key of the marker. */
  get markerKey(): string {
    return this.keys[0]
  }

  /** The marker of the memory that was last seen; empty before. */
  get marker(): string {
    return this.known?.marker ?? ''
  }

  start(): void {
    if (this.stopReady !== undefined) return
    this.stopReady = this.wire.onReady(() => this.look())
    this.look()
    this.next()
  }

  stop(): void {
    this.stopReady?.()
    this.stopReady = undefined
    this.stopTimer?.()
    this.stopTimer = undefined
  }

  /** One reading; it also writes, so that a store that takes no writes is not taken for a working one. */
  read(): Promise<void> {
    this.reading ??= this.ask().finally(() => {
      this.reading = undefined
    })
    return this.reading
  }

  /** Reads, and leaves what is wrong to decisions, which are told what it means. */
  look(): void {
    this.read().catch(() => {})
  }

  private next(): void {
    this.stopTimer = later(everyMs, () => {
      this.look()
      if (this.stopReady !== undefined) this.next()
    })
  }

  private async ask(): Promise<void> {
    const { charged } = this
    const fresh = name()
    const call = new PromisedCall(pulse, this.keys, [fresh, this.id, `${instanceLifeUs}`, this.marker])
    this.calls.send(call)
    const answer = ((await call.promise) as unknown[]).map(String)
    const [marker, instances, runId, lostUs] = answer as [string, string, string, string]
    this.instances = Number(instances)
    this.lostUs = Number(lostUs)
    const before = this.known
    this.known = { marker: marker === '' ? fresh : marker, runId }
    this.charged -= charged
    if (before === undefined) return
    if (before.marker !== marker) this.lost(before.runId === runId ? 'flush' : 'restart', charged)
    else if (before.runId !== runId) this.lost('failover', charged)
  }
}

/** A text that nobody else draws. */
export function name(): string {
  return Math.floor(Math.random() * 2 ** 52).toString(36)
}
