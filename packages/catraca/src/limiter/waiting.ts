import { alarmAfter } from '../core/alarms.ts'
import { monotonicUs } from '../core/clock.ts'
import { type Decision, decide, knowingGivenBack, uncharged } from '../core/decision.ts'
import type { DenialReason } from '../core/reason.ts'
import { Queue } from '../resilience/waiting/queue.ts'
import { type Reservation, Reservations } from '../resilience/waiting/reservations.ts'
import type { Answer, Line, Patient } from './line.ts'
import { onAbort, type Signal } from './signal.ts'
import { aborted, isPassing, longest, refusedAt, withPart } from './wait-answers.ts'

interface Waiter {
  readonly line: Line
  /** Latest start, by the monotonic clock. */
  readonly untilUs: number
  /** How long it may wait from the answer on that is asked for now: what a trip takes is not counted. */
  patienceUs: number
  readonly signal: Signal | undefined
  /** The last answer. */
  last: Decision | undefined
  reservation: Reservation<Waiter> | undefined
  reserved: Decision | undefined
  /** The place in whose queue it stands. */
  queuedAt: string | undefined
  cancel: (() => void) | undefined
  done: boolean
  resolve(decision: Decision): void
  reject(error: unknown): void
  stopListening(): void
}

/**
 * Waits for limits. What passes at once is answered at once. Of the others each sleeps once, for the policy with the
 * longest wait:
 *
 * - one that {@link Line.reserve reserves} charges at once and gives a time. Whoever comes later starts later. At that time
 *   the rest of the stack is taken all or nothing, and a refusal there is final: the reservation is given back.
 * - others have a queue per key, {@link Queue}: the first is asked for when its wait is over and whenever units come back.
 *
 * A wait longer than allowed is refused at once. All sleep on one timer, which keeps the process alive meanwhile.
 */
export class Waiting {
  private readonly maxWaiting: number
  private readonly changed: () => void
  private readonly waiters = new Set<Waiter>()
  private readonly reservations = new Reservations<Waiter>()
  private readonly queues = new Map<string, { readonly queue: Queue<Waiter>; cancel: (() => void) | undefined }>()
  private closed = false

  /** @param maxWaiting Who comes when so many wait is refused, `queue-full`. @param changed A queue came or went. */
  constructor(maxWaiting: number, changed: () => void = () => {}) {
    this.maxWaiting = maxWaiting
    this.changed = changed
  }

  /** How many wait now. */
  get size(): number {
    return this.waiters.size
  }

  /** True while somebody stands in a queue: whoever else asks for that key must come behind. */
  get anyQueue(): boolean {
    return this.queues.size > 0
  }

  /** µs until the first of a queue may pass, at least 1; 0 where nobody stands in one. */
  queueWaitUs(place: string): number {
    const known = this.queues.get(place)
    return known === undefined ? 0 : Math.max(1, known.queue.dueUs - monotonicUs())
  }

