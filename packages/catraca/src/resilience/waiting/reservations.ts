/** One who was given a time to start. */
export interface Reservation<T> {
  readonly ticket: T
  readonly startUs: number
  readonly place: string
  /** @internal */
  state: 'waits' | 'aborted' | 'gone'
  /** @internal Levels that had been given back from the end of the line when it came. */
  readonly sinceLevels: number
  /** @internal Levels of others behind it that were given back while others still waited behind those. */
  midLevels: number
}

interface Line<T> {
  readonly entries: Reservation<T>[]
  /** Of the entries, those before it are gone. */
  first: number
  /** Levels given back from the end of the line so far. */
  levels: number
}

/**
 * Those who wait for the time that a bucket gave them, one line per key in the order in which they were charged.
 *
 * An aborted one is given back at once where the rule allows it; where it does not, because others reserved behind it,
 * it stays in the line until they have gone and is then given back from the end, last first. Once its own time has passed
 * and others still wait behind it, the refill has filled its room, and it is forgotten.
 */
export class Reservations<T> {
  private readonly lines = new Map<string, Line<T>>()

  /** Adds one that was charged last and starts at `startUs`, perhaps before others, where one before them gave up. */
  add(place: string, ticket: T, startUs: number): Reservation<T> {
    const line = this.lines.get(place) ?? { entries: [], first: 0, levels: 0 }
    this.lines.set(place, line)
    const entry: Reservation<T> = { ticket, startUs, place, state: 'waits', sinceLevels: line.levels, midLevels: 0 }
    line.entries.push(entry)
    return entry
  }

  /** One starts, or nothing of it is to be given back. */
  leave(entry: Reservation<T>): void {
    const line = this.lines.get(entry.place)
    if (line === undefined || entry.state !== 'waits') return
    entry.state = 'gone'
    this.shorten(entry.place, line, entry.startUs)
  }

  /** One gave up: it is to be given back now. */
  abort(entry: Reservation<T>): void {
    if (entry.state === 'waits') entry.state = 'aborted'
  }

  /**
   * Of what was given back since one came, levels that were charged after it, so that its own place is known. What was
   * given back out of the middle of the line counts there only for one that starts or ends the line: while others wait
   * behind, it must also count as given back to them.
   */
  levelsBehind(entry: Reservation<T>): number {
    const line = this.lines.get(entry.place)
    if (line === undefined) return 0
    const fromTheEnd = line.levels - entry.sinceLevels
    const exact = entry.state === 'waits' || line.entries[line.entries.length - 1] === entry
    return exact ? fromTheEnd + entry.midLevels : fromTheEnd
  }

  /**
   * What became of one that was to be given back: `levels` of it were, 0 where others are behind it. Returns the one that
   * is to be given back next, which now ends the line.
   */
  gaveBack(entry: Reservation<T>, levels: number): Reservation<T> | undefined {
    const line = this.lines.get(entry.place)
    if (line === undefined || entry.state !== 'aborted') return undefined
    if (levels === 0) {
      this.shorten(entry.place, line, -Infinity)
      return undefined
    }
    entry.state = 'gone'
    const { entries } = line
    const wasLast = entries[entries.length - 1] === entry
    if (wasLast) line.levels += levels
    else for (let at = line.first; entries[at] !== entry; at++) (entries[at] as Reservation<T>).midLevels += levels
    this.shorten(entry.place, line, -Infinity)
    const last = entries[entries.length - 1]
    return wasLast && last?.state === 'aborted' ? last : undefined
  }

  /** Those who wait at a place, in their order. */
  waitingAt(place: string): T[] {
    const waiting = this.lines.get(place)?.entries.filter(({ state }) => state === 'waits') ?? []
    return waiting.map(({ ticket }) => ticket)
  }

  /** Keys with a line. */
  get size(): number {
    return this.lines.size
  }

  /** Lets go of what is gone at both ends, and of what was aborted for a time up to `passedUs`. */
  private shorten(place: string, line: Line<T>, passedUs: number): void {
    const { entries } = line
    while (entries[entries.length - 1]?.state === 'gone' && entries.length > line.first) entries.pop()
    while (line.first < entries.length) {
      const { state, startUs } = entries[line.first] as Reservation<T>
      if (state === 'waits' || (state === 'aborted' && startUs > passedUs)) break
      line.first++
    }
    if (line.first * 2 > entries.length) {
      entries.splice(0, line.first)
      line.first = 0
    }
    if (entries.length === line.first) this.lines.delete(place)
  }
}
