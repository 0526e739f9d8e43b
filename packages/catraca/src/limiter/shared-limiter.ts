import { checkActualCost, checkCost } from '../core/cost.ts'
import { type Decision, type Issuer, type Source, settled } from '../core/decision.ts'
import { type Duration, durationUs } from '../core/duration.ts'
import { CatracaError, show } from '../core/errors.ts'
import type { EventName, Listener, Listeners } from '../core/events.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { ReservingRule, Rule } from '../core/rule.ts'
import { LeasedLedger } from '../stores/lease/leased-ledger.ts'
import type { Health, RemoteLedger, RemoteStore, StoreFailureOptions } from '../stores/remote.ts'
import {
  checkKey,
  checkKeys,
  checkOwn,
  checkTakeOptions,
  forEachKey,
  type Keys,
  keyInvalid,
  keyOf,
  limiterClosed,
  optionInvalid,
  type Rules,
  type SomeKeys,
} from './arguments.ts'
import { placeOf, remoteLine } from './lines.ts'
import { Reports } from './reports.ts'
import { openSpreadRemote } from './spread-remote.ts'
import { storeEvents } from './store-events.ts'
import { checkWait, type WaitOptions } from './wait-options.ts'
import { Waiting } from './waiting.ts'

/** Options of one question to a shared store, whose clock alone counts. */
export interface SharedTakeOptions {
  /** Units the request costs: a positive safe integer. Default 1. */
  cost?: number
}

/** Where the state of a key stands, for limiters with the option `tag`. */
export interface TagOptions {
  /** The key of the policy that is the tag, where `keys` leaves it out. */
  tag?: string
}

/** What a shared limiter is made of, checked. */
export interface SharedParts {
  readonly policies: readonly Omit<Source, 'issuer'>[]
  readonly stack: boolean
  readonly store: RemoteStore
  readonly on: Listeners
  /** Undefined where nobody said: one instance. */
  readonly failure: StoreFailureOptions | undefined
  /** The place of the policy whose key is the tag of all. */
  readonly tag: number | undefined
  /** How many may wait. */
  readonly maxWaiting: number
}

/** `wait` of a limiter on a shared store, where a rule of it reserves; of others it is nothing that can be called. */
export type SharedWait<R extends Rules> =
  true extends Reserves<R> ? (keys: Keys<R>, options?: WaitOptions) => Promise<Decision> : unknown

type Reserves<R extends Rules> = R extends Rule
  ? R extends ReservingRule
    ? true
    : false
  : { [Name in keyof R]: R[Name] extends ReservingRule ? true : false }[keyof R]

/**
 * Decides who may go on, with states that many processes share. Made by `createLimiter` with a remote store. Every verb
 * takes one trip to the store.
 *
 * No promise rejects because the store fails, but those of `reset`, `block` and `unblock`, with
 * `CATRACA_STORE_UNAVAILABLE`. Wrong arguments reject as a `Limiter` throws.
 */
export class SharedLimiter<R extends Rules> {
  readonly name: string
  /** The policies in the order in which they are asked. */
  readonly policies: readonly Source[]
  /** Takes back what `decision.release()` lets go of, without waiting for the store. */
  private readonly issuer: Issuer = { release: (decision) => this.release(decision) }
  private readonly members: readonly number[]
  /** The costs of a request of one unit. */
  private readonly units: readonly number[]
  /** The key of a question that is answered at once or not at all. */
  private readonly asked: string[] = ['']
  private readonly stack: boolean
  private readonly tag: number | undefined
  private readonly ledger: RemoteLedger
  private readonly events: Reports
  private readonly waiting: Waiting
  private closed = false
  /** True when somebody listens to decisions. */
  private reports = false
  /** True when a question needs neither report nor names; kept so that it costs one comparison. */
  private direct = false

