import { type Decision, type MemoryStore, memoryStore, type RemoteStore, type Rule } from 'catraca'
import { nowUs } from '../../src/core/clock.ts'
import type { Source } from '../../src/core/decision.ts'
import { FailoverLedger } from '../../src/stores/failure/failover-ledger.ts'
import { StoreHealth } from '../../src/stores/failure/store-health.ts'
import { grantFrom } from '../../src/stores/memory/grant-from.ts'
import {
  type Central,
  type CentralLedger,
  type FaultKind,
  type RemoteHooks,
  type StoreFailureOptions,
  StoreFault,
} from '../../src/stores/remote.ts'

/** A call that reached the store, or would have. */
type Call =
  | 'apply'
  | 'grant'
  | 'refund'
  | 'renew'
  | 'reset'
  | 'block'
  | 'charge'
  | 'probe'
  | 'reserve'
  | 'upTo'
  | 'settle'

/** States that several processes share: those of a name are opened once. */
interface States {
  readonly store: MemoryStore
  readonly open: Map<string, { readonly ledger: ReturnType<MemoryStore['open']>; readonly users: number }>
}

/** A shared store in memory that can be told to fail. It stands in for time and faults, not for Redis. */
export class FaultyStore implements Central, RemoteStore {
  readonly remote = true
  readonly atomic = 'stack'
  readonly health = new StoreHealth(this)
  readonly local: MemoryStore = memoryStore()
  /** Calls that were sent, answered or not. */
  readonly sent: Call[] = []
  /** Units that were asked for to be held. */
  readonly asked: { key: string; least: number; most: number }[] = []
  /** Hooks of all that opened it. */
  readonly hooks: RemoteHooks[] = []
  /** What answers wait for. */
  until: Promise<unknown> = Promise.resolve()
  /** Units charged unasked, by key. */
  readonly charged: { key: string; units: number }[] = []
  /** With what every call fails; undefined: none does. */
  fault: Exclude<FaultKind, 'key'> | undefined
  /** With what the next calls fail, one after the other. */
  readonly nextFaults: FaultKind[] = []
  /** Keys that the store cannot answer for. */
  readonly unfit = new Set<string>()
  liveInstances: number | undefined
  private readonly states: States

  /** @param sibling The store of another process, with which this one shares its states. */
  constructor(sibling?: FaultyStore) {
    this.states = sibling?.states ?? { store: memoryStore(), open: new Map() }
  }

  open(name: string, policies: readonly Source[]): CentralLedger
  open(name: string, policies: readonly Source[], hooks: RemoteHooks, failure: StoreFailureOptions): FailoverLedger
  open(
    name: string,
    policies: readonly Source[],
    hooks?: RemoteHooks,
    failure: StoreFailureOptions = { expectedInstances: 1 },
  ): CentralLedger | FailoverLedger {
    if (hooks === undefined) return this.openCentral(name, policies)
    this.hooks.push(hooks)
    return new FailoverLedger(this.health, this.local, name, policies, hooks, failure)
  }

  async probe(): Promise<void> {
    await this.trip('probe')
  }

  close(): void {
    this.health.close()
    this.local.close()
  }

