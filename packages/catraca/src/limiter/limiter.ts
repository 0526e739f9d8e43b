import { nowUs as clockUs } from '../core/clock.ts'
import { checkCost } from '../core/cost.ts'
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
import { Reports } from './reports.ts'
import { openSpread } from './spread.ts'

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
  /** Time last given by a caller, in µs; verbs without a time of their own go by it. */
  private givenUs: number | undefined
  private closed = false
  /** True when somebody listens to decisions. */
  private reports = false
  /** True when a question needs neither report nor look-up of blocks nor names; kept so that it costs one comparison. */
  private direct = false

  /** @internal Use `createLimiter`. */
  constructor(
    name: string,
    policies: readonly Omit<Source, 'issuer'>[],
    stack: boolean,
    store: Store,
    ownStore: boolean,
    on: Listeners,
  ) {
    this.name = name
    this.policies = policies.map((policy) => ({ ...policy, issuer: this }))
    this.stack = stack
    this.ownStore = ownStore ? store : undefined
    this.blocks = new Blocks()
    this.events = new Reports(() => this.update())
    this.events.addAll(on)
    this.ledger = openSpread(store, name, this.policies, {
      evicted: (policy, key, limited) => this.events.emit('evicted', { policy, key, limited }),
      rebased: (stepMs) => this.events.emit('clock.step', { stepMs, source: 'state' }),
      closed: () => {
        this.closed = true
        this.update()
      },
    })
    this.update()
  }

  /**
   * Asks for `cost` units and takes them if they pass. A refusal takes nothing.
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
  }

  /** Forgets what was used under these keys, and their blocks. Nothing charged before can be refunded afterwards. */
  reset(keys: SomeKeys<R>): void {
    this.checkOpen()
    forEachKey(this.policies, this.stack, keys, (policy, key) => {
      this.ledger.reset(policy, key)
      this.blocks.remove(policy, key)
    })
    this.update()
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

  /** Ends the use of the store. Later calls throw `CATRACA_LIMITER_CLOSED`; releasing a permit then does nothing. */
  close(): void {
    if (this.closed) return
    this.closed = true
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
    const decision = this.stack ? this.askStack(keys, cost, nowUs, charge) : this.askOne(keys, cost, nowUs, charge)
    if (this.reports && charge) this.events.decided(decision)
    return decision
  }

  private askOne(asked: unknown, cost: number, nowUs: number | undefined, charge: boolean): Decision {
    const key = checkKey(asked)
    if (key === '') this.events.emptyKey(this.name)
    if (nowUs !== undefined && this.isBlocked(0, key, nowUs)) return this.refuseBlocked([key], cost, nowUs)
    return this.ledger.applyOne(key, cost, nowUs, charge)
  }

  private askStack(asked: unknown, cost: number, nowUs: number | undefined, charge: boolean): Decision {
    const named = checkKeys(asked)
    const keys: string[] = []
    let blocked = false
    for (let policy = 0; policy < this.policies.length; policy++) {
      const key = keyOf(named, (this.policies[policy] as Source).name)
      if (key === '') this.events.emptyKey(this.name)
      if (nowUs !== undefined && this.isBlocked(policy, key, nowUs)) blocked = true
      keys.push(key)
    }
    return blocked && nowUs !== undefined
      ? this.refuseBlocked(keys, cost, nowUs)
      : this.ledger.apply(keys, cost, nowUs, charge)
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
    this.direct = !this.stack && !this.closed && !this.reports && !this.blocks.any
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
/** Microseconds stay below 2^53. */
const maxNowMs = 9_000_000_000_000
