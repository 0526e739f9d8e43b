import type { LeaseTerms } from '../../core/decision.ts'
import type { LeaseEffect, LeaseEvent, Lot } from './events.ts'
import { mostHeld, refillTenths } from './terms.ts'

/** After a question that was not answered, or not met, so long passes before units are asked for that nobody waits for. */
const pauseUs = 100_000
/** A key that uses up an answer in less time needs the next one at once. */
const fastUs = 2_000

interface Waiting<W> {
  readonly waiter: W
  readonly cost: number
  /** True when the question under way was sent on its behalf. */
  asked: boolean
}

/**
 * The units of one key that one instance holds, and those who wait for more. A pure machine: time comes with every event,
 * µs of a clock that never goes back.
 *
 * At most one question is under way. It asks for what the waiting callers need, and at least for what the key used
 * during one lease time, at most a block; so many callers at once take one trip, and a key that is asked for once
 * strands nothing. When three tenths of that are left the next is asked for while callers go on. An answer makes what
 * is in hand last as long as what it brings, and a lease that was used since the last one asks in its last quarter; so a
 * key in use keeps its units, and others go back two lease times after their last use at the latest.
 *
 * Callers are served in the order in which they came. Once they are, at most {@link mostHeld} units stay; the others go
 * back. For one lease time after the centre lost its memory nothing is asked for but what callers wait for.
 */
export class Lease<G, W> {
  private readonly terms: LeaseTerms
  private readonly refillTenths: number
  private lots: Lot<G>[] = []
  private head: Lot<G> | undefined
  /** Lots that ended before their units were used, until somebody looks. */
  private over: Lot<G>[] = []
  private units = 0
  private waiting: Waiting<W>[] = []
  private least = 0
  /** Units that the question under way may bring beyond what those who wait for it need. */
  private coming = 0
  private low = -1
  private refillFromUs = -Infinity
  /** When the last answer came. */
  private answeredUs = -Infinity
  private learnsUntilUs = -Infinity
  private used = 0
  private usedBefore = 0
  /** Counts questions and answers: what was taken before the last one cannot be put back. */
  marks = 0
  /** {@link used} when the question under way was sent. */
  private usedWhenAsked = 0
  private periodEndsUs = -Infinity
  /** True when units were taken since the last answer. */
  private active = false
  private closed = false

  /** @param tenths Of the block, at which the next is asked for in the background; 0: only when somebody waits. */
  constructor(terms: LeaseTerms, tenths = refillTenths) {
    this.terms = terms
    this.refillTenths = tenths
  }

  /** Units in hand, those of leases that ended unnoticed included. */
  get held(): number {
    return this.units
  }

  /** Units asked for by the question under way, at least; 0 when there is none. */
  get asking(): number {
    return this.least
  }

  /** True when nothing is held, asked for or remembered: who drops the lease then loses nothing. */
  get isIdle(): boolean {
    return this.lots.length === 0 && this.waiting.length === 0 && this.least === 0 && this.used + this.usedBefore === 0
  }

  /** Takes units that are in hand; undefined when there are not enough, or others wait for them. */
  take(cost: number, nowUs: number): Lot<G> | undefined {
    const { head } = this
    if (head === undefined || head.left < cost || this.hasEnded(head, nowUs) || this.waiting.length > 0) {
      return this.takeSlowly(cost, nowUs)
    }
    head.left -= cost
    this.units -= cost
    this.used += cost
    this.active = true
    return head
  }

  /** The lot from which units are taken first. */
  get first(): Lot<G> | undefined {
    return this.head
  }

  /** Units of the first lot that can be taken without {@link Lease.take}: none that is due to others or makes it ask. */
  get spare(): number {
    const { head, low } = this
    if (head === undefined || this.waiting.length > 0) return 0
    return this.least > 0 || low < 0 ? head.left : Math.max(0, Math.min(head.left, this.units - low - 1))
  }

  /** Accounts for units that were taken so. */
  spend(units: number): void {
    ;(this.head as Lot<G>).left -= units
    this.units -= units
    this.used += units
    this.active = true
  }

  /** True when it is time for {@link LeaseEvent} `refill`. */
  wantsRefill(nowUs: number): boolean {
    return this.units <= this.low && this.least === 0 && nowUs >= this.refillFromUs
  }

