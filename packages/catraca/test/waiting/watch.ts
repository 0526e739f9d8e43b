import type { Decision } from 'catraca'

export interface Heard {
  readonly name: string
  /** When it came, after the watch began. */
  readonly ms: number
  readonly decision: Decision
}

/** Decisions in the order in which they come. Needs fake timers. */
export class Watch {
  readonly log: Heard[] = []
  private readonly startMs = Date.now()

  on(name: string, promise: Promise<Decision>): void {
    void promise.then((decision) => this.log.push({ name, ms: Date.now() - this.startMs, decision }))
  }

  /** `name@ms` of each that was admitted. */
  get passed(): string[] {
    return this.log.filter(({ decision }) => decision.allowed).map(({ name, ms }) => `${name}@${ms}`)
  }

  /** `name@ms reason` of each that was not. */
  get refused(): string[] {
    const refused = this.log.filter(({ decision }) => !decision.allowed)
    return refused.map(({ name, ms, decision }) => `${name}@${ms} ${decision.reason}`)
  }
}
