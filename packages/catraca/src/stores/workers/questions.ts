import { afterPoll } from '../../core/clock.ts'
import { Deadlines, type Waiting } from '../deadlines.ts'
import { StoreFault } from '../remote.ts'
import type { Channel } from './channel.ts'
import { type Answer, type Body, isMessage, type Question } from './wire.ts'

/** What becomes of a question. */
export interface Asker {
  /** Once: what the primary said. */
  answered(numbers: readonly number[]): void
  /** Once: why there is no answer. */
  failed(fault: StoreFault): void
  /** An answer that came after the question was given up. */
  late?(numbers: readonly number[]): void
}

/** A question on its way. */
class Asked implements Waiting {
  done = false
  dueMs = 0
  next: Waiting | undefined = undefined
  private readonly asker: Asker

  constructor(asker: Asker) {
    this.asker = asker
  }

  answer(said: readonly number[] | string): void {
    const late = this.done
    this.done = true
    if (typeof said === 'string') {
      if (!late) this.asker.failed(new StoreFault('refuses', said))
    } else if (late) this.asker.late?.(said)
    else this.asker.answered(said)
  }

  end(fault: StoreFault): void {
    if (this.done) return
    this.done = true
    this.asker.failed(fault)
  }

  expire(): void {
    this.asker.failed(new StoreFault('slow', 'the primary did not answer in time'))
  }
}

/**
 * Sends questions to the process that holds the memory, each within the deadline. All of one turn of the event loop leave
 * in one message, as sending costs by message. Nothing is sent once the other end is gone.
 */
export class Questions {
  private readonly channel: Channel
  private readonly deadlines: Deadlines
  private readonly told: (answer: Answer & readonly [0, ...unknown[]]) => void
  private readonly asked = new Map<number, Asked>()
  private readonly stops: (() => void)[]
  private gathered: Question[] = []
  private lastId = 0
  private gone = false

  constructor(
    channel: Channel,
    timeoutMs: number,
    paused: (pauseMs: number) => void,
    told: (answer: Answer & readonly [0, ...unknown[]]) => void,
  ) {
    this.channel = channel
    this.deadlines = new Deadlines(timeoutMs, paused)
    this.told = told
    this.stops = [
      channel.onMessage((message) => {
        if (isMessage('answers', message)) this.receive(message.list)
        else if (isMessage('closed', message)) this.end()
      }),
      channel.onClose(() => this.end()),
    ]
  }

  ask(body: Body, asker: Asker): void {
    const asked = new Asked(asker)
    if (this.gone) {
      asked.end(new StoreFault('gone', 'the primary is gone'))
      return
    }
    const id = ++this.lastId
    this.asked.set(id, asked)
    this.deadlines.add(asked)
    this.send([id, body])
  }

  /** Says something that has no answer. */
  tell(body: Body): void {
    if (!this.gone) this.send([0, body])
  }

  /** Ends the use of the channel, which stays open. Questions under way end without an answer. */
  close(): void {
    this.flush()
    this.end()
  }

  private send(question: Question): void {
    this.gathered.push(question)
    if (this.gathered.length === 1) afterPoll(() => this.flush())
  }

  private flush(): void {
    const { gathered } = this
    if (gathered.length === 0 || this.gone) return
    this.gathered = []
    try {
      this.channel.send({ catraca: 'asks', list: gathered })
    } catch {
      this.end()
    }
  }

  private receive(answers: readonly Answer[]): void {
    for (const answer of answers) {
      if (answer[0] === 0) {
        this.told(answer as Answer & readonly [0, ...unknown[]])
        continue
      }
      const asked = this.asked.get(answer[0])
      this.asked.delete(answer[0])
      asked?.answer(answer[1] as readonly number[] | string)
    }
    this.deadlines.forget()
  }

  private end(): void {
    if (this.gone) return
    this.gone = true
    this.gathered = []
    for (const stop of this.stops) stop()
    const waiting = [...this.asked.values()]
    this.asked.clear()
    for (const asked of waiting) asked.end(new StoreFault('gone', 'the primary is gone'))
    this.deadlines.forget()
  }
}
