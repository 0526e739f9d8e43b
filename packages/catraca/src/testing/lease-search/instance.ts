import type { LeaseEffect, LeaseEvent, Lot } from '../../stores/lease/events.ts'
import type { Lease } from '../../stores/lease/lease.ts'
import type { Answer, Grant } from './centre.ts'
import { Client } from './client.ts'
import type { MonotonicClock, WallClock } from './clocks.ts'
import type { Admission, Fault } from './log.ts'
import type { Caller, World } from './world.ts'

type Effect = LeaseEffect<Grant, Caller>

/** A question under way. */
interface Question {
  /** By the clock of the instance. */
  readonly sentUs: number
  /** Those who wait for it, and what they need, what is in hand included. */
  readonly waiting: ReadonlySet<Caller>
  readonly needs: number
  /** Units in hand when it was sent. */
  readonly held: number
  /** Units on their way here. */
  granted: number
}

/** A process that asks the centre and decides with what it holds: what the library does around a lease, in true time. */
export class Instance extends Client {
  /** All instances, this one included. */
  private readonly fleet: readonly Instance[]
  private readonly monotonic: MonotonicClock
  private readonly wall: WallClock
  private lease: Lease<Grant, Caller>
  private closing = false
  private question: Question | undefined
  /** Those who wait for the lease, and those who asked the centre by themselves. */
  private readonly waiting = new Set<Caller>()
  private readonly alone = new Set<Caller>()
  /** When the centre last gave something, true time: an answer makes all units in hand last a lease time from then. */
  private grantedUs = -Infinity
  /** What callers were given through this lease, and when. */
  private uses: { readonly us: number; readonly cost: number }[] = []
  /** The answer that is being told to the lease, to which question, and what was in hand then and before. */
  private answer: Answer | undefined
  private answeredTo: Question | undefined
  private heldBefore = 0
  /** Until then, by the clock here, only what callers wait for is asked for: the centre learns. */
  private learnsUntilUs = -Infinity

  constructor(world: World, fleet: readonly Instance[], monotonic: MonotonicClock, wall: WallClock) {
    super(world, fleet.length)
    this.fleet = fleet
    this.monotonic = monotonic
    this.wall = wall
    this.lease = world.trial.makeLease(world.trial.terms)
    this.lookLater(1)
  }

  /** Units that are in hand or on their way and that no caller waits for. */
  get stranded(): number {
    const { held } = this.lease
    return this.question === undefined || this.question.granted === 0
      ? held
      : Math.max(0, held + this.question.granted - this.question.needs)
  }

  get held(): number {
    return this.lease.held
  }

  /** Those who were not told anything yet. */
  get waiters(): number {
    return this.waiting.size + this.alone.size
  }

  arrive(caller: Caller): void {
    const { world, lease } = this
    if (this.closing) return
    const { rule, terms } = world.trial
    if (caller.cost > Math.min(terms.block, rule.limit)) {
      this.askAlone(caller)
      return
    }
    const nowUs = this.nowUs
    const lot = lease.take(caller.cost, nowUs)
    if (lot !== undefined && this.waiting.size > 0) this.blame('machine', 'a caller is served before those who wait')
    world.note(() => `#${this.place} wants ${caller.cost}: ${lot === undefined ? 'waits' : 'held'}`)
    if (lot === undefined) {
      this.waiting.add(caller)
      this.step({ type: 'wait', waiter: caller, cost: caller.cost })
      const { leaving, delayUs, deadlineUs } = world.profile
      if (caller.leaves) this.later(() => this.leave(caller), 0)
      else if (world.chance.passes(leaving))
        this.soon(() => this.leave(caller), world.chance.pick([0, delayUs, deadlineUs]))
    } else {
      this.admit(caller, lot, lease.marks, false)
      this.check()
      if (lease.wantsRefill(nowUs)) this.step({ type: 'refill' })
    }
  }

