import { later, monotonicUs } from '../../core/clock.ts'
import { Decision, decide, degraded, peeked, type Source } from '../../core/decision.ts'
import type { Health, RemoteHooks, RemoteLedger, RemoteStore, StoreFailureOptions } from '../remote.ts'
import type { LeaseEffect } from './events.ts'
import type { Caller, Grant, KeyLease } from './key-lease.ts'
import { LeaseBook } from './lease-book.ts'
import { LeasedDecision, leasedDecision, refusalOf, withHeld } from './leased-decision.ts'
import { leaseEndUs, outlastsRule, windowLeftUs } from './terms.ts'

/** Looks per lease time, and the part of all leases that one look passes over. */
const looks = { perTtl: 20, share: 1 / 4 } as const

/**
 * A limiter's states in a remote store of which some are leased: what an instance holds is decided here, at once; for the
 * rest the store is asked. A thin wrapper: who gets what is decided by {@link Lease}, one per key.
 *
 * In a stack units in hand are taken first, then the store is asked for what is missing and for policies without a lease;
 * where one refuses, the others get back what they gave. Without the store held units are spent first; then the declared
 * mode of the policy decides.
 */
export class LeasedLedger implements RemoteLedger {
  private readonly inner: RemoteLedger
  private policies: readonly Source[]
  /** Undefined for a policy without a lease. */
  private books: (LeaseBook | undefined)[] = []
  private stopLooking: (() => void) | undefined
  /** What counts again at a store that lost its memory, until the store takes it. */
  private due: { readonly lease: KeyLease; readonly units: number }[] = []
  private closed = false

  /** Opens the store. Throws as `RemoteStore.open`. */
  constructor(
    store: RemoteStore,
    name: string,
    policies: readonly Source[],
    hooks: RemoteHooks,
    failure: StoreFailureOptions,
  ) {
    this.policies = policies
    this.books = booksOf(policies)
    const own: RemoteHooks = {
      ...boundHooks(hooks),
      lost: (kind, decisionsAtRisk) => {
        // A replica that took over knows what the primary knew.
        if (kind !== 'failover') {
          this.due = []
          this.forEach((lease) => this.tell(lease, { type: 'lost' }))
        }
        hooks.lost(kind, decisionsAtRisk)
      },
      recovered: (durationMs, decisions) => {
        for (const { lease, units } of this.due.splice(0)) this.report(lease, units)
        hooks.recovered(durationMs, decisions)
      },
      closed: () => {
        this.forget()
        hooks.closed()
      },
    }
    this.inner = store.open(name, policies, own, failure)
  }

  get health(): Health {
    return this.inner.health
  }

  tryApply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Decision | undefined {
    if (members.length === 1) {
      const book = this.books[members[0] as number]
      const held = book && this.takeHeld(book, keys[0] as string, tags?.[0], costs[0] as number)
      return held ?? this.inner.tryApply(members, keys, tags, costs)
    }
    return this.tryStack(members, keys, tags, costs)
  }

