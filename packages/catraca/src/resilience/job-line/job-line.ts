/** A piece of work in a {@link JobLine}. */
export interface Entry<J> {
  readonly job: J
  readonly caller: string
  /** Its number in the order of arrival. */
  readonly place: number
  notBeforeUs: number
}

/** Bounds of a {@link JobLine}. */
export interface JobLineBounds {
  /** Jobs that wait at the same time. */
  readonly maxQueued: number
  /** Of them, jobs of one caller. */
  readonly maxPerCaller: number
  /** Jobs that run at the same time. */
  readonly concurrency: number
}

/**
 * Work that was accepted and waits for its turn: first come, first served for each caller, and nobody waits behind another
 * caller's job that may not start yet. Pure: it has no clock and runs nothing.
 */
export class JobLine<J> {
  private readonly bounds: JobLineBounds
  private readonly waiting: Entry<J>[] = []
  private readonly perCaller = new Map<string, number>()
  /** Jobs that run, or are being asked whether they may. */
  private running = 0
  /** Callers whose first job is being asked: their next one comes behind it. */
  private readonly asking = new Set<string>()
  private added = 0

  constructor(bounds: JobLineBounds) {
    this.bounds = bounds
  }

  /** Jobs that wait. */
  get queued(): number {
    return this.waiting.length
  }

  /** False, and nothing is added, when there is no room, or none for this caller. */
  add(job: J, caller: string): boolean {
    const own = this.perCaller.get(caller) ?? 0
    if (this.waiting.length >= this.bounds.maxQueued || own >= this.bounds.maxPerCaller) return false
    this.waiting.push({ job, caller, place: this.added++, notBeforeUs: 0 })
    this.perCaller.set(caller, own + 1)
    return true
  }

  /** The first job that may be tried now, which takes a place among those that run; undefined when there is none. */
  next(nowUs: number): Entry<J> | undefined {
    if (this.running >= this.bounds.concurrency) return undefined
    const passed = new Set(this.asking)
    for (const [at, entry] of this.waiting.entries()) {
      if (!passed.has(entry.caller) && entry.notBeforeUs <= nowUs) {
        this.waiting.splice(at, 1)
        this.running++
        this.asking.add(entry.caller)
        return entry
      }
      passed.add(entry.caller)
    }
    return undefined
  }

  /** Puts a job that may not start yet back to its place. */
  defer(entry: Entry<J>, untilUs: number): void {
    this.running--
    this.asking.delete(entry.caller)
    entry.notBeforeUs = untilUs
    const at = this.waiting.findIndex(({ place }) => place > entry.place)
    this.waiting.splice(at === -1 ? this.waiting.length : at, 0, entry)
  }

  /** The job starts: its caller has room for another, and the next of it may be tried. */
  start({ caller }: Entry<J>): void {
    this.asking.delete(caller)
    const own = (this.perCaller.get(caller) ?? 1) - 1
    if (own === 0) this.perCaller.delete(caller)
    else this.perCaller.set(caller, own)
  }

  /** The job is over. */
  end(): void {
    this.running--
  }

  /** When to ask {@link JobLine.next} again although nothing ended; Infinity for not by itself. */
  wakeUs(): number {
    if (this.running >= this.bounds.concurrency) return Infinity
    const passed = new Set(this.asking)
    let earliestUs = Infinity
    for (const { caller, notBeforeUs } of this.waiting) {
      if (!passed.has(caller)) earliestUs = Math.min(earliestUs, notBeforeUs)
      passed.add(caller)
    }
    return earliestUs
  }

  /** Takes all that wait out. */
  clear(): J[] {
    this.perCaller.clear()
    return this.waiting.splice(0).map(({ job }) => job)
  }
}
