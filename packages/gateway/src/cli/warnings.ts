const quietMs = 5_000

/** Says each warning when it is new, and while it repeats once in five seconds with the number of repetitions. */
export class Warnings {
  private readonly print: (line: string) => void
  private readonly said = new Map<string, { atMs: number; since: number }>()

  constructor(print: (line: string) => void) {
    this.print = print
  }

  say(line: string): void {
    const nowMs = performance.now()
    const last = this.said.get(line)
    if (last !== undefined && nowMs - last.atMs < quietMs) {
      last.since++
      return
    }
    const since = last?.since ?? 0
    this.said.set(line, { atMs: nowMs, since: 0 })
    this.print(`warning: ${line}${since > 0 ? ` (${since} more since the last such line)` : ''}`)
  }
}
