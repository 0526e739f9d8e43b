import { nowUs as clockUs } from '../core/clock.ts'
import { checkActualCost, checkCost } from '../core/cost.ts'
import { type Decision, decide, type Issuer, type Source, settled } from '../core/decision.ts'
import { type Duration, durationUs } from '../core/duration.ts'
import { CatracaError, show } from '../core/errors.ts'
import type { EventName, Listener, Listeners } from '../core/events.ts'
import { Blocks, refuseBlocked } from '../stores/blocks.ts'
import type { Ledger, Store } from '../stores/store.ts'
import {
  checkKey,
  checkKeys,
  checkOwn,
  checkTakeOptions,
  forEachKey,
  type Keys,
  keyOf,
  limiterClosed,
  type Rules,
  type SomeKeys,
} from './arguments.ts'
import { memoryLine, placeOf } from './lines.ts'
import { Reports } from './reports.ts'
import { openSpread } from './spread.ts'
import { behindQueues } from './wait-answers.ts'
import { checkWait, type WaitOptions } from './wait-options.ts'
import { Waiting } from './waiting.ts'

/** Options of one question. */
export interface TakeOptions {
  /** Units the request costs: a positive safe integer. Default 1. */
  cost?: number
  /** Milliseconds since the epoch, fractions allowed, for tests and simulators. Default: the clock. */
  now?: number
}

/**
 * Decides who may go on. Made by `createLimiter`.
 * With a memory store every verb answers at once; one that asks takes well under a microsecond.
 */
export class Limiter<R extends Rules> implements Issuer {
  readonly name: string
  /** The policies in the order in which they are asked. */
  readonly policies: readonly Source[]
  private readonly stack: boolean
  private readonly ledger: Ledger
  private readonly ownStore: Store | undefined
  private readonly blocks: Blocks
  private readonly events: Reports
  private readonly waiting: Waiting
  /** Time last given by a caller, in µs; verbs without a time of their own go by it. */
  private givenUs: number | undefined
  private closed = false
  /** True when somebody listens to decisions. */
  private reports = false
  /** True when a question needs neither report nor look-up of blocks or waiters nor names; kept so that it costs one comparison. */
  private direct = false

  /** @internal Use `createLimiter`. */
  constructor(
    name: string,
    policies: readonly Omit<Source, 'issuer'>[],
    stack: boolean,
    store: Store,
    ownStore: boolean,
    on: Listeners,
    maxWaiting: number,
  ) {
    this.name = name
    this.policies = policies.map((policy) => ({ ...policy, issuer: this }))
    this.stack = stack
    this.ownStore = ownStore ? store : undefined
    this.blocks = new Blocks()
    this.waiting = new Waiting(maxWaiting, () => this.update())
    this.events = new Reports(() => this.update())
    this.events.addAll(on)
    this.ledger = openSpread(store, name, this.policies, {
      evicted: (policy, key, limited) => this.events.emit('evicted', { policy, key, limited }),
      rebased: (stepMs) => this.events.emit('clock.step', { stepMs, source: 'state' }),
      closed: () => {
        this.closed = true
        this.waiting.close()
        this.update()
      },
    })
    this.update()
  }

  /**
   * Asks for `cost` units and takes them if they pass. A refusal takes nothing. While others wait in a queue for one of
   * the keys ({@link Limiter.wait}) it is refused, so that they are not overtaken; nothing else needs such a rule, for
   * what is reserved is charged.
   * Throws for a key that is not a text, a cost that is not a positive whole number, a time that is none.
   */
  take(keys: Keys<R>, options?: TakeOptions): Decision {
    // The common question takes the shortest way: one rule, a unit, the clock, nobody listening.
    if (options === undefined && this.direct && typeof keys === 'string' && keys !== '') {
      return this.ledger.applyOne(keys, 1, undefined, true)
    }
    return this.ask(keys, options, true)
  }

