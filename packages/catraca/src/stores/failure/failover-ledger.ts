import { nowUs as clockUs } from '../../core/clock.ts'
import type { Decision, Source } from '../../core/decision.ts'
import { CatracaError } from '../../core/errors.ts'
import { storedKey } from '../key.ts'
import {
  type CentralLedger,
  type Health,
  type RemoteHooks,
  type RemoteLedger,
  type StoreFailureOptions,
  StoreFault,
} from '../remote.ts'
import type { Store } from '../store.ts'
import { aside } from './aside.ts'
import { Fallback, isQuota, memberOf } from './fallback.ts'
import type { Owed } from './quota-shares.ts'
import { kindOf, type StoreHealth } from './store-health.ts'

/** Unfit keys that are remembered as told of; at the bound the oldest may be told of again. */
const faultsKept = 1_000
/** Charges of quotas under way at once after an outage. */
const chargesAtOnce = 16

/**
 * One limiter's states in a remote store, and what decides without it: while the store answers, every question goes
 * there; a question that it does not answer is decided here, by the declared modes ({@link Fallback}), and never rejects.
 * While nothing may be sent ({@link StoreHealth}) decisions are made at once.
 *
 * A call that the store answered too late may be charged there and here: that errs against the caller, once.
 */
export class FailoverLedger implements RemoteLedger {
  private readonly storeHealth: StoreHealth
  private readonly central: CentralLedger
  private readonly fallback: Fallback
  private readonly hooks: RemoteHooks
  private live: boolean
  private readonly leave: () => void
  private policies: readonly Source[]
  private hasQuota: boolean
  private instances: number
  /** Decided without the store since the last outage began. */
  private decisions = 0
  private readonly told = new Set<string>()
  private closed = false

  /** `local` keeps the states of outages; one memory store serves all ledgers of a remote store. Throws as `Store.open`. */
  constructor(
    health: StoreHealth,
    local: Store,
    name: string,
    policies: readonly Source[],
    hooks: RemoteHooks,
    failure: StoreFailureOptions,
  ) {
    this.storeHealth = health
    this.hooks = hooks
    this.policies = policies
    this.hasQuota = policies.some(isQuota)
    this.live = failure.expectedInstances === 'live'
    this.instances = failure.expectedInstances === 'live' ? 1 : failure.expectedInstances
    this.count()
    this.fallback = new Fallback(local, name, policies, hooks, failure.ceiling, this.instances)
    try {
      this.central = health.central.open(name, policies)
    } catch (error) {
      this.fallback.close()
      throw error
    }
    this.leave = health.join({
      degraded: (cause) => {
        this.decisions = 0
        this.count()
        aside(() => hooks.degraded(cause))
      },
      recovered: (durationMs) => {
        const { decisions } = this
        void this.writeBack()
        aside(() => hooks.recovered(durationMs, decisions))
      },
    })
  }

  get health(): Health {
    return this.storeHealth.state
  }

  tryApply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Decision | undefined {
    if (this.storeHealth.state === 'healthy') return this.central.tryApply(members, keys, tags, costs)
    return this.storeHealth.mayAsk() ? undefined : this.decide(members, keys, tags, costs, true)
  }