  /** The process dies; nothing of it is left. */
  crash(downUs: number): void {
    const { world } = this
    const start = (): void => {
      this.restart()
      this.epoch = world.centre.epoch
      this.lookLater(world.chance.share())
    }
    if (!this.fail(downUs, start)) return
    world.counts.crashes++
    world.note(() => `#${this.place} fails`)
    this.waiting.clear()
    this.alone.clear()
    this.question = undefined
  }

  override pause(us: number): boolean {
    const pauses = super.pause(us)
    if (pauses) this.world.counts.pauses++
    if (pauses) this.world.note(() => `#${this.place} pauses for ${us}`)
    return pauses
  }

  /** Gives everything back, and begins anew after a time. */
  close(us: number): void {
    if (this.closing) return
    this.world.counts.closes++
    this.closing = true
    this.step({ type: 'close' })
    const reopen = (): void => {
      if (this.question === undefined && this.waiting.size === 0) this.restart()
      else this.soon(reopen, this.world.profile.deadlineUs)
    }
    this.soon(reopen, us)
  }

  protected override learn(): void {
    this.learnsUntilUs = this.nowUs + this.world.trial.terms.ttlUs
    this.step({ type: 'lost' })
  }

  private get nowUs(): number {
    const { trial, nowUs } = this.world
    return trial.clock === 'monotonic' ? this.monotonic.readUs(nowUs) : this.wall.readUs(nowUs)
  }

  private lookLater(share: number): void {
    this.later(
      () => {
        this.step({ type: 'look' })
        this.lookLater(1)
      },
      Math.floor(this.world.profile.lookUs * share),
    )
  }

  private restart(): void {
    this.closing = false
    this.uses = []
    this.learnsUntilUs = -Infinity
    this.lease = this.world.trial.makeLease(this.world.trial.terms)
  }

  private leave(caller: Caller): void {
    if (!this.waiting.delete(caller)) return
    this.world.counts.left++
    this.step({ type: 'leave', waiter: caller })
  }

  private step(event: LeaseEvent<Grant, Caller>): void {
    const effects = this.lease.step(event, this.nowUs)
    if (event.type !== 'look' || effects.length > 0) this.world.note(() => `#${this.place} ${event.type}`)
    for (const effect of effects) this.follow(effect)
    this.check()
  }

  private follow(effect: Effect): void {
    const { world } = this
    switch (effect.type) {
      case 'ask':
        this.ask(effect.least, effect.most)
        return
      case 'admit':
        if (this.ends(effect.waiter, 'admitted')) this.admit(effect.waiter, effect.lot, effect.marks, effect.asked)
        return
      case 'refuse':
        if (this.ends(effect.waiter, 'refused')) this.refuse(effect.waiter, this.answer, this.heldBefore)
        return
      case 'without':
        if (this.ends(effect.waiter, 'decided without the centre')) world.counts.without++
        return
      case 'return':
        if (effect.units < 1) this.blame('machine', `${effect.units} units go back`)
        world.counts.returned += effect.units
        this.giveBack(effect.lot.grant, effect.units)
        return
      default:
        world.counts.reports++
        this.checkReport(effect.units)
        world.note(() => `#${this.place} reports ${effect.units}`)
        world.send(() => world.centre.report(effect.units, world.nowUs))
    }
  }

