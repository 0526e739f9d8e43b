import { afterPoll, elapsedMs, later } from '../../core/clock.ts'
import { Deadlines, type Waiting } from '../deadlines.ts'
import { StoreFault } from '../remote.ts'
import type { Wire } from './client.ts'
import { faultOf, isReadOnly, isUnknownScript } from './fault.ts'
import { batch, decide } from './script.generated.ts'

/** A script as it is stored in the server, and its text. */
export interface Script {
  readonly sha: string
  readonly text: string
}

/** Questions of one turn that travel together at most: so many take the server about 200 µs, during which others wait. */
const maxBatch = 64
/** From so many on they travel in two halves. */
const splitFrom = 8
/** How often held calls look whether the client is connected. */
const connectStepMs = 2

/** One call of a script on its way. */
export abstract class Call implements Waiting {
  done = false
  dueMs = 0
  next: Waiting | undefined = undefined
  /** True once it was sent again: after a lost script or by way of a new primary. */
  again = false
  readonly script: Script
  readonly keyCount: number
  /** The number of keys, the keys, the arguments: one list, so that none is copied on the way. */
  readonly rest: readonly string[]

  constructor(script: Script, keyCount: number, rest: readonly string[]) {
    this.script = script
    this.keyCount = keyCount
    this.rest = rest
  }

  get keys(): readonly string[] {
    return this.rest.slice(1, 1 + this.keyCount)
  }

  get args(): readonly string[] {
    return this.rest.slice(1 + this.keyCount)
  }

  /** Once: what the script said. */
  abstract succeed(answer: unknown): void
  /** Once: why there is no answer. */
  abstract fail(fault: StoreFault): void
  /** An answer that came after the call was given up. */
  late(_answer: unknown): void {}

  answer(answer: unknown): void {
    const late = this.done
    this.done = true
    // Whatever cannot be read is a fault: a caller who is never answered would be worse.
    try {
      if (late) this.late(answer)
      else this.succeed(answer)
    } catch (error) {
      if (!late) this.fail(faultOf(error))
    }
  }

  end(fault: StoreFault): void {
    if (this.done) return
    this.done = true
    this.fail(fault)
  }

  expire(): void {
    this.fail(new StoreFault('slow', 'the store did not answer in time'))
  }
}

/** A call whose answer is a promise. */
export class PromisedCall extends Call {
  readonly promise: Promise<unknown>
  private settle: [(answer: unknown) => void, (fault: StoreFault) => void] | undefined

  constructor(script: Script, keys: readonly string[], args: readonly string[]) {
    super(script, keys.length, [`${keys.length}`, ...keys, ...args])
    this.promise = new Promise((resolve, reject) => {
      this.settle = [resolve, reject]
    })
  }

  succeed(answer: unknown): void {
    this.settle?.[0](answer)
  }

  fail(fault: StoreFault): void {
    this.settle?.[1](fault)
  }
}

/**
 * Sends calls over the application's client, each within the deadline. Nothing is sent while the client reconnects or is
 * closed; while it connects for the first time calls are held here. A script that the server does not know is sent whole,
 * once; a replica that was the primary is asked once more after the client has found the new one.
 */
export class Calls {
  private readonly wire: Wire
  private readonly deadlines: Deadlines
  private readonly batches: boolean
  private held: Call[] = []
  /** What waits for the end of this turn. */
  private gathered: Call[] = []
  private gathering = false
  private reconnectedMs = -Infinity

  constructor(wire: Wire, timeoutMs: number, paused: (pauseMs: number) => void) {
    this.wire = wire
    this.deadlines = new Deadlines(timeoutMs, paused)
    this.batches = wire.writesPerTurn
  }

  send(call: Call): void {
    const { connection } = this.wire
    if (connection === 'away') {
      call.end(new StoreFault('gone', 'the client of the store is not connected'))
      return
    }
    this.deadlines.add(call)
    if (connection === 'connecting') this.hold(call)
    else this.write(call)
  }

  /** Holds a call until the client is connected; its deadline runs. */
  private hold(call: Call): void {
    this.held.push(call)
    if (this.held.length === 1) later(connectStepMs, () => this.release())
  }