  apply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
  ): Promise<Decision> {
    if (!members.some((member) => this.books[member] !== undefined)) {
      return this.inner.apply(members, keys, tags, costs, charge)
    }
    if (!charge) return this.peek(members, keys, tags, costs)
    if (members.length > 1) return this.applyStack(members, keys, tags, costs)
    return Promise.resolve(this.obtain(members[0] as number, keys[0] as string, tags?.[0], costs[0] as number))
  }

  grant: RemoteLedger['grant'] = (...question) => this.inner.grant(...question)

  /** What is in hand passes at once; a reservation is exact, so the store makes it. */
  async reserve(
    member: number,
    key: string,
    tag: string | undefined,
    cost: number,
    maxWaitUs: number,
  ): Promise<Decision> {
    const book = this.books[member]
    const held = book && this.takeHeld(book, key, tag, cost)
    return held ?? this.inner.reserve(member, key, tag, cost, maxWaitUs)
  }

  /** What is in hand and what the store has are not told together: what is in hand serves who wants no more. */
  async applyUpTo(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    most: number,
  ): Promise<Decision> {
    const costs = members.map(() => most)
    return this.tryStack(members, keys, tags, costs) ?? this.inner.applyUpTo(members, keys, tags, most)
  }

  /** What a request cost more than was in hand for it is charged at the store. */
  async settle(decision: Decision, units: number): Promise<number> {
    const { charged } = decision
    if (!(decision instanceof LeasedDecision)) return this.inner.settle(decision, units)
    if (units <= charged) return units === charged ? 0 : this.refund(decision, charged - units)
    const { decision: granted } = decision.lot.grant
    return this.inner.settle(granted, granted.charged + units - charged)
  }

  declared: RemoteLedger['declared'] = (...question) => this.inner.declared(...question)

  charge: RemoteLedger['charge'] = (...units) => this.inner.charge(...units)

  async refund(decision: Decision, units: number): Promise<number> {
    if (!(decision instanceof LeasedDecision)) return this.inner.refund(decision, units)
    const { lease, lot, marks } = decision
    const wanted = Math.min(units, decision.charged)
    const given = lease.with(() => lease.putBack(lot, marks, wanted, monotonicUs()))
    if (given === wanted || monotonicUs() >= lot.grant.countsUntilUs) return given
    return given + (await this.inner.refund(lot.grant.decision, wanted - given))
  }

  renew(decision: Decision): Promise<boolean> {
    return this.inner.renew(decision)
  }

  reset(member: number, key: string, tag: string | undefined): Promise<void> {
    this.drop(member, key, tag)
    return this.inner.reset(member, key, tag)
  }

  block(member: number, key: string, tag: string | undefined, us: number): Promise<void> {
    this.drop(member, key, tag)
    return this.inner.block(member, key, tag, us)
  }

  replace(policies: readonly Source[], failure: StoreFailureOptions): void {
    for (const lease of this.giveAllBack()) {
      const place = placeOf(policies, lease.source)
      // Nobody counts them any more: who waits is decided by the policy that goes.
      if (place < 0) this.tell(lease, { type: 'failed' })
      lease.member = place
    }
    this.policies = policies
    this.books = booksOf(policies)
    this.inner.replace(policies, failure)
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.giveAllBack()
    this.stopLooking?.()
    this.inner.close()
  }

  /** Takes units in hand, and asks for more when few are left. */
  private takeHeld(book: LeaseBook, key: string, tag: string | undefined, cost: number): Decision | undefined {
    const slot = book.slotOf(key, tag)
    if (slot < 0) return undefined
    const now = monotonicUs()
    return book.take(slot, key, cost, now) ?? this.takeSlowly(book.lease(slot), key, cost, now)
  }

  private takeSlowly(lease: KeyLease, key: string, cost: number, now: number): Decision | undefined {
    return lease.with(() => {
      const lot = lease.take(cost, now)
      if (lot === undefined) return undefined
      const decision = leasedDecision(lease, lot, lease.marks, key, cost, now)
      if (lease.wantsRefill(now)) this.run(lease, lease.step({ type: 'refill' }, now), now)
      return decision
    })
  }

  private tryStack(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Decision | undefined {
    const leased = members.filter((member) => this.books[member] !== undefined).length
    if (leased === 0) return this.inner.tryApply(members, keys, tags, costs)
    if (leased < members.length) return undefined
    const parts: Decision[] = []
    for (let at = 0; at < members.length; at++) {
      const key = keys[at] as string
      const held = this.takeHeld(this.books[members[at] as number] as LeaseBook, key, tags?.[at], costs[at] as number)
      if (held === undefined) {
        for (const part of parts) void this.refund(part, part.cost)
        return undefined
      }
      parts.push(held)
    }
    return decide(parts, 0)
  }

  private async applyStack(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Promise<Decision> {
    const parts = await Promise.all(
      members.map(async (member, at): Promise<Decision | undefined> => {
        if (this.books[member] === undefined) return undefined
        return this.obtain(member, keys[at] as string, tags?.[at], costs[at] as number)
      }),
    )
    let passes = parts.every((part) => part?.allowed !== false)
    const rest = members.flatMap((_, at) => (parts[at] === undefined ? [at] : []))
    if (passes && rest.length > 0) {
      const pick = <T>(from: readonly T[]): T[] => rest.map((at) => from[at] as T)
      const own = tags === undefined ? undefined : pick(tags)
      const decision = await this.inner.apply(pick(members), pick(keys), own, pick(costs), true)
      for (const [index, at] of rest.entries()) parts[at] = decision.stack[index]
      passes = decision.allowed
    }
    const nowUs = parts.find((part) => part !== undefined)?.nowUs ?? 0
    const all = members.map((member, at) => {
      const part = parts[at]
      // Not asked: that nothing is left errs on the safe side, and the policy does not say no.
      if (part === undefined) {
        const source = this.policies[member] as Source
        return new Decision(source, keys[at] as string, peeked, nowUs, costs[at] as number, 0, 0, 0, 0, 0)
      }
      if (!passes && part.charged > 0) {
        void this.refund(part, part.cost)
        part.state |= peeked
      }
      return part
    })
    return decide(all, all.some((part) => part.degraded) ? degraded : 0)
  }

  /** Units for one caller, from what is in hand or from the store. */
  private obtain(member: number, key: string, tag: string | undefined, cost: number): Decision | Promise<Decision> {
    const book = this.books[member] as LeaseBook
    const slot = this.closed ? -1 : book.open(key, tag)
    if (slot >= 0) {
      this.look()
      const held = this.takeHeld(book, key, tag, cost)
      if (held !== undefined) return held
    }
    const known = this.inner.tryApply([member], [key], tag === undefined ? undefined : [tag], [cost])
    if (known !== undefined) return known
    const { rule } = this.policies[member] as Source
    // What can never fit is refused by the store, which knows that; a lease would wait for it.
    const most = Math.min(book.terms.block, rule.limit)
    if (slot < 0 || cost > most) return this.alone(member, key, tag, cost)
    return new Promise((resolve) => {
      this.tell(book.lease(slot), { type: 'wait', waiter: { key, resolve }, cost })
    })
  }

  /** Asks the store for one caller alone. */
  private async alone(member: number, key: string, tag: string | undefined, cost: number): Promise<Decision> {
    try {
      return await this.inner.grant(member, key, tag, cost, cost)
    } catch {
      return this.withoutStore(member, key, tag, cost)
    }
  }

  private withoutStore(member: number, key: string, tag: string | undefined, cost: number): Decision {
    return this.inner.declared([member], [key], tag === undefined ? undefined : [tag], [cost])
  }

  private tell(lease: KeyLease, event: Parameters<KeyLease['step']>[0]): void {
    const now = monotonicUs()
    lease.with(() => this.run(lease, lease.step(event, now), now))
  }

  private run(lease: KeyLease, effects: readonly LeaseEffect<Grant, Caller>[], now: number): void {
    const { member, key, tag } = lease
    for (const effect of effects) {
      switch (effect.type) {
        case 'ask':
          void this.ask(lease, effect.least, effect.most, !effect.soon)
          break
        case 'admit': {
          const { lot, marks, waiter, cost, asked } = effect
          waiter.resolve(leasedDecision(lease, lot, marks, waiter.key, cost, asked ? lot.grant.sentUs : now))
          break
        }
        case 'refuse':
          effect.waiter.resolve(refusalOf(lease, effect.waiter.key, effect.cost))
          break
        case 'without':
          effect.waiter.resolve(this.withoutStore(member, key, tag, effect.cost))
          break
        case 'return':
          if (now < effect.lot.grant.countsUntilUs) void this.inner.refund(effect.lot.grant.decision, effect.units)
          break
        default:
          this.report(lease, effect.units)
      }
    }
  }

  private async ask(lease: KeyLease, least: number, most: number, patient: boolean): Promise<void> {
    const { member, key, tag } = lease
    const sentUs = monotonicUs()
    let decision: Decision
    try {
      decision = await this.inner.grant(member, key, tag, least, most, patient)
    } catch {
      this.tell(lease, { type: 'failed' })
      return
    }
    if (!decision.allowed) {
      lease.refusal = decision
      this.tell(lease, { type: 'refused', waitUs: decision.waitUs })
      return
    }
    const left = windowLeftUs(decision.source.rule, decision.origin, decision.nowUs)
    const grant: Grant = { decision, sentUs, countsUntilUs: sentUs + left }
    const endsUs = leaseEndUs(sentUs, lease.ttlUs, left)
    const untilUs = leaseEndUs(sentUs, Infinity, left)
    this.tell(lease, { type: 'granted', grant, units: decision.cost, endsUs, untilUs })
  }

  /**
   * What an instance held and used counts again at a store that lost its memory. Where a key starts as used up that is
   * counted already. A loss is often found by what tries whether the store is back: until it is, nothing is sent.
   */
  private report(lease: KeyLease, units: number): void {
    const { member, source, key, tag } = lease
    const { rule, lease: terms } = source
    if (units === 0 || terms === undefined || member < 0 || outlastsRule(rule, terms)) return
    if (this.inner.health !== 'healthy') this.due.push({ lease, units })
    else void this.inner.charge(member, key, tag, Math.min(units, rule.limit))
  }

  private async peek(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Promise<Decision> {
    const decision = await this.inner.apply(members, keys, tags, costs, false)
    const parts = decision.stack.map((part, at) => {
      const book = this.books[members[at] as number]
      const slot = book?.slotOf(keys[at] as string, tags?.[at]) ?? -1
      const held = book === undefined || slot < 0 ? 0 : book.lease(slot).with((lease) => lease.held)
      return held === 0 ? part : withHeld(part, held)
    })
    return parts.length === 1 ? (parts[0] as Decision) : decide(parts, peeked | (decision.degraded ? degraded : 0))
  }

  private drop(member: number, key: string, tag: string | undefined): void {
    const lease = this.books[member]?.remove(key, tag)
    if (lease !== undefined) this.tell(lease, { type: 'close' })
  }

  private giveAllBack(): KeyLease[] {
    const all = this.books.flatMap((book) => book?.takeAll() ?? [])
    for (const lease of all) this.tell(lease, { type: 'close' })
    return all
  }

  /** What the store does not know any more is not given back. */
  private forget(): void {
    this.closed = true
    this.stopLooking?.()
    for (const book of this.books) book?.takeAll()
  }

  private forEach(visit: (lease: KeyLease) => void): void {
    for (const book of this.books) for (const lease of book?.all() ?? []) visit(lease)
  }

  /** Looks at leases from time to time, as long as there are any. */
  private look(): void {
    if (this.stopLooking !== undefined || this.closed) return
    const shortestUs = Math.min(...this.books.flatMap((book) => (book === undefined ? [] : [book.terms.ttlUs])))
    this.stopLooking = later(Math.max(1, Math.ceil(shortestUs / looks.perTtl / 1_000)), () => {
      this.stopLooking = undefined
      const now = monotonicUs()
      for (const book of this.books) {
        book?.look(looks.share, now, book.terms.ttlUs / 4, (lease) => this.tell(lease, { type: 'look' }))
      }
      if (this.books.some((book) => (book?.size ?? 0) > 0)) this.look()
    })
  }
}

function booksOf(policies: readonly Source[]): (LeaseBook | undefined)[] {
  return policies.map((source, member) => {
    const { lease } = source
    return lease === undefined ? undefined : new LeaseBook(lease, source, member)
  })
}

/** The place of a policy in another list; -1 where it is not there any more. */
function placeOf(policies: readonly Source[], { name, rule }: Source): number {
  const same = policies.findIndex((one) => one.name === name && one.rule.script.name === rule.script.name)
  return same >= 0 ? same : policies.findIndex((one) => one.name === name)
}

/** Hooks may be methods of an object. */
function boundHooks(hooks: RemoteHooks): RemoteHooks {
  return {
    evicted: (policy, key, limited) => hooks.evicted(policy, key, limited),
    rebased: (stepMs) => hooks.rebased(stepMs),
    closed: () => hooks.closed(),
    degraded: (cause) => hooks.degraded(cause),
    recovered: (durationMs, decisions) => hooks.recovered(durationMs, decisions),
    faulty: (policy, key, cause) => hooks.faulty(policy, key, cause),
    lost: (kind, decisionsAtRisk) => hooks.lost(kind, decisionsAtRisk),
    paused: (pauseMs) => hooks.paused(pauseMs),
  }
}
