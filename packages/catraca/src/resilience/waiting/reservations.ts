/** One who was given a time to start. */
export interface Reservation<T> {
  readonly ticket: T
  readonly startUs: number
  readonly place: string
  /** @internal */
  state: 'waits' | 'aborted' | 'asked' | 'gone'
  /** @internal True where it ended the line when it was asked to be given back. */
  askedLast: boolean
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
    const entry: Reservation<T> = {
      ticket,
      startUs,
      place,
      state: 'waits',
      askedLast: false,
      sinceLevels: line.levels,
      midLevels: 0,
    }
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

  /** One gave up: {@link Reservations.ask} for it now. */
  abort(entry: Reservation<T>): void {
    if (entry.state === 'waits') entry.state = 'aborted'
  }

  /** One that gave up is asked to be given back: what {@link Reservations.levelsBehind} it. */
  ask(entry: Reservation<T>): number {
    const levels = this.levelsBehind(entry)
    entry.state = 'asked'
    entry.askedLast = this.lastOf(entry) === entry
    return levels
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
    const exact = entry.state === 'waits' || this.lastOf(entry) === entry
    return exact ? fromTheEnd + entry.midLevels : fromTheEnd
  }

  /**
   * The answer to {@link Reservations.ask}: `levels` of it were given back, 0 where others are behind it. Returns the one
   * that is to be asked for next, as it ends the line now.
   */
  gaveBack(entry: Reservation<T>, levels: number): Reservation<T> | undefined {
    const line = this.lines.get(entry.place)
    if (line === undefined || entry.state !== 'asked') return undefined
    const { entries } = line
    entry.state = levels === 0 ? 'aborted' : 'gone'
    if (this.lastOf(entry) === entry) line.levels += levels
    else if (levels > 0) {
      for (let at = line.first; entries[at] !== entry; at++) (entries[at] as Reservation<T>).midLevels += levels
    }
    this.shorten(entry.place, line, -Infinity)
    const last = entries[entries.length - 1]
    // Not the same again, unless others have left the end since it was asked.
    return last?.state === 'aborted' && (last !== entry || !entry.askedLast) ? last : undefined
  }

  /** Those who wait at a place, in their order. */
  waitingAt(place: string): T[] {
    const waiting = this.lines.get(place)?.entries.filter(({ state }) => state === 'waits') ?? []
    return waiting.map(({ ticket }) => ticket)
  }

  private lastOf({ place }: Reservation<T>): Reservation<T> | undefined {
    return this.lines.get(place)?.entries.at(-1)
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
      const front = entries[line.first] as Reservation<T>
      const { state, startUs } = front
      if (state === 'waits' || (state !== 'gone' && startUs > passedUs)) break
      front.state = 'gone'
      line.first++
    }
    if (line.first * 2 > entries.length) {
      entries.splice(0, line.first)
      line.first = 0
    }
    if (entries.length === line.first) this.lines.delete(place)
  }
}
