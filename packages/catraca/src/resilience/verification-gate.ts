/** What becomes of a request that asks to be verified. */
export type Entry = 'go' | 'wait' | 'refuse'

/** Requests whose wait is over. */
export interface Released<T> {
  /** These are verified now and count as in flight. */
  readonly go: readonly T[]
  /** For these there is no room left. */
  readonly refuse: readonly T[]
}

/** One request that asks to be verified. */
interface Waiter<T> {
  readonly ticket: T
  readonly units: number
  readonly untilUs: number
}

interface Line<T> {
  inFlight: number
  /** Units in flight. */
  unitsInFlight: number
  readonly waiting: Waiter<T>[]
}

/**
 * Keeps verification from being free: of one address, verifications in flight plus failures charged never exceed what the
 * limit of unverified callers allows. `room` is what that limit has left; a failure is charged to it before
 * {@link VerificationGate.leave}, a success is not. While others of the address are in flight a request waits for one of
 * them to end, first come first served. A request counts as the units that its failure is charged.
 *
 * Bound: with f failures charged, room = burst − f (plus what came back meanwhile), and a verification begins only while
 * inFlight + its units ≤ room; so inFlight + f ≤ burst (plus what came back). Memory: one entry per address that has
 * someone in flight.
 */
export class VerificationGate<T> {
  private readonly lines = new Map<string, Line<T>>()
  private readonly maxWaitUs: number
  private readonly maxWaiting: number

  /** @param maxWaitUs The longest wait. @param maxWaiting Requests of one address that can wait. */
  constructor(maxWaitUs: number, maxWaiting: number) {
    this.maxWaitUs = maxWaitUs
    this.maxWaiting = maxWaiting
  }

  /** A request asks to be verified. `room` is what the limits on this request have left. */
  enter(address: string, room: number, ticket: T, nowUs: number, units = 1): Entry {
    const line = this.lines.get(address)
    if (line === undefined) {
      if (room < units) return 'refuse'
      this.lines.set(address, { inFlight: 1, unitsInFlight: units, waiting: [] })
      return 'go'
    }
    if (line.waiting.length === 0 && line.unitsInFlight + units <= room) {
      start(line, units)
      return 'go'
    }
    if (line.waiting.length >= this.maxWaiting) return 'refuse'
    line.waiting.push({ ticket, units, untilUs: nowUs + this.maxWaitUs })
    return 'wait'
  }

  /**
   * A verification of `units` ended; a failed one was charged before. `room` tells what the limits on a waiting request
   * have left now, since not every limit is about every request.
   */
  leave(address: string, room: number | ((ticket: T) => number), units = 1): Released<T> {
    const go: T[] = []
    const refuse: T[] = []
    const line = this.lines.get(address)
    if (line === undefined) return { go, refuse }
    line.inFlight--
    line.unitsInFlight -= units
    let done = 0
    for (const { ticket, units: wanted } of line.waiting) {
      if (line.unitsInFlight + wanted <= (typeof room === 'number' ? room : room(ticket))) {
        start(line, wanted)
        go.push(ticket)
        // Nobody is left whose end could make room for it.
      } else if (line.inFlight === 0) refuse.push(ticket)
      else break
      done++
    }
    line.waiting.splice(0, done)
    if (line.inFlight === 0) this.lines.delete(address)
    return { go, refuse }
  }

  /** Takes out those of an address that have waited long enough. */
  expire(address: string, nowUs: number): readonly T[] {
    const waiting = this.lines.get(address)?.waiting ?? []
    const first = waiting.findIndex(({ untilUs }) => untilUs > nowUs)
    return waiting.splice(0, first === -1 ? waiting.length : first).map(({ ticket }) => ticket)
  }

  /** Addresses with a verification in flight. */
  get size(): number {
    return this.lines.size
  }
}

function start(line: Line<unknown>, units: number): void {
  line.inFlight++
  line.unitsInFlight += units
}