  private ask(least: number, most: number): void {
    const { world, waiting, lease } = this
    const { block } = world.trial.terms
    world.counts.trips++
    if (waiting.size === 0) world.counts.refills++
    if (this.question !== undefined) this.blame('machine', 'a second question')
    let needs = 0
    for (const { cost } of waiting) needs += cost
    const beyond = most - Math.max(0, needs - lease.held)
    if (least < 1 || least > most) this.blame('machine', `asks for at least ${least}, at most ${most}`)
    if (beyond > block) this.blame('held', `asks for ${beyond} beyond the waiting, a block is ${block}`)
    if (waiting.size === 0 && lease.held + most > world.bounds.held) {
      this.blame('held', `asks for ${most}, holding ${lease.held}`)
    }
    if (beyond > 0 && this.nowUs < this.learnsUntilUs) this.blame('machine', `asks for ${beyond} more after a loss`)
    const question: Question = { sentUs: this.nowUs, waiting: new Set(waiting), needs, held: lease.held, granted: 0 }
    this.question = question
    this.trip(
      least,
      most,
      () => this.question === question,
      (answer) => {
        question.granted = answer.grant?.units ?? 0
        if (answer.grant === undefined && world.profile.calm) this.checkOthers()
      },
      (answer) => this.answered(question, answer),
    )
  }

  private answered(question: Question, answer: Answer | undefined): void {
    const { trial } = this.world
    this.question = undefined
    this.answer = answer
    this.answeredTo = question
    this.heldBefore = Math.max(question.held, this.lease.held)
    const grant = answer?.grant
    if (answer === undefined) this.step({ type: 'failed' })
    else if (grant === undefined) this.step({ type: 'refused', waitUs: answer.waitUs })
    else {
      this.grantedUs = Math.max(this.grantedUs, grant.atUs)
      const endsUs = trial.endUs(question.sentUs, trial.terms.ttlUs, grant.windowLeftUs)
      const untilUs = trial.endUs(question.sentUs, Infinity, grant.windowLeftUs)
      this.step({ type: 'granted', grant, units: grant.units, endsUs, untilUs })
    }
    this.answer = undefined
  }

  /** Somebody who wants more than a lease deals in. */
  private askAlone(caller: Caller): void {
    const { world } = this
    let open = true
    world.counts.large++
    this.alone.add(caller)
    this.trip(
      caller.cost,
      caller.cost,
      () => open,
      () => {},
      (answer) => {
        open = false
        if (!this.ends(caller, 'answered')) return
        if (answer === undefined) world.counts.without++
        else if (answer.grant === undefined) this.refuse(caller, answer, 0)
        else this.count(answer.grant, answer.grant.atUs, caller.cost, undefined)
      },
    )
  }

  private admit(caller: Caller, lot: Lot<Grant>, marks: number, asked: boolean): void {
    const { world } = this
    const { grant } = lot
    if (asked) {
      // It counts as the answer that was waited for does, though some of the units may be older.
      const charged = this.answer?.grant
      if (!this.answeredTo?.waiting.has(caller)) this.blame('machine', 'a caller counts before it came')
      if (charged === undefined) this.blame('machine', 'a caller is admitted as asked for without an answer')
      else this.count(charged, charged.atUs, caller.cost, lot, marks)
      return
    }
    const endsUs = Math.min(this.grantedUs + world.trial.terms.ttlUs, grant.atUs + grant.windowLeftUs)
    if (world.nowUs >= endsUs) this.blame('late', `a unit is used ${world.nowUs - endsUs} µs after its lease`)
    world.counts.local++
    this.count(grant, world.nowUs, caller.cost, lot, marks, true)
  }

  private count(grant: Grant, us: number, cost: number, lot: Lot<Grant> | undefined, marks = 0, local = false): void {
    const { world } = this
    const epoch = local ? world.centre.epoch : grant.epoch
    const heldFromUs = local ? grant.atUs : undefined
    const { origin } = grant.charge
    const admission: Admission = { us, cost, epoch, origin, heldFromUs, instance: this.place }
    if (lot !== undefined) this.uses.push({ us: world.nowUs, cost })
    world.counts.admissions++
    world.log.push(admission)
    if (!world.chance.passes(world.profile.undone)) return
    const { undoUs, floodUs, deadlineUs } = world.profile
    const within = world.chance.pick([0, deadlineUs, world.trial.terms.ttlUs * 1.5])
    const units = world.chance.passes(0.7) ? cost : world.chance.between(1, cost)
    const undo = (): void => this.undo(admission, lot?.grant ?? grant, lot, marks, units)
    if (undoUs === undefined) this.soon(undo, within)
    else this.later(() => this.soon(undo, floodUs), undoUs)
  }

