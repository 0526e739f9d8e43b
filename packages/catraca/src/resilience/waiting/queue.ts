/**
 * Those who wait for one key, served in the order in which they came: the first is asked for, and while it does not pass
 * nobody behind it does, so a large request is not overtaken by small ones.
 *
 * A machine without a clock: it says who is to be asked and when. Every step is O(1).
 */
export class Queue<T> {
  private readonly waiting = new Set<T>()
  /** When the first may pass: µs of the caller's clock. */
  dueUs: number
  /** True while the answer for the first is on its way. */
  asking = false

  /** @param dueUs When the one who comes first may pass. */
  constructor(dueUs: number) {
    this.dueUs = dueUs
  }

  get size(): number {
    return this.waiting.size
  }

  get first(): T | undefined {
    for (const ticket of this.waiting) return ticket
    return undefined
  }

  join(ticket: T): void {
    this.waiting.add(ticket)
  }

  /** One was served, gave up, or waited long enough. True when another is first now, and is to be asked for at once. */
  leave(ticket: T): boolean {
    const wasFirst = this.first === ticket
    return this.waiting.delete(ticket) && wasFirst && this.waiting.size > 0
  }
}
