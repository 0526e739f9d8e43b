import { nowUs as clockUs, onClockStep } from '../core/clock.ts'
import { checkCost } from '../core/cost.ts'
import { Decision, decide, type Issuer, type Policy, type Source, settled } from '../core/decision.ts'
import { type Duration, durationUs } from '../core/duration.ts'
import { CatracaError, type DiagnosisCode, helpPage, show } from '../core/errors.ts'
import { Emitter, type EventName, eventNames, type Listener, type Listeners } from '../core/events.ts'
import { rejectUnknown } from '../core/parameters.ts'
import { reasonCode } from '../core/reason.ts'
import type { Rule } from '../core/rule.ts'
import type { Ledger, Store } from '../stores/store.ts'
import { Blocks } from './blocks.ts'

/** One rule, or several by name: a stack, in which all must pass and either all or none are charged. */
export type Rules = Rule | Readonly<Record<string, Rule>>
/** A text for one rule; for a stack an object with a text for each name. */
export type Keys<R extends Rules> = R extends Rule ? string : { readonly [Name in keyof R]: string }
/** As {@link Keys}, with names left out where they are not meant. */
export type SomeKeys<R extends Rules> = R extends Rule ? string : { readonly [Name in keyof R]?: string }

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
  private readonly events = new Emitter()
  private readonly diagnosed = new Set<DiagnosisCode>()
  /** Time last given by a caller, in µs; verbs without a time of their own go by it. */
  private givenUs: number | undefined
  private stopClock: (() => void) | undefined
  private closed = false
  /** True when somebody listens to decisions. */
  private reports = false
  /** True when a question needs neither report nor look-up of blocks nor names; kept so that it costs one comparison. */
  private direct = false

  /** @internal Use `createLimiter`. */
  constructor(
    name: string,
    policies: readonly Policy[],
    stack: boolean,
    store: Store,
    ownStore: boolean,
    on: Listeners,
  ) {
    this.name = name
    this.policies = policies.map(({ name, rule }) => ({ name, rule, issuer: this }))
    this.stack = stack
    this.ownStore = ownStore ? store : undefined
    this.blocks = new Blocks(policies.length)
    for (const [event, listener] of Object.entries(on)) this.on(event as EventName, listener as Listener<EventName>)
    this.ledger = store.open(name, this.policies, {
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
    this.checkOwn(decision)
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
    this.checkOwn(decision)
    if (decision.charged === 0) return
    const nowUs = this.nowUs()
    for (const one of decision.stack) {
      if (one.source.rule.holds) this.ledger.refund(one, decision.cost, nowUs)
    }
  }

  /** Forgets what was used under these keys, and their blocks. Nothing charged before can be refunded afterwards. */
  reset(keys: SomeKeys<R>): void {
    this.checkOpen()
    this.forEachKey(keys, (policy, key) => {
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
    this.forEachKey(keys, (policy, key) => this.blocks.add(policy, key, nowUs, us))
    this.update()
  }

  /** Ends a block. */
  unblock(keys: SomeKeys<R>): void {
    this.checkOpen()
    this.forEachKey(keys, (policy, key) => this.blocks.remove(policy, key))
    this.update()
  }

  /** Calls `listener` at each event; returns the way to stop. */
  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void {
    rejectUnknown(eventNames, { [event]: listener }, 'on')
    if (typeof listener !== 'function') throw listenerInvalid(listener, `on.${event}`)
    const stop = this.events.on(event, listener)
    this.update()
    if (event === 'clock.step') {
      this.stopClock ??= onClockStep((stepMs) => this.events.emit('clock.step', { stepMs, source: 'clock' }))
    }
    return () => {
      stop()
      this.update()
      if (!this.events.has('clock.step')) {
        this.stopClock?.()
        this.stopClock = undefined
      }
    }
  }

  /** Ends the use of the store. Later calls throw `CATRACA_LIMITER_CLOSED`; releasing a permit then does nothing. */
  close(): void {
    if (this.closed) return
    this.closed = true
    this.ledger.close()
    this.ownStore?.close()
    this.stopClock?.()
    this.events.clear()
    this.update()
  }

  private ask(keys: Keys<R>, options: TakeOptions | undefined, charge: boolean): Decision {
    if (this.closed) this.checkOpen()
    let cost = 1
    let nowUs: number | undefined
    if (options !== undefined) {
      checkTakeOptions(options)
      if (options.cost !== undefined) cost = checkCost(options.cost)
      if (options.now !== undefined) nowUs = this.given(options.now)
    }
    // One reading of the clock for the blocks and the limits.
    if (this.blocks.any && nowUs === undefined) nowUs = clockUs()
    const decision = this.stack ? this.askStack(keys, cost, nowUs, charge) : this.askOne(keys, cost, nowUs, charge)
    if (this.reports && charge) this.report(decision)
    return decision
  }

  private askOne(key: unknown, cost: number, nowUs: number | undefined, charge: boolean): Decision {
    if (typeof key !== 'string') throw keyInvalid(key, 'key')
    if (key === '') this.diagnoseEmpty()
    if (nowUs !== undefined && this.isBlocked(0, key, nowUs)) return this.refuseBlocked([key], cost, nowUs)
    return this.ledger.applyOne(key, cost, nowUs, charge)
  }

  private askStack(named: unknown, cost: number, nowUs: number | undefined, charge: boolean): Decision {
    if (typeof named !== 'object' || named === null) throw keyInvalid(named, 'keys')
    const keys: string[] = []
    let blocked = false
    for (let policy = 0; policy < this.policies.length; policy++) {
      const { name } = this.policies[policy] as Policy
      const key = (named as Readonly<Record<string, unknown>>)[name]
      if (typeof key !== 'string') throw keyInvalid(key, `keys.${name}`)
      if (key === '') this.diagnoseEmpty()
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
      if (blockUs === 0) return one
      const { source, key, lead, level, prior, waitUs } = one
      const reason = reasonCode(one.reason === 'impossible' ? 'impossible' : 'blocked')
      return new Decision(source, key, reason, nowUs, cost, 0, lead, level, prior, Math.max(waitUs, blockUs))
    })
    return decide(refused, 0)
  }

  private report(decision: Decision): void {
    this.events.emit('decision', { decision })
    if (!decision.allowed) return
    for (const { policy, limit, remaining } of decision.stack) {
      const usedShare = (limit - remaining) / limit
      if (usedShare >= nearShare) this.events.emit('nearLimit', { decision, policy, usedShare })
    }
  }

  private diagnoseEmpty(): void {
    const code = 'CATRACA_KEY_EMPTY'
    if (this.diagnosed.has(code)) return
    this.diagnosed.add(code)
    const message = `limiter ${show(this.name)} was asked about an empty key; all such callers share one limit`
    this.events.emit('diagnosis', { code, help: helpPage(code), message })
  }

  private update(): void {
    this.reports = this.events.has('decision') || this.events.has('nearLimit')
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

  private forEachKey(keys: SomeKeys<R>, run: (policy: number, key: string) => void): void {
    if (!this.stack) {
      if (typeof keys !== 'string') throw keyInvalid(keys, 'key')
      run(0, keys)
      return
    }
    if (typeof keys !== 'object' || keys === null) throw keyInvalid(keys, 'keys')
    rejectUnknown(
      this.policies.map(({ name }) => name),
      keys,
      'keys',
    )
    this.policies.forEach(({ name }, policy) => {
      const key = Object.hasOwn(keys, name) ? (keys as Readonly<Record<string, unknown>>)[name] : undefined
      if (key === undefined) return
      if (typeof key !== 'string') throw keyInvalid(key, `keys.${name}`)
      run(policy, key)
    })
  }

  private checkOwn(decision: Decision): void {
    if (decision instanceof Decision && decision.source.issuer === (this as Issuer)) return
    throw new CatracaError(
      'CATRACA_DECISION_FOREIGN',
      `the decision was made by another limiter than ${show(this.name)}`,
    )
  }

  private checkOpen(): void {
    if (this.closed) throw new CatracaError('CATRACA_LIMITER_CLOSED', `limiter ${show(this.name)} was closed`)
  }
}

const takeOptions = ['cost', 'now'] as const
/** Used share from which `nearLimit` is emitted. */
const nearShare = 0.8
/** Microseconds stay below 2^53. */
const maxNowMs = 9_000_000_000_000

function checkTakeOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    rejectUnknown(takeOptions, options, 'options')
  for (const name in options as object)
    if (name !== 'cost' && name !== 'now') rejectUnknown(takeOptions, options, 'options')
}

export function listenerInvalid(listener: unknown, path: string): CatracaError {
  const message = `${path} is ${show(listener)}; allowed: a function`
  return new CatracaError('CATRACA_OPTION_INVALID', message, { path, value: listener })
}

function keyInvalid(key: unknown, path: string): CatracaError {
  const allowed = path === 'keys' ? 'an object with a text for each policy' : 'a text'
  return new CatracaError('CATRACA_KEY_INVALID', `${path} is ${show(key)}; allowed: ${allowed}`, { path, value: key })
}
