import { randomUUID } from 'node:crypto'

/**
 * @typedef {object} Hold
 * @property {string} id
 * @property {number} eventId
 * @property {number} seats
 * @property {number} endsAt
 */

/** The seats that are held for a while. */
export class Holds {
  /**
   * In the order in which they were taken; all last equally long, so it is also the order in which they end.
   * @type {Map<string, Hold>}
   */
  #holds = new Map()
  /** Seats held by event. */
  #held = new Map()
  #total = 0

  /**
   * @param {object} options
   * @param {number} options.seatsPerEvent
   * @param {number} options.lastsMs How long a hold lasts.
   * @param {() => number} [options.now] In milliseconds, never going back.
   */
  constructor({ seatsPerEvent, lastsMs, now = () => performance.now() }) {
    this.seatsPerEvent = seatsPerEvent
    this.lastsMs = lastsMs
    this.now = now
  }

  /** Seats held now. */
  get total() {
    this.#dropEnded()
    return this.#total
  }

  /** @param {number} eventId */
  seatsLeft(eventId) {
    this.#dropEnded()
    return this.seatsPerEvent - (this.#held.get(eventId) ?? 0)
  }

  /**
   * Takes seats, all of them or none.
   * @param {number} eventId
   * @param {number} seats
   * @returns {Hold | undefined}
   */
  take(eventId, seats) {
    if (this.seatsLeft(eventId) < seats) return undefined
    const hold = { id: randomUUID(), eventId, seats, endsAt: this.now() + this.lastsMs }
    this.#holds.set(hold.id, hold)
    this.#count(eventId, seats)
    return hold
  }

  /** Ended holds are dropped when somebody asks: a timer for each would cost more than the hold. */
  #dropEnded() {
    const now = this.now()
    for (const { id, eventId, seats, endsAt } of this.#holds.values()) {
      if (endsAt > now) return
      this.#holds.delete(id)
      this.#count(eventId, -seats)
    }
  }

  #count(eventId, seats) {
    this.#held.set(eventId, (this.#held.get(eventId) ?? 0) + seats)
    this.#total += seats
  }
}
