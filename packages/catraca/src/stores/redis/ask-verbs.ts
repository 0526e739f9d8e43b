import type { Decision } from '../../core/decision.ts'
import { StoreFault } from '../remote.ts'
import { numbersOf } from './ask.ts'
import { Call, type Script } from './calls.ts'

/** A question of a script of its own, and what becomes of its answer. */
export interface Asking {
  readonly script: Script
  readonly keys: readonly string[]
  /** Its arguments at a time of the store's, which may be another than here. */
  readonly args: (nowUs: number) => readonly string[]
  readonly read: (answer: readonly number[]) => Decision
  readonly resolve: (decision: Decision) => void
  readonly reject: (fault: unknown) => void
  /** What was charged after its question was given up is nobody's. */
  readonly late: (decision: Decision) => void
}

/** A question that is answered with a decision. One that the store could not read for its time is asked once more. */
export class AskDecision extends Call {
  private readonly asking: Asking
  private readonly repeat: ((ask: AskDecision) => void) | undefined

  /** @param again Sends the question once more. */
  constructor(asking: Asking, nowUs: number, again?: (ask: AskDecision) => void) {
    const { script, keys, args } = asking
    super(script, keys.length, [`${keys.length}`, ...keys, ...args(nowUs)])
    this.asking = asking
    this.repeat = again
  }

  succeed(answer: unknown): void {
    const numbers = numbersOf(answer)
    if (numbers.length > 1) this.asking.resolve(this.asking.read(numbers))
    else if (this.repeat === undefined) {
      this.fail(new StoreFault('refuses', 'the clock of the store moved while it was asked'))
    } else this.repeat(new AskDecision(this.asking, numbers[0] as number))
  }

  fail(fault: StoreFault): void {
    this.asking.reject(fault)
  }

  override late(answer: unknown): void {
    const numbers = numbersOf(answer)
    if (numbers.length > 1) this.asking.late(this.asking.read(numbers))
  }
}