  /** @internal Use `createLimiter`. */
  constructor(name: string, { policies, stack, store, on, failure, tag, maxWaiting }: SharedParts) {
    this.name = name
    this.policies = policies.map((policy) => ({ ...policy, issuer: this.issuer }))
    this.members = policies.map((_, member) => member)
    this.units = policies.map(() => 1)
    this.stack = stack
    this.tag = tag
    this.waiting = new Waiting(maxWaiting)
    this.events = new Reports(() => {
      this.update()
    })
    this.events.addAll(on)
    this.update()
    this.ledger = this.open(store, failure ?? { expectedInstances: 1 })
    if (failure === undefined && policies.some(({ onStoreFailure = 'local' }) => onStoreFailure === 'local')) {
      this.events.diagnose(
        'CATRACA_INSTANCES_UNSTATED',
        `limiter ${show(name)} admits the whole limit on every instance while its store is gone: ` +
          'write storeFailure: { expectedInstances: … }',
      )
    }
  }

  /** Whether the store decides, or the declared modes do. */
  get health(): Health {
    return this.ledger.health
  }

  /**
   * Asks for `cost` units and takes them if they pass. A refusal takes nothing. Without the store the declared mode
   * answers and the decision is `degraded`.
   */
  take(keys: Keys<R>, options?: SharedTakeOptions): Promise<Decision> {
    // The common question takes the shortest way: one rule, a unit, nobody listening.
    if (options === undefined && this.direct && typeof keys === 'string' && keys !== '') {
      const texts = [keys]
      const known = this.ledger.tryApply(this.members, texts, undefined, this.units)
      return known === undefined
        ? this.ledger.apply(this.members, texts, undefined, this.units, true)
        : Promise.resolve(known)
    }
    if (this.reports) return this.ask(keys, options, true)
    // Nobody hears of the decision: the caller waits for the store alone.
    try {
      const { texts, tags, costs } = this.read(keys, options)
      const known = this.ledger.tryApply(this.members, texts, tags, costs)
      return known === undefined ? this.ledger.apply(this.members, texts, tags, costs, true) : Promise.resolve(known)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * The answer of {@link SharedLimiter.take} where it is known without a trip, undefined where the store must be asked.
   * An answer has been charged. Throws for wrong arguments.
   */
  tryTake(keys: Keys<R>, options?: SharedTakeOptions): Decision | undefined {
    if (options === undefined && this.direct && typeof keys === 'string' && keys !== '') {
      this.asked[0] = keys
      return this.ledger.tryApply(this.members, this.asked, undefined, this.units)
    }
    const { texts, tags, costs } = this.read(keys, options)
    const decision = this.ledger.tryApply(this.members, texts, tags, costs)
    if (this.reports && decision !== undefined) this.events.decided(decision)
    return decision
  }

  /** What {@link SharedLimiter.take} would say. Takes nothing, reports nothing; `remaining` is what would pass now. */
  async peek(keys: Keys<R>, options?: SharedTakeOptions): Promise<Decision> {
    return this.ask(keys, options, false)
  }

  /**
   * As `Limiter.takeUpTo`: as many of `units` as pass now under all policies, at least one, in one trip. In a cluster
   * whose policies stand on several nodes it takes a trip more, and what another takes meanwhile is less.
   */
  async takeUpTo(keys: Keys<R>, units: number): Promise<Decision> {
    const most = checkCost(units, 'units')
    const { texts, tags } = this.read(keys, undefined)
    const decision = await this.ledger.applyUpTo(this.members, texts, tags, most)
    if (this.reports) this.events.decided(decision)
    return decision
  }

  /**
   * As `Limiter.wait`, for limiters of which at least one rule is of the bucket family or a leaky queue: such a policy
   * reserves in the store, so the order holds over all instances. A refusal by another rule is final. Two trips at most
   * where it waits, and one more for a stack. Without the store the declared mode decides: `local` reserves in the share
   * of this instance. A key that is reset elsewhere does not wake who waits here.
   *
   * A wait that is aborted gives back what nobody reserved behind; of what others did, on other instances too, as much as
   * the capacity holds beside it. Rejects with `CATRACA_WAIT_UNSUPPORTED` where no rule reserves.
   */
  readonly wait = (async (keys: Keys<R>, options: WaitOptions = {}): Promise<Decision> => {
    const wait = checkWait(options)
    const { texts, tags } = this.read(keys, { cost: wait.cost })
    if (!this.policies.some(({ rule }) => rule.reserves)) throw waitUnsupported(this.name)
    const line = remoteLine(this.ledger, this.policies, texts, tags, wait.cost)
    const decision = await this.waiting.wait(line, wait)
    if (this.reports) this.events.decided(decision)
    return decision
  }) as unknown as SharedWait<R>

  /** As `Limiter.settle`; 0 where the store does not answer. */
  async settle(decision: Decision, actualCost: number): Promise<number> {
    checkOwn(decision, this.issuer, this.name)
    const actual = checkActualCost(actualCost)
    if (decision.charged === 0 || (decision.state & settled) !== 0) return 0
    decision.state |= settled
    const changed = await Promise.all(decision.stack.map((one) => this.ledger.settle(one, actual)))
    let least = decision.cost - actual
    decision.stack.forEach((one, index) => {
      const own = changed[index] as number
      // Permits are given back by their own rules, and say nothing about the other policies.
      const counts = !one.source.rule.holds || !this.stack
      if (counts && Math.abs(own) < Math.abs(least)) least = own
    })
    return least
  }

  /** As `Limiter.refund`; 0 where the store does not answer. */
  async refund(decision: Decision, units?: number): Promise<number> {
    checkOwn(decision, this.issuer, this.name)
    const wanted = units === undefined ? decision.cost : Math.min(checkCost(units), decision.cost)
    if (decision.charged === 0 || (decision.state & settled) !== 0) return 0
    decision.state |= settled
    const given = await Promise.all(decision.stack.map((one) => this.refundOne(one, wanted)))
    return Math.min(wanted, ...given)
  }

  /** Gives the permits of a decision back. Does nothing when it holds none, a second time, or after they expired. */
  async release(decision: Decision): Promise<void> {
    checkOwn(decision, this.issuer, this.name)
    const held = decision.stack.filter((one) => one.source.rule.holds && one.charged > 0)
    await Promise.all(held.map((one) => this.ledger.refund(one, one.charged)))
  }

  /**
   * Makes the permits of a decision last for another `permitTtl` from now. False when one of them had expired, when it
   * holds none, or when the store does not answer.
   */
  async renew(decision: Decision): Promise<boolean> {
    checkOwn(decision, this.issuer, this.name)
    const held = decision.stack.filter((one) => one.source.rule.holds && one.charged > 0)
    const renewed = await Promise.all(held.map((one) => this.ledger.renew(one)))
    return renewed.length > 0 && renewed.every(Boolean)
  }

  /**
   * Forgets what was used under these keys, and their blocks. Nothing charged before can be refunded afterwards. Those who
   * wait for them in this process are asked for anew. Rejects with `CATRACA_STORE_UNAVAILABLE` when the store does not answer.
   */
  async reset(keys: SomeKeys<R>, options?: TagOptions): Promise<void> {
    await this.each(keys, options, async (policy, key, tag) => {
      await this.ledger.reset(policy, key, tag)
      this.waiting.restart(placeOf(policy, key, tag))
    })
  }

  /**
   * Refuses these keys for `duration` from now on all instances, whatever their limits say; a later call replaces an
   * earlier one. Rejects with `CATRACA_STORE_UNAVAILABLE` when the store does not answer.
   */
  async block(keys: SomeKeys<R>, duration: Duration, options?: TagOptions): Promise<void> {
    const us = durationUs(duration, 'block.duration')
    await this.each(keys, options, (policy, key, tag) => this.ledger.block(policy, key, tag, us))
  }

  /** Ends a block. Rejects with `CATRACA_STORE_UNAVAILABLE` when the store does not answer. */
  async unblock(keys: SomeKeys<R>, options?: TagOptions): Promise<void> {
    await this.each(keys, options, (policy, key, tag) => this.ledger.block(policy, key, tag, 0))
  }

  /** Calls `listener` at each event; returns the way to stop. */
  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void {
    return this.events.on(event, listener)
  }

  /**
   * Ends the use of the store, which keeps the states, and all waits. Later questions reject with
   * `CATRACA_LIMITER_CLOSED`.
   */
  close(): void {
    if (this.closed) return
    this.closed = true
    this.waiting.close()
    this.ledger.close()
    this.events.close()
    this.update()
  }

  private open(store: RemoteStore, failure: StoreFailureOptions): RemoteLedger {
    const hooks = storeEvents(this.events, () => {
      this.closed = true
      this.waiting.close()
      this.update()
    })
    const leased = this.policies.some(({ lease }) => lease !== undefined)
    return openSpreadRemote(this.policies, (policies) =>
      leased
        ? new LeasedLedger(store, this.name, policies, hooks, failure)
        : store.open(this.name, policies, hooks, failure),
    )
  }

  private async ask(keys: Keys<R>, options: SharedTakeOptions | undefined, charge: boolean): Promise<Decision> {
    const { texts, tags, costs } = this.read(keys, options)
    const known = charge ? this.ledger.tryApply(this.members, texts, tags, costs) : undefined
    const decision = known ?? (await this.ledger.apply(this.members, texts, tags, costs, charge))
    if (this.reports && charge) this.events.decided(decision)
    return decision
  }

  private update(): void {
    this.reports = this.events.decisions
    this.direct = !this.stack && !this.closed && !this.reports
  }

  /** A question as the store is asked it. */
  private read(keys: unknown, options: SharedTakeOptions | undefined): Asked {
    if (this.closed) throw limiterClosed(this.name)
    let cost = 1
    if (options !== undefined) {
      if (typeof options === 'object' && options !== null && 'now' in options) throw nowRefused(options.now)
      checkTakeOptions(options, takeOptions)
      if (options.cost !== undefined) cost = checkCost(options.cost)
    }
    const named = this.stack ? checkKeys(keys) : undefined
    const { policies, tag } = this
    const texts: string[] = []
    for (let place = 0; place < policies.length; place++) {
      const text = named === undefined ? checkKey(keys) : keyOf(named, (policies[place] as Source).name)
      if (text === '') this.events.emptyKey(this.name)
      texts.push(text)
    }
    const tags = tag === undefined ? undefined : texts.map(() => texts[tag] as string)
    return { texts, tags, costs: cost === 1 ? this.units : texts.map(() => cost) }
  }

  private async refundOne(one: Decision, units: number): Promise<number> {
    const given = await this.ledger.refund(one, units)
    // Permits may have been released before; they say nothing about what the other policies gave back.
    return one.source.rule.holds && this.stack ? units : given
  }

  private async each(
    keys: SomeKeys<R>,
    options: TagOptions | undefined,
    run: (policy: number, key: string, tag: string | undefined) => Promise<void>,
  ): Promise<void> {
    if (this.closed) throw limiterClosed(this.name)
    if (options !== undefined) rejectUnknown(['tag'], options, 'options')
    const asked: [policy: number, key: string][] = []
    forEachKey(this.policies, this.stack, keys, (policy, key) => asked.push([policy, key]))
    if (asked.length === 0) return
    const tag = this.tag === undefined ? undefined : this.tagOf(asked, this.tag, options?.tag)
    await Promise.all(asked.map(([policy, key]) => run(policy, key, tag)))
  }

  /** The tag under which the states of these keys stand. */
  private tagOf(asked: readonly [policy: number, key: string][], policy: number, given: unknown): string {
    const tag = given ?? asked.find(([member]) => member === policy)?.[1]
    if (typeof tag === 'string') return tag
    throw keyInvalid(tag, given === undefined ? `keys.${this.policies[policy]?.name}` : 'options.tag')
  }
}

interface Asked {
  readonly texts: readonly string[]
  readonly tags: readonly string[] | undefined
  readonly costs: readonly number[]
}

const takeOptions = ['cost'] as const

function waitUnsupported(name: string): CatracaError {
  return new CatracaError(
    'CATRACA_WAIT_UNSUPPORTED',
    `limiter ${show(name)} has no rule that can be waited for in a shared store; ` +
      'allowed: tokenBucket, gcra, leakyMeter, leakyQueue, with others beside them',
  )
}

function nowRefused(now: unknown): Error {
  return optionInvalid('options.now', now, 'memory stores only; a shared store goes by its own clock')
}