  private undo(admission: Admission, grant: Grant, lot: Lot<Grant> | undefined, marks: number, units: number): void {
    const { world } = this
    const put = lot === undefined ? 0 : this.lease.putBack(lot, marks, units, this.nowUs)
    world.note(() => `#${this.place} undoes ${units} of ${admission.cost}, puts back ${put}`)
    if (put < 0 || put > units) this.blame('machine', `${put} of ${units} put back`)
    admission.cost -= units
    world.counts.putBack += put
    world.counts.refunded += units - put
    if (units > put) this.giveBack(grant, units - put)
    this.check()
  }

  private refuse(caller: Caller, answer: Answer | undefined, held: number): void {
    const { world } = this
    const { calm, endUs, deadlineUs, lookUs } = world.profile
    const { ttlUs } = world.trial.terms
    world.counts.refusals++
    if (answer === undefined || answer.grant !== undefined) {
      this.blame('machine', 'a caller is refused without a refusal of the centre')
      return
    }
    const { appointment } = caller
    if (appointment !== undefined && answer.atUs >= appointment.atUs && answer.grants === appointment.grants) {
      this.blame('promise', `${caller.cost} units are refused at the time that was named`)
    }
    const atUs = Math.max(world.nowUs, answer.atUs + answer.waitUs)
    // Units in hand may end before that time, and are missing then.
    if (!calm || held > 0 || world.nowUs < world.quietUntilUs) return
    // What is given then must have gone back at the end.
    if (atUs + 3 * ttlUs + 2 * lookUs + 4 * deadlineUs > endUs) return
    world.quietUntilUs = atUs + 2 * deadlineUs
    const again: Caller = { cost: caller.cost, appointment: { atUs, grants: answer.grants } }
    world.agenda.at(atUs, () =>
      this.run(() => {
        world.counts.promiseChecks++
        this.arrive(again)
      }),
    )
  }

  /** Whether it is the first answer that a caller gets. */
  private ends(caller: Caller, how: string): boolean {
    const known = this.waiting.delete(caller) || this.alone.delete(caller)
    if (known) this.world.note(() => `#${this.place} ${how}: ${caller.cost}`)
    else this.blame('machine', `${how}, though nobody waits`)
    return known
  }

  /** Bound on what others hold, at the instant of a refusal. */
  private checkOthers(): void {
    const { world, fleet } = this
    let units = 0
    for (const other of fleet) if (other !== this) units += other.stranded
    world.counts.underChecks++
    if (units > world.bounds.under) this.blame('under', `refused while others hold ${units} of ${world.bounds.under}`)
  }

  /** A new centre is told at least what was used in the last lease time, a thousandth less for clocks that drift. */
  private checkReport(units: number): void {
    const { lease, world } = this
    const sinceUs = world.nowUs - world.trial.terms.ttlUs * 0.999
    const used = this.uses.reduce((sum, one) => (one.us > sinceUs ? sum + one.cost : sum), 0)
    if (units < used + lease.held) this.blame('machine', `reports ${units}, used ${used}, in hand ${lease.held}`)
  }

  /** What is true after every event. */
  private check(): void {
    const { lease, world } = this
    const { held, asking } = lease
    if (!Number.isInteger(held) || held < 0) this.blame('machine', `${held} units in hand`)
    if (held > world.bounds.held) this.blame('held', `${held} units in hand, at most ${world.bounds.held}`)
    if (asking > 0 !== (this.question !== undefined)) this.blame('machine', 'the question under way is another')
    if (this.waiting.size > 0 && asking === 0) this.blame('waiter', 'somebody waits, and nothing is asked')
  }

  private blame(kind: Fault['kind'], detail: string): void {
    this.world.blame(kind, `#${this.place}: ${detail}`)
  }
}
