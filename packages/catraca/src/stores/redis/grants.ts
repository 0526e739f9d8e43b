import { afterPoll } from '../../core/clock.ts'
import { AskGrants, type GrantQuestion, type Memory } from './ask-grant.ts'
import type { Calls } from './calls.ts'

/** Questions that travel together at most: so many take the server about 200 µs, during which others wait. */
const maxTogether = 32
/** Turns of the event loop for which a question that nobody waits for is held at most. */
const heldTurns = 4

/**
 * Sends questions for units. Of those that somebody waits for the first of a turn goes at once, and those that follow in
 * the same turn leave together. What nobody waits for goes along with these, or by itself after some turns, so that with
 * very many keys a write to the connection serves many of them. In a cluster each question goes alone, for their keys are
 * on several nodes.
 */
export class Grants {
  private readonly calls: Calls
  private readonly memory: Memory
  private gathered: GrantQuestion[] = []
  private gathering = false
  /** Turns until what nobody waits for goes; 0 when there is none. */
  private turns = 0

  constructor(calls: Calls, memory: Memory) {
    this.calls = calls
    this.memory = memory
  }

  send(question: GrantQuestion, patient: boolean): void {
    if (this.memory.markerKey === undefined) this.leave([question])
    else if (patient) {
      this.gathered.push(question)
      if (this.gathered.length >= maxTogether) this.flush()
      else if (this.turns === 0) {
        this.turns = heldTurns
        afterPoll(() => this.turn())
      }
    } else if (this.gathering) this.gathered.push(question)
    else {
      this.gathering = true
      afterPoll(() => {
        this.gathering = false
        this.flush()
      })
      this.leave([question])
    }
  }

  private turn(): void {
    this.turns--
    if (this.gathered.length === 0) this.turns = 0
    if (this.turns > 0) afterPoll(() => this.turn())
    else this.flush()
  }

  private flush(): void {
    const { gathered } = this
    this.gathered = []
    for (let from = 0; from < gathered.length; from += maxTogether) this.leave(gathered.slice(from, from + maxTogether))
  }

  private leave(questions: readonly GrantQuestion[]): void {
    this.calls.send(new AskGrants(questions, this.memory))
  }
}