  /** Resolves with the decision; rejects only with what a listener threw. */
  wait(line: Line, { maxWaitUs, signal }: Patient): Promise<Decision> {
    if (this.closed || signal?.aborted === true) return Promise.resolve(line.unasked())
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        line,
        untilUs: monotonicUs() + maxWaitUs,
        patienceUs: maxWaitUs,
        signal,
        last: undefined,
        reservation: undefined,
        reserved: undefined,
        queuedAt: undefined,
        cancel: undefined,
        done: false,
        resolve,
        reject,
        stopListening: () => {},
      }
      this.begin(waiter)
      if (signal !== undefined && !waiter.done) waiter.stopListening = onAbort(signal, () => this.abort(waiter))
    })
  }

  /** Units may have come back at a place: the first in its queue is asked for. */
  freed(place: string): void {
    if (this.queues.has(place)) this.serve(place)
  }

  /** The state of a place was forgotten: all who wait there are asked for anew, in their order. */
  restart(place: string): void {
    this.freed(place)
    for (const waiter of this.reservations.waitingAt(place)) {
      waiter.cancel?.()
      if (waiter.reservation !== undefined) this.reservations.leave(waiter.reservation)
      waiter.reservation = undefined
      waiter.reserved = undefined
      waiter.patienceUs = Math.max(0, waiter.untilUs - monotonicUs())
      this.begin(waiter)
    }
  }

  /** Ends all waits: `aborted`. */
  close(): void {
    this.closed = true
    for (const waiter of [...this.waiters].toReversed()) this.abort(waiter)
  }

  /** Asks for the first time. */
  private begin(waiter: Waiter): void {
    const { line } = waiter
    if (line.shaper !== undefined) {
      this.reserve(waiter, line.shaper)
      return
    }
    const queued = this.anyQueue ? line.places.find((place) => this.queues.has(place)) : undefined
    if (queued === undefined) {
      void this.heard(
        waiter,
        () => line.take(),
        (decision) => this.answered(waiter, decision),
      )
      return
    }
    void this.heard(
      waiter,
      () => line.peek(),
      (decision) => {
        waiter.last = decision
        this.join(waiter, queued, this.queueWaitUs(queued), line.places.indexOf(queued))
      },
    )
  }

  private answered(waiter: Waiter, decision: Decision): void {
    const { line } = waiter
    if (waiter.done) {
      if (decision.allowed) void line.giveBack(decision)
      return
    }
    waiter.last = decision
    const place = longest(decision)
    const waits = !decision.allowed && decision.waitUs < Infinity && isPassing(decision.reason)
    const patience = waits ? line.patience(place) : 'refuse'
    const holds = decision.source.rule.holds
    const tooLong = !holds && decision.waitUs > waiter.patienceUs
    if (patience === 'refuse' || tooLong) this.finish(waiter, decision)
    else if (patience === 'reserve') this.reserve(waiter, place)
    else this.join(waiter, line.places[place] as string, decision.waitUs, place)
  }

  private reserve(waiter: Waiter, place: number): void {
    const { line } = waiter
    if (this.closed || this.isFull(waiter)) {
      this.refuseAt(waiter, place, this.closed ? 'aborted' : 'queue-full')
      return
    }
    this.waiters.add(waiter)
    void this.heard(
      waiter,
      () => line.reserve(place, waiter.patienceUs),
      (reserved) => {
        if (waiter.done) {
          if (reserved.allowed) void line.giveBack(reserved)
        } else if (!reserved.allowed) this.refuseAt(waiter, place, undefined, reserved)
        else this.sleep(waiter, place, reserved)
      },
    )
  }

  private sleep(waiter: Waiter, place: number, reserved: Decision): void {
    waiter.reserved = reserved
    if (reserved.waitUs === 0) {
      this.wake(waiter, place, reserved)
      return
    }
    const startUs = monotonicUs() + reserved.waitUs
    waiter.reservation = this.reservations.add(waiter.line.places[place] as string, waiter, startUs)
    waiter.cancel = alarmAfter(reserved.waitUs, () => this.wake(waiter, place, reserved))
  }

  /** The time has come: the rest of the stack decides. */
  private wake(waiter: Waiter, place: number, reserved: Decision): void {
    const { line, reservation } = waiter
    const behind = reservation === undefined ? 0 : this.reservations.levelsBehind(reservation)
    if (reservation !== undefined) this.reservations.leave(reservation)
    waiter.reservation = undefined
    if (line.places.length === 1) {
      this.finish(waiter, reserved)
      return
    }
    void this.heard(
      waiter,
      () => line.takeRest(place),
      (decision) => {
        const { stack } = decision
        if (waiter.done) {
          if (decision.allowed) void line.giveBack(decision)
          return
        }
        if (decision.allowed) {
          this.finish(waiter, decide(stack.toSpliced(place, 0, reserved), 0))
          return
        }
        waiter.reserved = undefined
        void line.giveBack(knowingGivenBack(reserved, behind))
        this.finish(waiter, decide(stack.toSpliced(place, 0, uncharged(reserved)), 0))
      },
    )
  }

  /** Stands in the queue of a place, whose first may pass after `waitUs` if this one is it. */
  private join(waiter: Waiter, place: string, waitUs: number, at: number): void {
    const nowUs = monotonicUs()
    const known = this.queues.get(place)
    const holds = waiter.last?.stack[at]?.source.rule.holds === true
    // Behind a first one that passes later than this one may wait, it would wait in vain.
    if (known !== undefined && !holds && known.queue.dueUs > waiter.untilUs) {
      this.refuseAt(waiter, at, undefined)
      return
    }
    if (this.isFull(waiter) || waiter.untilUs <= nowUs) {
      this.refuseAt(waiter, at, waiter.untilUs <= nowUs ? undefined : 'queue-full')
      return
    }
    this.waiters.add(waiter)
    waiter.queuedAt = place
    waiter.cancel = alarmAfter(waiter.untilUs - nowUs, () => this.expire(waiter, at))
    if (known !== undefined) {
      known.queue.join(waiter)
      return
    }
    const line = { queue: new Queue<Waiter>(nowUs + waitUs), cancel: undefined }
    line.queue.join(waiter)
    this.queues.set(place, line)
    this.changed()
    this.postpone(place, waitUs)
  }

  /** Asks for the first of a queue, and for those behind it as long as they pass. */
  private serve(place: string): void {
    for (let known = this.queues.get(place); known !== undefined; known = this.queues.get(place)) {
      const { queue } = known
      const waiter = queue.first
      if (queue.asking || waiter === undefined) return
      queue.asking = true
      let more: boolean | undefined
      const heard = this.heard(
        waiter,
        () => waiter.line.take(),
        (decision) => {
          more = this.served(place, waiter, decision)
        },
      )
      if (heard !== undefined) {
        void heard.then(() => {
          queue.asking = false
          if (more !== false) this.serve(place)
        })
        return
      }
      queue.asking = false
      if (more === false) return
    }
  }

  /** The answer for the first of a queue. True when the next is to be asked for. */
  private served(place: string, waiter: Waiter, decision: Decision): boolean {
    if (waiter.done) {
      if (decision.allowed) void waiter.line.giveBack(decision)
      return true
    }
    waiter.last = decision
    const { waitUs } = decision
    const nowUs = monotonicUs()
    const final =
      decision.allowed ||
      waitUs === Infinity ||
      !isPassing(decision.reason) ||
      (!decision.source.rule.holds && nowUs + waitUs > waiter.untilUs)
    if (!final) {
      this.postpone(place, waitUs)
      return false
    }
    this.finish(waiter, decision)
    return true
  }

  /** The first of a queue is asked for again after `waitUs`. */
  private postpone(place: string, waitUs: number): void {
    const known = this.queues.get(place)
    if (known === undefined) return
    known.cancel?.()
    known.queue.dueUs = monotonicUs() + waitUs
    known.cancel = alarmAfter(waitUs, () => this.serve(place))
  }

  /** One has waited as long as it may. The first of a queue is asked for once more: its time may be just this. */
  private expire(waiter: Waiter, at: number): void {
    const place = waiter.queuedAt as string
    const known = this.queues.get(place)
    const isFirst = known?.queue.first === waiter && !known.queue.asking
    if (!isFirst) {
      void this.heard(
        waiter,
        () => waiter.line.peek(),
        (decision) => {
          if (waiter.done) return
          waiter.last = decision
          this.refuseAt(waiter, at, undefined)
        },
      )
      return
    }
    void this.heard(
      waiter,
      () => waiter.line.take(),
      (decision) => {
        if (waiter.done) {
          if (decision.allowed) void waiter.line.giveBack(decision)
          return
        }
        this.finish(waiter, decision)
      },
    )
  }

  /**
   * Refuses for a policy that others wait for, or that does not reserve: what is known of the stack, with that policy's
   * refusal in its place.
   */
  private refuseAt(waiter: Waiter, at: number, reason: DenialReason | undefined, refused?: Decision): void {
    const { last, line } = waiter
    if (last === undefined && line.places.length > 1) {
      void this.heard(
        waiter,
        () => line.peek(),
        (decision) => {
          waiter.last = decision
          if (!waiter.done) this.refuseAt(waiter, at, reason, refused)
        },
      )
      return
    }
    const known = last ?? refused ?? line.unasked()
    const current = refused === undefined ? known : withPart(known, at, refused)
    this.finish(waiter, refusedAt(current, at, reason, this.queueWaitUs(line.places[at] as string)))
  }

  private abort(waiter: Waiter): void {
    if (waiter.done) return
    const { line, last, reserved, reservation } = waiter
    const at = reservation === undefined ? -1 : line.places.indexOf(reservation.place)
    const known = last !== undefined && reserved !== undefined ? withPart(last, at, reserved) : (last ?? reserved)
    const decision = known === undefined ? line.unasked() : aborted(known)
    waiter.reservation = undefined
    waiter.reserved = undefined
    this.finish(waiter, decision)
    if (reservation !== undefined && reserved !== undefined) this.giveBack(reservation, reserved)
    else if (reserved !== undefined) void line.giveBack(reserved)
  }

  /** Gives an aborted reservation back, and those before it that could not be while it stood behind them. */
  private giveBack(first: Reservation<Waiter>, charged: Decision): void {
    const { reservations } = this
    reservations.abort(first)
    this.aborted.set(first, charged)
    for (let next: Reservation<Waiter> | undefined = first; next !== undefined; ) {
      const entry: Reservation<Waiter> = next
      const decision = this.aborted.get(entry) as Decision
      const { unit } = decision.source.rule.script
      const answer = entry.ticket.line.giveBack(knowingGivenBack(decision, reservations.ask(entry)))
      if (answer instanceof Promise) {
        void answer.then((units) => {
          const after = reservations.gaveBack(entry, Math.round(units * unit))
          if (after !== undefined) this.giveBack(after, this.aborted.get(after) as Decision)
        })
        return
      }
      next = reservations.gaveBack(entry, Math.round(answer * unit))
    }
  }

  /** What aborted reservations charged. */
  private readonly aborted = new WeakMap<Reservation<Waiter>, Decision>()

  private isFull(waiter: Waiter): boolean {
    return this.waiters.size >= this.maxWaiting && !this.waiters.has(waiter)
  }

  private finish(waiter: Waiter, decision: Decision): void {
    if (waiter.done) return
    waiter.done = true
    waiter.cancel?.()
    waiter.stopListening()
    this.waiters.delete(waiter)
    waiter.resolve(decision)
    const { queuedAt } = waiter
    if (queuedAt === undefined) return
    waiter.queuedAt = undefined
    const known = this.queues.get(queuedAt)
    if (known === undefined) return
    const next = known.queue.leave(waiter)
    if (known.queue.size === 0) {
      known.cancel?.()
      this.queues.delete(queuedAt)
      this.changed()
    } else if (next && !known.queue.asking && !this.closed) this.serve(queuedAt)
  }

  /** Goes on with an answer at once, or when it comes: then the promise ends. What is thrown meanwhile is the waiter's. */
  private heard(
    waiter: Waiter,
    ask: () => Answer<Decision>,
    next: (decision: Decision) => void,
  ): Promise<void> | undefined {
    const fail = (error: unknown): void => {
      waiter.reject(error)
      if (!waiter.done) this.finish(waiter, waiter.last ?? waiter.line.unasked())
    }
    try {
      const answer = ask()
      if (answer instanceof Promise) return answer.then(next).catch(fail)
      next(answer)
    } catch (error) {
      fail(error)
    }
    return undefined
  }
}