  /**
   * Takes back units that were taken and not used, where their lease lasts and nothing was asked for or came since they
   * were taken; says how many. The others are the centre's: beside what came since they would be more than a lease may be.
   *
   * @param marks {@link Lease.marks} when they were taken.
   */
  putBack(lot: Lot<G>, marks: number, units: number, nowUs: number): number {
    if (this.closed || marks !== this.marks || this.hasEnded(lot, nowUs) || !this.lots.includes(lot)) return 0
    const given = Math.max(0, Math.min(units, mostHeld(this.terms.block) - this.units - this.coming))
    lot.left += given
    this.units += given
    return given
  }

  step(event: LeaseEvent<G, W>, nowUs: number): LeaseEffect<G, W>[] {
    const effects: LeaseEffect<G, W>[] = []
    this.rotate(nowUs)
    this.clear(nowUs)
    switch (event.type) {
      case 'wait':
        this.waiting.push({ waiter: event.waiter, cost: event.cost, asked: false })
        break
      case 'leave':
        this.waiting = this.waiting.filter(({ waiter }) => waiter !== event.waiter)
        break
      case 'granted':
        this.answered()
        this.accept(event, nowUs, effects)
        break
      case 'refused':
        this.refuse(event.waitUs, nowUs, effects)
        break
      case 'failed':
        this.answered()
        this.refillFromUs = nowUs + pauseUs
        for (const { waiter, cost } of this.waiting) effects.push({ type: 'without', waiter, cost })
        this.waiting = []
        break
      case 'lost':
        this.learnsUntilUs = nowUs + this.terms.ttlUs
        effects.push({ type: 'report', units: this.units + this.used + this.usedBefore })
        break
      case 'close':
        this.closed = true
        break
      default:
    }
    this.serve(nowUs, effects)
    this.giveUp(effects)
    this.ask(event.type, nowUs, effects)
    return effects
  }

  /** Whether the units of a lot may not be used any more. */
  protected hasEnded(lot: Lot<G>, nowUs: number): boolean {
    return nowUs >= lot.endsUs
  }

  /** The most units that stay once the waiting are served. */
  protected get most(): number {
    return this.closed ? 0 : mostHeld(this.size)
  }

  /** Units of a block of this key: what it used during one lease time. */
  private get size(): number {
    let used = this.used
    for (const { cost } of this.waiting) used += cost
    return Math.min(this.terms.block, Math.max(1, used, this.usedBefore))
  }

  private takeSlowly(cost: number, nowUs: number): Lot<G> | undefined {
    if (this.waiting.length > 0) return undefined
    this.clear(nowUs)
    return this.units < cost ? undefined : this.consume(cost)
  }

  /** Takes from the oldest lots on; gives the last one. */
  private consume(cost: number): Lot<G> {
    let missing = cost
    let last = this.lots[0] as Lot<G>
    for (let at = 0; missing > 0; at++) {
      last = this.lots[at] as Lot<G>
      const part = Math.min(missing, last.left)
      last.left -= part
      missing -= part
    }
    this.units -= cost
    this.used += cost
    this.active = true
    return last
  }

  /** Forgets lots of which nothing is left, and puts those aside that ended. Most often there are none. */
  private clear(nowUs: number): void {
    const { lots } = this
    // The last one is kept for what is put back.
    const last = lots.length - 1
    let stale = false
    for (let at = 0; at <= last && !stale; at++) {
      const lot = lots[at] as Lot<G>
      stale = this.hasEnded(lot, nowUs) || (lot.left === 0 && at < last)
    }
    if (stale) {
      this.lots = lots.filter((lot, at) => {
        if (!this.hasEnded(lot, nowUs)) return lot.left > 0 || at === last
        this.units -= lot.left
        if (lot.left > 0) this.over.push(lot)
        return false
      })
    }
    this.head = this.lots[0]
  }

  /** From here on only what is taken from now on can be put back. */
  private mark(): void {
    this.marks++
    this.usedWhenAsked = this.used
  }

  private answered(): void {
    this.least = 0
    this.coming = 0
  }

  private rotate(nowUs: number): void {
    const { ttlUs } = this.terms
    if (nowUs < this.periodEndsUs) return
    this.usedBefore = nowUs < this.periodEndsUs + ttlUs ? this.used : 0
    this.usedWhenAsked -= this.used
    this.used = 0
    this.periodEndsUs = nowUs + ttlUs
  }