  /** As {@link Limiter.take}, answering without I/O or not at all; with a memory store the two are one. */
  tryTake(keys: Keys<R>, options?: TakeOptions): Decision | undefined {
    return this.take(keys, options)
  }

  /** What {@link Limiter.take} would say. Takes nothing, reports nothing; `remaining` is what would pass now. */
  peek(keys: Keys<R>, options?: TakeOptions): Decision {
    return this.ask(keys, options, false)
  }

  /**
   * Takes as many of `units` as pass now under all policies, at least one: `charged` says how many. Where not even one
   * passes it is the refusal of one. All of it at one instant, so nobody comes in between. Throws as {@link Limiter.take}.
   */
  takeUpTo(keys: Keys<R>, units: number, options?: Pick<TakeOptions, 'now'>): Decision {
    const most = checkCost(units, 'units')
    if (options !== undefined) checkTakeOptions(options, upToOptions)
    const nowUs = options?.now === undefined ? clockUs() : this.given(options.now)
    const one = this.askAt(keys, 1, nowUs, false)
    const cost = one.allowed ? Math.min(most, ...one.stack.map(({ remaining }) => remaining)) : 1
    const decision = this.askAt(keys, cost, nowUs, true)
    if (this.reports) this.events.decided(decision)
    return decision
  }

  /**
   * As {@link Limiter.take}, and waits up to `maxWaitMs` where it does not pass: resolves once the request may start, or
   * at once with the refusal where the wait would be longer, the cost can never pass, a key is blocked, or `maxWaiting`
   * others wait (`queue-full`). Nobody sleeps in vain for a time that is known.
   *
   * - Bucket family: the policy with the longest wait is charged now for a time to come, so whoever comes later starts
   *   later, by `take` too, and large requests are not overtaken. One sleep; then the rest of the stack is taken all or
   *   nothing, and a refusal there is final: the reservation is given back. `delayMs` says how long it waited.
   * - `leakyQueue`: the wait is the delay of its place.
   * - Other rules: a queue per key in the order of arrival, in which nobody overtakes the first. It is asked for when its
   *   wait is over and when units come back; permits wake it when they are released.
   *
   * An aborted one resolves with reason `aborted` at once and costs nothing; who came later keeps the time it was given.
   * Of a key that is `reset` all are asked for anew; `close` ends all waits as aborted. Time is the clock's: it takes no
   * `now`. Rejects as {@link Limiter.take} throws. All waits share one timer, which keeps the process alive.
   */
  async wait(keys: Keys<R>, options: WaitOptions = {}): Promise<Decision> {
    this.checkOpen()
    const wait = checkWait(options)
    const texts = this.textsOf(keys)
    const line = memoryLine(this.ledger, this.policies, texts, wait.cost, (charge) =>
      this.askTexts(texts, wait.cost, this.blocks.any ? clockUs() : undefined, charge),
    )
    const decision = await this.waiting.wait(line, wait)
    if (this.reports) this.events.decided(decision)
    return decision
  }

  /**
   * Makes the charge of an admitted request what it really cost, `actualCost` from 0 on, in every policy; once per
   * decision, by this or by {@link Limiter.refund}. Less than charged: the rest comes back as a refund does. More: the
   * rest is charged unasked to what is current now, up to twice the limit in use. Permits can be given back so, and are
   * never added.
   *
   * Says how many units came back (positive) or were added (negative): of several policies what is nearest to 0.
   */
  settle(decision: Decision, actualCost: number): number {
    checkOwn(decision, this, this.name)
    const actual = checkActualCost(actualCost)
    if (decision.charged === 0 || (decision.state & settled) !== 0) return 0
    decision.state |= settled
    const nowUs = this.nowUs()
    let least = decision.cost - actual
    for (const one of decision.stack) {
      const changed = this.ledger.settle(one, actual, nowUs)
      // Permits are given back by their own rules, and say nothing about the other policies.
      const counts = !one.source.rule.holds || decision.stack.length === 1
      if (counts && Math.abs(changed) < Math.abs(least)) least = changed
    }
    this.freed(decision)
    return least
  }