  private release(): void {
    this.held = this.held.filter(({ done }) => !done)
    const { connection } = this.wire
    if (connection === 'connecting') {
      if (this.held.length > 0) later(connectStepMs, () => this.release())
      return
    }
    const { held } = this
    this.held = []
    for (const call of held) {
      if (connection === 'ready') this.write(call)
      else call.end(new StoreFault('gone', 'the client of the store could not connect'))
    }
  }

  private write(call: Call): void {
    if (!this.batches || call.script !== decide) this.transmit(call)
    else if (this.gathering) this.gathered.push(call)
    else {
      // The first of a turn goes at once. Those that follow in the same turn leave together, in the same write: this
      // immediate is before that of the client, which its first command arms.
      this.gathering = true
      afterPoll(() => this.flush())
      this.transmit(call)
    }
  }

  private flush(): void {
    this.gathering = false
    const { gathered } = this
    if (gathered.length === 0) return
    this.gathered = []
    if (gathered.length < splitFrom) {
      this.leave(gathered)
      return
    }
    // In two halves, a turn apart: while the server works on one, the answers to the other are read here.
    const half = gathered.length >> 1
    this.leave(gathered.slice(0, half))
    afterPoll(() => this.leave(gathered.slice(half)))
  }

  private leave(calls: readonly Call[]): void {
    for (let from = 0; from < calls.length; from += maxBatch) {
      const some = calls.slice(from, from + maxBatch)
      this.transmit(some.length === 1 ? (some[0] as Call) : new Together(some))
    }
  }

  private transmit(call: Call): void {
    let sent: Promise<unknown>
    try {
      sent = this.wire.evalsha(call.script.sha, call.rest)
    } catch (error) {
      call.end(faultOf(error))
      return
    }
    sent.then(
      (answer) => {
        call.answer(answer)
        this.deadlines.forget()
      },
      (error: unknown) => this.failed(call, error),
    )
  }

  private failed(call: Call, error: unknown): void {
    if (!call.again && isUnknownScript(error)) {
      call.again = true
      this.wire.eval(call.script.text, call.rest).then(
        (answer) => call.answer(answer),
        (second: unknown) => call.end(faultOf(second)),
      )
    } else if (!call.again && isReadOnly(error)) {
      call.again = true
      const now = elapsedMs()
      if (now - this.reconnectedMs > 1_000) {
        this.reconnectedMs = now
        this.wire.reconnect()
      }
      // Held until the client is back, also one that was connected before.
      this.retry(call, error)
    } else call.end(faultOf(error))
  }

  private retry(call: Call, error: unknown): void {
    later(connectStepMs, () => {
      if (call.done) return
      if (this.wire.connection === 'ready') this.transmit(call)
      else if (call.dueMs - elapsedMs() > connectStepMs) this.retry(call, error)
      else call.end(faultOf(error))
    })
  }
}

/** Several questions as one call, in which none waits for the success of another. */
class Together extends Call {
  private readonly calls: readonly Call[]

  constructor(calls: readonly Call[]) {
    const keys = calls.flatMap((call) => call.keys)
    const rest = [`${keys.length}`, ...keys, `${calls.length}`]
    for (const call of calls) {
      const from = 1 + call.keyCount
      rest.push(`${call.keyCount}`, `${call.rest.length - from}`)
      for (let index = from; index < call.rest.length; index++) rest.push(call.rest[index] as string)
    }
    super(batch, keys.length, rest)
    this.calls = calls
  }

  succeed(answers: unknown): void {
    this.calls.forEach((call, index) => {
      const answer = (answers as unknown[])[index] as unknown[]
      if (isErrorOf(answer)) call.end(faultOf(new BatchError(String(answer[0]))))
      else call.answer(answer)
    })
  }

  fail(fault: StoreFault): void {
    for (const call of this.calls) call.end(fault)
  }
}

/** True where one question of several failed: the script says an error as its text; numbers may be texts too. */
export function isErrorOf(answer: readonly unknown[]): boolean {
  return answer.length === 1 && Number.isNaN(Number(answer[0]))
}

/** The error of one question of several. */
export class BatchError extends Error {
  override readonly name = 'ReplyError'
}
