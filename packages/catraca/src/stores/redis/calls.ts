import { afterPoll, elapsedMs, later } from '../../core/clock.ts'
import { StoreFault } from '../remote.ts'
import type { Wire } from './client.ts'
import { Deadlines, type Waiting } from './deadlines.ts'
import { faultOf, isReadOnly, isUnknownScript } from './fault.ts'
import { batch } from './script.generated.ts'

/** A script as it is stored in the server, and its text. */
export interface Script {
  readonly sha: string
  readonly text: string
}

/** Questions of one turn that travel together at most: so many take the server about 200 µs, during which others wait. */
const maxBatch = 64
/** How often held calls look whether the client is connected. */
const connectStepMs = 2

/** One call of a script on its way. */
export class Call implements Waiting {
  done = false
  dueMs = 0
  /** True once it was sent again: after a lost script or by way of a new primary. */
  again = false
  readonly script: Script
  readonly keys: readonly string[]
  readonly args: readonly string[]
  private readonly resolve: (answer: unknown) => void
  private readonly reject: (fault: StoreFault) => void
  private readonly late: ((answer: unknown) => void) | undefined

  constructor(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    resolve: (answer: unknown) => void,
    reject: (fault: StoreFault) => void,
    late?: (answer: unknown) => void,
  ) {
    this.script = script
    this.keys = keys
    this.args = args
    this.resolve = resolve
    this.reject = reject
    this.late = late
  }

  answer(answer: unknown): void {
    if (this.done) this.late?.(answer)
    else {
      this.done = true
      this.resolve(answer)
    }
  }

  fail(fault: StoreFault): void {
    if (this.done) return
    this.done = true
    this.reject(fault)
  }

  expire(): void {
    this.reject(new StoreFault('slow', 'the store did not answer in time'))
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
      call.fail(new StoreFault('gone', 'the client of the store is not connected'))
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
      else call.fail(new StoreFault('gone', 'the client of the store could not connect'))
    }
  }

  private write(call: Call): void {
    if (!this.batches || call.script === batch) this.transmit(call)
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
    for (let from = 0; from < gathered.length; from += maxBatch) {
      const calls = gathered.slice(from, from + maxBatch)
      const [first] = calls
      this.transmit(calls.length === 1 ? (first as Call) : together(calls))
    }
  }

  private transmit(call: Call): void {
    let sent: Promise<unknown>
    try {
      sent = this.wire.evalsha(call.script.sha, call.keys, call.args)
    } catch (error) {
      call.fail(faultOf(error))
      return
    }
    sent.then(
      (answer) => call.answer(answer),
      (error: unknown) => this.failed(call, error),
    )
  }

  private failed(call: Call, error: unknown): void {
    if (call.done) return
    if (!call.again && isUnknownScript(error)) {
      call.again = true
      this.wire.eval(call.script.text, call.keys, call.args).then(
        (answer) => call.answer(answer),
        (second: unknown) => call.fail(faultOf(second)),
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
    } else call.fail(faultOf(error))
  }

  private retry(call: Call, error: unknown): void {
    later(connectStepMs, () => {
      if (call.done) return
      if (this.wire.connection === 'ready') this.transmit(call)
      else if (call.dueMs - elapsedMs() > connectStepMs) this.retry(call, error)
      else call.fail(faultOf(error))
    })
  }
}

/** Several calls of the same script as one, in which none waits for the success of another. */
function together(calls: readonly Call[]): Call {
  const args = [`${calls.length}`]
  for (const call of calls) args.push(`${call.keys.length}`, `${call.args.length}`, ...call.args)
  const one = new Call(
    batch,
    calls.flatMap(({ keys }) => keys),
    args,
    (answers) => {
      calls.forEach((call, index) => {
        const answer = (answers as unknown[])[index] as unknown[]
        if (typeof answer?.[0] === 'string') call.fail(faultOf(new BatchError(answer[0])))
        else call.answer(answer)
      })
    },
    (fault) => {
      for (const call of calls) call.fail(fault)
    },
    (answers) => {
      calls.forEach((call, index) => call.answer((answers as unknown[])[index]))
    },
  )
  return one
}

/** The error of one question of a batch. */
class BatchError extends Error {
  override readonly name = 'ReplyError'
}