  /**
   * Gives back up to `units` (default: all) of what an admitted request was charged, in every policy; once per decision.
   * Only while the charge still counts, and never above full. Says how many units came back, the least of all policies;
   * a bucket gives back what its refill has not returned already, which may be a fraction.
   */
  refund(decision: Decision, units?: number): number {
    checkOwn(decision, this, this.name)
    const wanted = units === undefined ? decision.cost : Math.min(checkCost(units), decision.cost)
    if (decision.charged === 0 || (decision.state & settled) !== 0) return 0
    decision.state |= settled
    const nowUs = this.nowUs()
    let least = wanted
    for (const one of decision.stack) {
      const given = this.ledger.refund(one, wanted, nowUs)
      // Permits may have been released before; they say nothing about what the other policies gave back.
      if (!one.source.rule.holds || decision.stack.length === 1) least = Math.min(least, given)
    }
    this.freed(decision)
    return least
  }

  /** Gives the permits of a decision back. Does nothing when it holds none, a second time, or after they expired. */
  release(decision: Decision): void {
    checkOwn(decision, this, this.name)
    if (decision.charged === 0) return
    const nowUs = this.nowUs()
    for (const one of decision.stack) {
      if (one.source.rule.holds) this.ledger.refund(one, decision.cost, nowUs)
    }
    this.freed(decision)
  }

  /**
   * Forgets what was used under these keys, and their blocks. Nothing charged before can be refunded afterwards. Those who
   * wait for them are asked for anew.
   */
  reset(keys: SomeKeys<R>): void {
    this.checkOpen()
    forEachKey(this.policies, this.stack, keys, (policy, key) => {
      this.ledger.reset(policy, key)
      this.blocks.remove(policy, key)
    })
    this.update()
    forEachKey(this.policies, this.stack, keys, (policy, key) => this.waiting.restart(placeOf(policy, key)))
  }

  /** Refuses these keys for `duration` from now, whatever their limits say; a later call replaces an earlier one. */
  block(keys: SomeKeys<R>, duration: Duration): void {
    this.checkOpen()
    const us = durationUs(duration, 'block.duration')
    const nowUs = this.nowUs()
    forEachKey(this.policies, this.stack, keys, (policy, key) => this.blocks.add(policy, key, nowUs, us))
    this.update()
  }

  /** Ends a block. */
  unblock(keys: SomeKeys<R>): void {
    this.checkOpen()
    forEachKey(this.policies, this.stack, keys, (policy, key) => this.blocks.remove(policy, key))
    this.update()
  }

  /** Calls `listener` at each event; returns the way to stop. */
  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void {
    return this.events.on(event, listener)
  }

  /**
   * Ends the use of the store, and all waits. Later calls throw `CATRACA_LIMITER_CLOSED`; releasing a permit then does
   * nothing.
   */
  close(): void {
    if (this.closed) return
    this.closed = true
    this.waiting.close()
    this.ledger.close()
    this.ownStore?.close()
    this.events.close()
    this.update()
  }

  private ask(keys: Keys<R>, options: TakeOptions | undefined, charge: boolean): Decision {
    if (this.closed) this.checkOpen()
    let cost = 1
    let nowUs: number | undefined
    if (options !== undefined) {
      checkTakeOptions(options, takeOptions)
      if (options.cost !== undefined) cost = checkCost(options.cost)
      if (options.now !== undefined) nowUs = this.given(options.now)
    }
    // One reading of the clock for the blocks and the limits.
    if (this.blocks.any && nowUs === undefined) nowUs = clockUs()
    const decision = this.askAt(keys, cost, nowUs, charge)
    if (this.reports && charge) this.events.decided(decision)
    return decision
  }