  apply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
  ): Promise<Decision> {
    const { storeHealth, policies } = this
    if (!storeHealth.mayAsk()) return Promise.resolve(this.decide(members, keys, tags, costs, charge))
    if (storeHealth.state === 'healthy' && !this.hasQuota) {
      // The common way: an answer of a healthy store tells nothing new, so nothing waits for it but the caller.
      const begun = storeHealth.begin()
      return this.central.apply(members, keys, tags, costs, charge, (cause) => {
        storeHealth.failed(begun, cause)
        return this.instead(policies, members, keys, tags, costs, charge, cause)
      })
    }
    return this.ask(
      async () => {
        const decision = await this.central.apply(members, keys, tags, costs, charge)
        if (this.hasQuota) for (const one of decision.stack) if (isQuota(one.source)) this.fallback.quotas.seen(one)
        return decision
      },
      (cause) => this.instead(policies, members, keys, tags, costs, charge, cause),
    )
  }

  grant(
    member: number,
    key: string,
    tag: string | undefined,
    least: number,
    most: number,
    patient?: boolean,
  ): Promise<Decision> {
    const { storeHealth, policies } = this
    if (!storeHealth.mayAsk()) return Promise.reject(new StoreFault('gone', 'the store does not answer'))
    const call = (): Promise<Decision> => this.central.grant(member, key, tag, least, most, patient)
    const failed = (cause: unknown): never => {
      if (kindOf(cause) === 'key') this.tell(policies, [member], [key], cause)
      throw cause
    }
    if (storeHealth.state !== 'healthy') return this.ask(call, failed)
    // As in apply: an answer of a healthy store tells nothing new.
    const begun = storeHealth.begin()
    return call().catch((cause: unknown) => {
      storeHealth.failed(begun, cause)
      return failed(cause)
    })
  }

  async reserve(
    member: number,
    key: string,
    tag: string | undefined,
    cost: number,
    maxWaitUs: number,
  ): Promise<Decision> {
    const { policies } = this
    const otherwise = (): Decision => {
      this.decisions++
      this.fallback.divideAmong(this.instances)
      return this.fallback.reserve(member, key, cost, maxWaitUs, policies)
    }
    if (!this.storeHealth.mayAsk()) return otherwise()
    return this.ask(
      () => this.central.reserve(member, key, tag, cost, maxWaitUs),
      (cause) => {
        if (kindOf(cause) === 'key') this.tell(policies, [member], [key], cause)
        return otherwise()
      },
    )
  }

  async applyUpTo(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    most: number,
  ): Promise<Decision> {
    const { policies } = this
    const otherwise = (): Decision => {
      this.decisions++
      this.fallback.divideAmong(this.instances)
      return this.fallback.decideUpTo(members, keys, tags, most, policies)
    }
    if (!this.storeHealth.mayAsk()) return otherwise()
    return this.ask(
      async () => {
        const decision = await this.central.applyUpTo(members, keys, tags, most)
        if (this.hasQuota) for (const one of decision.stack) if (isQuota(one.source)) this.fallback.quotas.seen(one)
        return decision
      },
      (cause) => {
        if (kindOf(cause) === 'key') this.tell(policies, members, keys, cause)
        return otherwise()
      },
    )
  }

  async settle(decision: Decision, units: number): Promise<number> {
    if (decision.degraded) return this.fallback.settle(decision, units)
    if (!this.storeHealth.mayAsk()) return 0
    return this.ask(
      () => this.central.settle(decision, units),
      () => 0,
    )
  }

  declared(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Decision {
    return this.decide(members, keys, tags, costs, true)
  }

  async charge(member: number, key: string, tag: string | undefined, units: number): Promise<void> {
    if (!this.storeHealth.mayAsk()) return
    await this.ask(
      () => this.central.charge(member, key, tag, units),
      () => {},
    )
  }

  refund(decision: Decision, units: number): Promise<number> {
    if (decision.degraded) return Promise.resolve(this.fallback.refund(decision, units))
    if (!this.storeHealth.mayAsk()) return Promise.resolve(0)
    return this.ask(
      () => this.central.refund(decision, units),
      () => 0,
    )
  }

  renew(decision: Decision): Promise<boolean> {
    if (decision.degraded) return Promise.resolve(this.fallback.renew(decision))
    if (!this.storeHealth.mayAsk()) return Promise.resolve(false)
    return this.ask(
      () => this.central.renew(decision),
      () => false,
    )
  }

  async reset(member: number, key: string, tag: string | undefined): Promise<void> {
    const source = this.policies[member] as Source
    await this.insist('reset', () => this.central.reset(member, key, tag))
    this.fallback.reset(source, key)
  }

  async block(member: number, key: string, tag: string | undefined, us: number): Promise<void> {
    await this.insist('block', () => this.central.block(member, key, tag, us))
  }

  replace(policies: readonly Source[], failure: StoreFailureOptions): void {
    const { expectedInstances, ceiling } = failure
    this.live = expectedInstances === 'live'
    if (expectedInstances !== 'live') this.instances = expectedInstances
    this.count()
    this.policies = policies
    this.hasQuota = policies.some(isQuota)
    this.central.replace(policies)
    this.fallback.replace(policies, ceiling, this.instances)
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.leave()
    this.fallback.close()
    this.central.close()
  }

  /** Decides a question that failed; `policies` are those it was asked of, as others may have come meanwhile. */
  private instead(
    policies: readonly Source[],
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
    cause: unknown,
  ): Decision {
    if (kindOf(cause) === 'key') this.tell(policies, members, keys, cause)
    return this.decide(members, keys, tags, costs, charge, policies)
  }

  /** Decides without the store. */
  private decide(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
    policies = this.policies,
  ): Decision {
    if (charge) this.decisions++
    this.fallback.divideAmong(this.instances)
    return this.fallback.decide(members, keys, tags, costs, charge, policies)
  }

  /** Sends a call and takes note of how the store did. */
  private async ask<T>(call: () => Promise<T>, otherwise: (cause: unknown) => T): Promise<T> {
    const begun = this.storeHealth.begin()
    let answer: T
    try {
      answer = await call()
    } catch (cause) {
      this.storeHealth.failed(begun, cause)
      return otherwise(cause)
    }
    this.storeHealth.succeeded(begun)
    this.count()
    return answer
  }

  /** Sends what nothing here can stand in for. */
  private async insist(verb: string, call: () => Promise<void>): Promise<void> {
    if (!this.storeHealth.mayAsk()) throw unavailable(verb, undefined)
    await this.ask(call, (cause) => {
      throw unavailable(verb, cause)
    })
  }

  /** Takes over how many instances there are; the last number stays while the store is gone. */
  private count(): void {
    if (!this.live) return
    this.instances = Math.max(1, this.storeHealth.central.liveInstances ?? this.instances)
  }

  /** Which of the keys asked together is unfit, the fault does not say: all of them are told of, each once. */
  private tell(policies: readonly Source[], members: readonly number[], keys: readonly string[], cause: unknown): void {
    for (const [index, member] of members.entries()) {
      const { name } = policies[member] as Source
      const key = keys[index] as string
      const told = `${name} ${storedKey(key)}`
      if (this.told.has(told)) continue
      this.told.add(told)
      if (this.told.size > faultsKept) {
        const [oldest] = this.told
        this.told.delete(oldest as string)
      }
      aside(() => this.hooks.faulty(name, key, cause))
    }
  }

  /** Charges the store what quotas granted without it; what fails is tried again after the next outage. */
  private async writeBack(): Promise<void> {
    const due = this.fallback.quotas.takeOwed(clockUs())
    let next = 0
    const work = async (): Promise<void> => {
      for (let one = due[next++]; one !== undefined; one = due[next++]) one.settle(await this.payBack(one.owed))
    }
    await Promise.all(Array.from({ length: Math.min(chargesAtOnce, due.length) }, work))
  }

  /** True when the units are charged, or nobody counts them any more. */
  private async payBack({ source, key, tag, units }: Owed): Promise<boolean> {
    const member = memberOf(this.policies, source)
    if (member < 0) return true
    if (this.closed || !this.storeHealth.mayAsk()) return false
    return this.ask(
      async () => {
        await this.central.charge(member, key, tag, units)
        return true
      },
      () => false,
    )
  }
}

function unavailable(verb: string, cause: unknown): CatracaError {
  const why = cause instanceof Error ? `: ${cause.message}` : ''
  return new CatracaError('CATRACA_STORE_UNAVAILABLE', `the shared store did not answer a ${verb}${why}`, { cause })
}
