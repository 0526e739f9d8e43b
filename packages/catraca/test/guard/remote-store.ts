import { type Decision, type MemoryStore, memoryStore } from 'catraca'
import type * as DecisionModule from '../../src/core/decision.ts'
import type * as ReasonModule from '../../src/core/reason.ts'
import type * as GrantModule from '../../src/stores/memory/grant-from.ts'
import type { Health, RemoteHooks, RemoteLedger, RemoteStore, StoreFailureOptions } from '../../src/stores/remote.ts'

type Ledger = ReturnType<MemoryStore['open']>
type Source = Parameters<Ledger['replace']>[0][number]

/** A literal path into another project is an error of the compiler. */
const [decisionFile, reasonFile, grantFile] = ['core/decision', 'core/reason', 'stores/memory/grant-from'].map(
  (file) => new URL(`../../src/${file}.ts`, import.meta.url).href,
) as [string, string, string]
const { Decision: MadeDecision, decide, degraded } = (await import(decisionFile)) as typeof DecisionModule
const { grantFrom } = (await import(grantFile)) as typeof GrantModule
const { reasonCode } = (await import(reasonFile)) as typeof ReasonModule

/** One question that took a trip. */
export interface Trip {
  readonly policies: readonly string[]
  readonly keys: readonly string[]
  readonly tags: readonly string[] | undefined
  readonly costs: readonly number[]
  readonly charge: boolean
}

/** A remote store whose states are in a memory store of the test: it promises its answers, counts its trips, can fail. */
export class FakeRemoteStore implements RemoteStore {
  readonly remote = true
  readonly atomic = 'stack'
  readonly trips: Trip[] = []
  /** Refunds and releases, by policy. */
  readonly returned: string[] = []
  /** Permits that were renewed, by key. */
  readonly renewed: string[] = []
  health: Health = 'healthy'
  /** Answers at once what a trip would, for policies of these names. */
  known: readonly string[] = []
  /** What answers wait for. */
  until: Promise<unknown> = Promise.resolve()
  opened: { name: string; policies: readonly Source[]; hooks: RemoteHooks; failure: StoreFailureOptions } | undefined
  private readonly memory = memoryStore()

  open(name: string, policies: readonly Source[], hooks: RemoteHooks, failure: StoreFailureOptions): RemoteLedger {
    this.opened = { name, policies, hooks, failure }
    return new FakeRemoteLedger(this, this.memory.open(name, policies, hooks), policies)
  }

  /** Trips that charge, each as the names of its policies. */
  get asked(): string[] {
    return this.trips.filter(({ charge }) => charge).map(({ policies }) => policies.join('+'))
  }

  close(): void {
    this.memory.close()
  }
}

class FakeRemoteLedger implements RemoteLedger {
  private readonly store: FakeRemoteStore
  private readonly ledger: Ledger
  private policies: readonly Source[]

  constructor(store: FakeRemoteStore, ledger: Ledger, policies: readonly Source[]) {
    this.store = store
    this.ledger = ledger
    this.policies = policies
  }

  get health(): Health {
    return this.store.health
  }

  tryApply(
    members: readonly number[],
    keys: readonly string[],
    _tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Decision | undefined {
    const known = members.every((member) => this.store.known.includes(this.nameOf(member)))
    return known ? this.decide(members, keys, costs, true) : undefined
  }

  async apply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
  ): Promise<Decision> {
    this.store.trips.push({ policies: members.map((member) => this.nameOf(member)), keys, tags, costs, charge })
    await this.store.until
    return this.decide(members, keys, costs, charge)
  }

  async grant(member: number, key: string, tag: string | undefined, least: number, most: number): Promise<Decision> {
    const tags = tag === undefined ? undefined : [tag]
    this.store.trips.push({ policies: [this.nameOf(member)], keys: [key], tags, costs: [most], charge: true })
    await this.store.until
    if (this.store.health !== 'healthy') throw new Error('the store is away')
    return grantFrom(this.ledger, member, key, least, most)
  }

  async reserve(
    member: number,
    key: string,
    tag: string | undefined,
    cost: number,
    maxWaitUs: number,
  ): Promise<Decision> {
    const tags = tag === undefined ? undefined : [tag]
    this.store.trips.push({ policies: [this.nameOf(member)], keys: [key], tags, costs: [cost], charge: true })
    await this.store.until
    return this.ledger.reserve(member, key, cost, undefined, maxWaitUs)
  }

  async applyUpTo(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    most: number,
  ): Promise<Decision> {
    const peeked = this.decide(members, keys, [...members].fill(1), false)
    const units = peeked.allowed ? Math.min(most, ...peeked.stack.map(({ remaining }) => remaining)) : 1
    return this.apply(members, keys, tags, [...members].fill(units), true)
  }

  async settle(decision: Decision, units: number): Promise<number> {
    return this.ledger.settle(decision, units, Date.now() * 1_000)
  }

  declared(
    members: readonly number[],
    keys: readonly string[],
    _tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Decision {
    return this.decide(members, keys, costs, true)
  }

  async charge(member: number, key: string, _tag: string | undefined, units: number): Promise<void> {
    this.ledger.applySome([member], [key], [units], undefined, true)
  }

  async refund(decision: Decision, units: number): Promise<number> {
    this.store.returned.push(decision.policy)
    return this.ledger.refund(decision, units, Date.now() * 1_000)
  }

  async renew({ key }: Decision): Promise<boolean> {
    this.store.renewed.push(key)
    return true
  }

  async reset(member: number, key: string): Promise<void> {
    this.ledger.reset(member, key)
  }

  async block(): Promise<void> {}

  replace(policies: readonly Source[], failure: StoreFailureOptions): void {
    if (this.store.opened !== undefined) this.store.opened.failure = failure
    this.policies = policies
    this.ledger.replace(policies)
  }

  close(): void {
    this.ledger.close()
  }

  private nameOf(member: number): string {
    return (this.policies[member] as Source).name
  }

  /** While degraded, policies in mode `closed` refuse and with them their stack; the others count as ever. */
  private decide(
    members: readonly number[],
    keys: readonly string[],
    costs: readonly number[],
    charge: boolean,
  ): Decision {
    const healthy = this.store.health === 'healthy'
    const closed = members.map((member) => !healthy && this.policies[member]?.onStoreFailure === 'closed')
    const refused = closed.includes(true)
    const decision = this.ledger.applySome(members, keys, costs, undefined, charge && !refused)
    if (healthy) return decision
    const stack = decision.stack.map((one, at) => (closed[at] === true ? storeClosed(one) : marked(one)))
    return stack.length === 1 ? (stack[0] as Decision) : decide(stack, degraded)
  }
}

function marked(decision: Decision): Decision {
  decision.state |= degraded
  return decision
}

function storeClosed({ source, key, nowUs, cost }: Decision): Decision {
  return new MadeDecision(source, key, reasonCode('store-closed') | degraded, nowUs, cost, 0, 0, 0, 0, 1_000_000)
}