  private accept(
    { grant, units, endsUs, untilUs = endsUs }: Omit<LeaseEvent<G, W> & { type: 'granted' }, 'type'>,
    nowUs: number,
    effects: LeaseEffect<G, W>[],
  ): void {
    const lot: Lot<G> = { grant, left: units, endsUs, untilUs }
    const taken = this.used - this.usedWhenAsked
    for (const one of this.lots) one.endsUs = Math.max(one.endsUs, Math.min(one.untilUs, endsUs))
    this.active = false
    this.answeredUs = nowUs
    this.lots.push(lot)
    this.units += units
    // First those for whom it was asked, also when the lease has ended on its way: they count at the centre.
    this.admit(effects, true)
    for (const one of this.waiting) one.asked = false
    this.clear(nowUs)
    // What was asked for callers who left must not be used by others: in hand, or beside what others took since, it
    // would be more than a lease may be.
    const excess = this.units - Math.max(this.most - taken, 0)
    if (excess > 0 && this.lots.includes(lot)) {
      const back = Math.min(excess, lot.left)
      lot.left -= back
      this.units -= back
      effects.push({ type: 'return', lot, units: back })
    }
    this.mark()
    this.low = this.size < 2 ? -1 : Math.floor((this.refillTenths * this.size) / 10)
    if (this.refillTenths === 0) this.low = -1
  }

  private refuse(waitUs: number, nowUs: number, effects: LeaseEffect<G, W>[]): void {
    const missing = this.least
    this.answered()
    this.refillFromUs = nowUs + Math.max(pauseUs, Math.min(waitUs, this.terms.ttlUs))
    // The wait is that of these. Who needs another number, because others left or units ended meanwhile, asks anew.
    this.waiting = this.waiting.filter((one) => {
      const same = one.cost - this.units === missing
      if (same) effects.push({ type: 'refuse', waiter: one.waiter, cost: one.cost })
      return !same
    })
    for (const one of this.waiting) one.asked = false
  }

  /** Serves callers from what is in hand while it lasts. */
  private serve(nowUs: number, effects: LeaseEffect<G, W>[]): void {
    if (this.least > 0) return
    this.clear(nowUs)
    this.admit(effects, false)
  }

  private admit(effects: LeaseEffect<G, W>[], asked: boolean): void {
    while (this.waiting.length > 0) {
      const first = this.waiting[0] as Waiting<W>
      if (first.cost > this.units || (asked && !first.asked)) return
      this.waiting.shift()
      const { waiter, cost } = first
      effects.push({ type: 'admit', waiter, cost, lot: this.consume(cost), marks: this.marks, asked })
    }
  }

  /** Gives back what ended, and all at the end. */
  private giveUp(effects: LeaseEffect<G, W>[]): void {
    if (this.over.length > 0) {
      for (const lot of this.over) effects.push({ type: 'return', lot, units: lot.left })
      this.over = []
    }
    if (!this.closed || this.waiting.length > 0) return
    for (const lot of this.lots) if (lot.left > 0) effects.push({ type: 'return', lot, units: lot.left })
    this.lots = []
    this.head = undefined
    this.units = 0
  }

  private ask(cause: LeaseEvent<G, W>['type'], nowUs: number, effects: LeaseEffect<G, W>[]): void {
    if (this.least > 0) return
    const [first] = this.waiting
    const learns = nowUs < this.learnsUntilUs
    if (first !== undefined) {
      let missing = -this.units
      for (const one of this.waiting) {
        missing += one.cost
        one.asked = true
      }
      const most = learns || this.closed ? missing : Math.max(this.size, missing)
      this.least = first.cost - this.units
      this.coming = most - missing
      this.mark()
      effects.push({ type: 'ask', least: this.least, most, soon: true })
      return
    }
    if (learns || this.closed) return
    const refills = cause === 'refill' && this.wantsRefill(nowUs)
    if (!refills && !(cause === 'look' && this.wantsRenewal(nowUs))) return
    const most = Math.min(this.most - this.units, refills ? this.size : Math.max(1, this.size - this.units))
    if (most < 1) return
    this.least = 1
    this.coming = most
    this.mark()
    effects.push({ type: 'ask', least: 1, most, soon: nowUs - this.answeredUs < fastUs })
  }

  /** True when units that are in use would soon go back. */
  private wantsRenewal(nowUs: number): boolean {
    const { head } = this
    if (head === undefined || !this.active || this.units === 0 || nowUs < this.refillFromUs) return false
    return head.endsUs < head.untilUs && head.endsUs - nowUs <= this.terms.ttlUs / 4
  }
}
