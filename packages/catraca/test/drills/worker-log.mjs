import { machineMs, offsetUs } from './worker-clock.mjs'

/** Numbers of one line; fleet.ts reads them in the same order. */
const width = 11
const chunkLines = 500

/** Sends decisions to the parent in chunks, events at once. */
export class Log {
  #parent
  #chunk = []

  constructor(parent) {
    this.#parent = parent
  }

  /** One line per policy of a decision. `takenUs`: of a unit in hand, when by the monotonic clock; else 0. */
  decision(policy, key, decision, part, takenUs, counts, sentMs, tookMs, releasedMs) {
    const flags = (decision.allowed ? 1 : 0) + (part.degraded ? 2 : 0) + (counts ? 4 : 0)
    const closed = decision.reason === 'store-closed' ? 1 : 0
    const windowUs = part.origin * part.source.rule.tickUs
    this.#chunk.push(policy, key, part.cost, flags, closed, part.nowUs, takenUs, windowUs, sentMs, tookMs, releasedMs)
    if (this.#chunk.length >= chunkLines * width) this.flush()
  }

  event(limiter, name, details) {
    const { cause, ...plain } = details
    const said = cause === undefined ? {} : { cause: String(cause.message ?? cause) }
    this.#parent.send({ event: { limiter, name, atMs: machineMs(), ...plain, ...said } })
  }

  flush() {
    if (this.#chunk.length > 0) this.#parent.send({ lines: Float64Array.from(this.#chunk), offsetUs: offsetUs() })
    this.#chunk = []
  }
}
