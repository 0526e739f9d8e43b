import { afterPoll } from '../../core/clock.ts'
import { AskGrants, type GrantQuestion, type Memory } from './ask-grant.ts'
import type { Calls } from './calls.ts'

/** Questions that travel together at most: so many take the server about 200 µs, during which others wait. */
const maxTogether = 32

/**
 * Sends questions for units. The first of a turn goes at once; those that follow in the same turn leave together, for few
 * of them have somebody who waits. In a cluster each goes alone, for their keys are on several nodes.
 */
export class Grants {
  private readonly calls: Calls
  private readonly memory: Memory
  private gathered: GrantQuestion[] = []
  private gathering = false

  constructor(calls: Calls, memory: Memory) {
    this.calls = calls
    this.memory = memory
  }

  send(question: GrantQuestion): void {
    if (this.gathering) {
      this.gathered.push(question)
      return
    }
    if (this.memory.markerKey !== undefined) {
      this.gathering = true
      afterPoll(() => this.flush())
    }
    this.leave([question])
  }

  private flush(): void {
    this.gathering = false
    const { gathered } = this
    this.gathered = []
    for (let from = 0; from < gathered.length; from += maxTogether) this.leave(gathered.slice(from, from + maxTogether))
  }

  private leave(questions: readonly GrantQuestion[]): void {
    this.calls.send(new AskGrants(questions, this.memory))
  }
}
