import type { Decision, Issuer, Source } from '../core/decision.ts'
import { Spread } from '../limiter/spread.ts'
import { SpreadRemoteLedger } from '../limiter/spread-remote.ts'
import { LeasedLedger } from '../stores/lease/leased-ledger.ts'
import type { Health, RemoteHooks, RemoteLedger, RemoteStore, StoreFailureOptions } from '../stores/remote.ts'
import { HeldPermits } from './held-permits.ts'

/** Some policies that are asked together, by their places in the ledger. */
export interface Question {
  readonly members: readonly number[]
  readonly keys: readonly string[]
  readonly costs: readonly number[]
  /** Undefined: each key is its own. */
  readonly tags: readonly string[] | undefined
}

/** The policies of a document whose states live in a shared store. */
export class SharedPart implements Issuer {
  private readonly ledger: RemoteLedger
  private readonly held = new HeldPermits((decision) => void this.ledger.renew(decision))

  constructor(
    store: RemoteStore,
    name: string,
    sourcesFor: (issuer: Issuer) => Source[],
    failure: StoreFailureOptions,
    hooks: RemoteHooks,
  ) {
    const spread = new Spread(sourcesFor(this))
    this.ledger = new SpreadRemoteLedger(new LeasedLedger(store, name, spread.policies, hooks, failure), spread)
  }

  get health(): Health {
    return this.ledger.health
  }

  /** Charges all policies or none, at once where the answer is known without a trip. */
  take({ members, keys, costs, tags }: Question): Decision | Promise<Decision> {
    return this.ledger.tryApply(members, keys, tags, costs) ?? this.ledger.apply(members, keys, tags, costs, true)
  }

  peek({ members, keys, costs, tags }: Question): Promise<Decision> {
    return this.ledger.apply(members, keys, tags, costs, false)
  }

  /** Charges one policy if its units start at most `maxWaitUs` from now. */
  reserve(
    member: number,
    key: string,
    tag: string | undefined,
    cost: number,
    maxWaitUs: number,
  ): Decision | Promise<Decision> {
    return this.ledger.reserve(member, key, tag, cost, maxWaitUs)
  }

  /** Gives back what policies charged that wait; says how many units of the last one came back. */
  async refund({ stack }: Decision): Promise<number> {
    const given = await Promise.all(stack.map((one) => this.ledger.refund(one, one.cost)))
    return given.at(-1) ?? 0
  }

  /** Makes a charge what it really cost. */
  settle(decision: Decision, units: number): void {
    void this.ledger.settle(decision, units)
  }

  /** Notes that a request goes on with what it was admitted to. */
  admitted(decision: Decision): void {
    if (decision.source.rule.holds && decision.charged > 0) this.held.add(decision)
  }

  /** Gives back what was charged; of permits once. Nobody waits for it. */
  giveBack(decision: Decision): void {
    if (decision.source.rule.holds && !this.held.remove(decision)) return
    if (decision.charged === 0) return
    void this.ledger.refund(decision, decision.cost)
  }

  release(decision: Decision): void {
    if (decision.source.rule.holds) this.giveBack(decision)
  }

  replace(sourcesFor: (issuer: Issuer) => Source[], failure: StoreFailureOptions): void {
    this.ledger.replace(sourcesFor(this), failure)
  }

  close(): void {
    this.held.stop()
    this.ledger.close()
  }
}