  private askAt(keys: unknown, cost: number, nowUs: number | undefined, charge: boolean): Decision {
    if (this.closed) this.checkOpen()
    const { anyQueue } = this.waiting
    if (!this.stack && !anyQueue) return this.askOne(keys, cost, nowUs, charge)
    const texts = this.textsOf(keys)
    const waits = anyQueue ? texts.map((key, policy) => this.waiting.queueWaitUs(placeOf(policy, key))) : undefined
    return waits?.some((waitUs) => waitUs > 0)
      ? behindQueues(this.askTexts(texts, cost, nowUs, false), waits)
      : this.askTexts(texts, cost, nowUs, charge)
  }

  private askOne(asked: unknown, cost: number, nowUs: number | undefined, charge: boolean): Decision {
    const key = checkKey(asked)
    if (key === '') this.events.emptyKey(this.name)
    if (nowUs !== undefined && this.isBlocked(0, key, nowUs)) return this.refuseBlocked([key], cost, nowUs)
    return this.ledger.applyOne(key, cost, nowUs, charge)
  }

  /** The keys in the order of the policies. */
  private textsOf(asked: unknown): string[] {
    const named = this.stack ? checkKeys(asked) : undefined
    const keys: string[] = []
    for (const { name } of this.policies) {
      const key = named === undefined ? checkKey(asked) : keyOf(named, name)
      if (key === '') this.events.emptyKey(this.name)
      keys.push(key)
    }
    return keys
  }

  private askTexts(keys: readonly string[], cost: number, nowUs: number | undefined, charge: boolean): Decision {
    let blocked = false
    for (let policy = 0; policy < keys.length; policy++) {
      if (nowUs !== undefined && this.isBlocked(policy, keys[policy] as string, nowUs)) blocked = true
    }
    if (blocked && nowUs !== undefined) return this.refuseBlocked(keys, cost, nowUs)
    return this.stack
      ? this.ledger.apply(keys, cost, nowUs, charge)
      : this.ledger.applyOne(keys[0] as string, cost, nowUs, charge)
  }

  /** Units may have come back: who waits in a queue for them is asked for. */
  private freed(decision: Decision): void {
    if (!this.waiting.anyQueue) return
    for (const { source, key } of decision.stack) {
      // By name: what was asked may be a variant of the policy.
      this.waiting.freed(
        placeOf(
          this.policies.findIndex(({ name }) => name === source.name),
          key,
        ),
      )
    }
  }

  private isBlocked(policy: number, key: string, nowUs: number): boolean {
    if (!this.blocks.any) return false
    const blocked = this.blocks.waitUs(policy, key, nowUs) > 0
    // The last block may just have ended.
    if (!blocked) this.update()
    return blocked
  }

  /** A blocked key refuses the whole stack, and nothing is charged. */
  private refuseBlocked(keys: readonly string[], cost: number, nowUs: number): Decision {
    const { stack } = this.ledger.apply(keys, cost, nowUs, false)
    const refused = stack.map((one, policy) => {
      const blockUs = this.blocks.waitUs(policy, one.key, nowUs)
      return blockUs === 0 ? one : refuseBlocked(one, blockUs)
    })
    return decide(refused, 0)
  }

  private update(): void {
    this.reports = this.events.decisions
    this.direct = !this.stack && !this.closed && !this.reports && !this.blocks.any && !this.waiting.anyQueue
  }

  private nowUs(): number {
    return this.givenUs ?? clockUs()
  }

  private given(now: number): number {
    if (typeof now !== 'number' || !(now >= 0 && now <= maxNowMs)) {
      throw new CatracaError(
        'CATRACA_NOW_INVALID',
        `now is ${show(now)}; allowed: milliseconds since the epoch, 0 to ${maxNowMs}`,
        {
          path: 'now',
          value: now,
        },
      )
    }
    this.givenUs = Math.round(now * 1_000)
    this.ledger.given(this.givenUs)
    return this.givenUs
  }

  private checkOpen(): void {
    if (this.closed) throw limiterClosed(this.name)
  }
}

const takeOptions = ['cost', 'now'] as const
const upToOptions = ['now'] as const

/** Microseconds stay below 2^53. */
const maxNowMs = 9_000_000_000_000
