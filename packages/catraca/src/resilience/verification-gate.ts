/** What becomes of a request that asks to be verified. */
export type Entry = 'go' | 'wait' | 'refuse'

/** Requests whose wait is over. */
export interface Released<T> {
  /** These are verified now and count as in flight. */
  readonly go: readonly T[]
  /** For these there is no room left. */
  readonly refuse: readonly T[]
}

interface Waiter<T> {
  readonly ticket: T
  readonly untilUs: number
}

interface Line<T> {
  inFlight: number
  readonly waiting: Waiter<T>[]
}

/**
 * Keeps verification from being free: of one address, verifications in flight plus failures charged never exceed what the
 * limit of unverified callers allows. `room` is what that limit has left; a failure is charged to it before
 * {@link VerificationGate.leave}, a success is not. While others of the address are in flight a request waits for one of
 * them to end, first come first served.
 *
 * Bound: with f failures charged, room = burst − f (plus what came back meanwhile), and a verification begins only while
 * inFlight < room; so inFlight + f ≤ burst (plus what came back). Memory: one entry per address that has someone in flight.
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

  enter(address: string, room: number, ticket: T, nowUs: number): Entry {
    const line = this.lines.get(address)
    if (line === undefined) {
      if (room < 1) return 'refuse'
      this.lines.set(address, { inFlight: 1, waiting: [] })
      return 'go'
    }
    if (line.waiting.length === 0 && line.inFlight < room) {
      line.inFlight++
      return 'go'
    }
    if (line.waiting.length >= this.maxWaiting) return 'refuse'
    line.waiting.push({ ticket, untilUs: nowUs + this.maxWaitUs })
    return 'wait'
  }

  /** A verification ended; a failed one was charged before. `room` is what is left now. */
  leave(address: string, room: number): Released<T> {
    const line = this.lines.get(address)
    if (line === undefined) return { go: [], refuse: [] }
    line.inFlight--
    const starting = Math.min(line.waiting.length, Math.max(0, Math.floor(room) - line.inFlight))
    const go = line.waiting.splice(0, starting)
    line.inFlight += go.length
    // Nobody is left whose end could make room.
    const refuse = line.inFlight === 0 ? line.waiting.splice(0) : []
    if (line.inFlight === 0) this.lines.delete(address)
    return { go: go.map(ticketOf), refuse: refuse.map(ticketOf) }
  }

  /** Takes out those of an address that have waited long enough. */
  expire(address: string, nowUs: number): readonly T[] {
    const waiting = this.lines.get(address)?.waiting ?? []
    const first = waiting.findIndex(({ untilUs }) => untilUs > nowUs)
    return waiting.splice(0, first === -1 ? waiting.length : first).map(ticketOf)
  }

  /** Addresses with a verification in flight. */
  get size(): number {
    return this.lines.size
  }
}

function ticketOf<T>({ ticket }: Waiter<T>): T {
  return ticket
}