  private openCentral(name: string, policies: readonly Source[]): CentralLedger {
    const { store, open } = this.states
    const hooks = { evicted: () => {}, rebased: () => {}, closed: () => {} }
    const { ledger, users } = open.get(name) ?? { ledger: store.open(name, policies, hooks), users: 0 }
    open.set(name, { ledger, users: users + 1 })
    return {
      tryApply: () => undefined,
      apply: async (members, keys, _tags, costs, charge, otherwise) => {
        try {
          await this.trip('apply', keys)
        } catch (fault) {
          if (otherwise === undefined) throw fault
          return otherwise(fault)
        }
        return ledger.applySome(members, keys, costs, undefined, charge)
      },
      grant: async (member, key, _tag, least, most) => {
        this.asked.push({ key, least, most })
        await this.trip('grant', [key])
        return grantFrom(ledger, member, key, least, most)
      },
      reserve: async (member, key, _tag, cost, maxWaitUs) => {
        await this.trip('reserve', [key])
        return ledger.reserve(member, key, cost, undefined, maxWaitUs)
      },
      applyUpTo: async (members, keys, _tags, most) => {
        await this.trip('upTo', keys)
        const ones = members.map(() => 1)
        const { allowed, stack } = ledger.applySome(members, keys, ones, undefined, false)
        const units = allowed ? Math.min(most, ...stack.map(({ remaining }) => remaining)) : 1
        return ledger.applySome(
          members,
          keys,
          ones.map(() => units),
          undefined,
          true,
        )
      },
      settle: async (decision, units) => {
        await this.trip('settle')
        return ledger.settle(decision, units, nowUs())
      },
      refund: async (decision, units) => {
        // What becomes of the decision on the way is not sent.
        const sent = Object.assign(Object.create(Object.getPrototypeOf(decision) as object), decision) as Decision
        await this.trip('refund')
        return ledger.refund(sent, units, nowUs())
      },
      renew: async () => {
        await this.trip('renew')
        return true
      },
      reset: async (member, key) => {
        await this.trip('reset', [key])
        ledger.reset(member, key)
      },
      block: async (_member, key) => this.trip('block', [key]),
      charge: async (member, key, _tag, units) => {
        await this.trip('charge', [key])
        this.charged.push({ key, units })
        ledger.applySome([member], [key], [units], undefined, true)
      },
      replace: (next) => ledger.replace(next),
      close: () => {
        const left = (open.get(name)?.users ?? 1) - 1
        if (left > 0) open.set(name, { ledger, users: left })
        else {
          open.delete(name)
          ledger.close()
        }
      },
    }
  }

  /** One way to the store and back, after which it may have failed. */
  private async trip(call: Call, keys: readonly string[] = []): Promise<void> {
    this.sent.push(call)
    await this.until
    const kind = this.nextFaults.shift() ?? this.fault ?? (keys.some((key) => this.unfit.has(key)) ? 'key' : undefined)
    if (kind !== undefined) throw new StoreFault(kind, `told to be ${kind}`)
  }
}

/** A rule under its name, with its mode. */
export type Named = readonly [name: string, rule: Rule, mode?: 'local' | 'open' | 'closed']

/** What hooks told, in order. */
export type Told =
  | { hook: 'degraded'; cause: unknown }
  | { hook: 'recovered'; durationMs: number; decisions: number }
  | { hook: 'faulty'; policy: string; key: string }

/** One ledger of an instance, asked about keys in the order of its policies. */
export class Instance {
  readonly store: FaultyStore
  readonly ledger: FailoverLedger
  readonly told: Told[] = []
  private readonly members: readonly number[]

  constructor(policies: readonly Named[], failure: StoreFailureOptions, store = new FaultyStore(), name = 'api') {
    this.store = store
    this.members = policies.map((_, member) => member)
    const hooks: RemoteHooks = {
      evicted: () => {},
      rebased: () => {},
      closed: () => {},
      degraded: (cause) => this.told.push({ hook: 'degraded', cause }),
      recovered: (durationMs, decisions) => this.told.push({ hook: 'recovered', durationMs, decisions }),
      faulty: (policy, key) => this.told.push({ hook: 'faulty', policy, key }),
      lost: () => {},
      paused: () => {},
    }
    this.ledger = store.open(name, sources(policies), hooks, failure)
  }

  ask(keys: string | readonly string[], cost: number | readonly number[] = 1, charge = true): Promise<Decision> {
    const texts = this.members.map((member) => (typeof keys === 'string' ? keys : (keys[member] as string)))
    const costs = this.members.map((member) => (typeof cost === 'number' ? cost : (cost[member] as number)))
    return this.ledger.apply(this.members, texts, undefined, costs, charge)
  }

  /** How many of so many requests for one unit pass. */
  async admitted(requests: number, keyOf: (request: number) => string): Promise<number> {
    let admitted = 0
    for (let request = 0; request < requests; request++) if ((await this.ask(keyOf(request))).allowed) admitted++
    return admitted
  }

  /** Makes the store fail, so that nothing is sent any more. */
  async lose(): Promise<void> {
    this.store.nextFaults.push('refuses')
    this.store.fault = 'gone'
    await this.ask(this.members.map(() => 'lost first'))
  }
}

export function sources(policies: readonly Named[]): Source[] {
  return policies.map(([name, rule, onStoreFailure]) => ({
    name,
    rule,
    issuer: { release: () => {} },
    ...(onStoreFailure !== undefined && { onStoreFailure }),
  }))
}
