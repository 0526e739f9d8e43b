import { later, nowUs } from '../core/clock.ts'
import { type Decision, decide, type Source } from '../core/decision.ts'
import { CatracaError, show } from '../core/errors.ts'
import { rejectUnknown } from '../core/parameters.ts'
import { type Random, seededRandom } from '../core/random.ts'
import { Blocks, refuseBlocked } from '../stores/blocks.ts'
import { FailoverLedger } from '../stores/failure/failover-ledger.ts'
import { StoreHealth } from '../stores/failure/store-health.ts'
import { grantFrom } from '../stores/memory/grant-from.ts'
import { type MemoryStore, memoryStore } from '../stores/memory/memory-store.ts'
import {
  type Central,
  type CentralLedger,
  type RemoteHooks,
  type RemoteStore,
  type StoreFailureOptions,
  StoreFault,
} from '../stores/remote.ts'

/** Shares of the trips to a store that fail, each from 0 to 1, together at most 1. */
export interface Faults {
  /** No connection: nothing was done. */
  readonly gone?: number
  /** It answers that it cannot serve: nothing was done. */
  readonly refuses?: number
  /** It did what it was asked, and its answer comes too late, after 50 ms. */
  readonly slow?: number
}

export interface FaultyStoreOptions {
  /** Default: none. */
  readonly faults?: Faults
  /** Milliseconds that every trip takes. Default 0: it is over in the same turn. */
  readonly delayMs?: number
  /** Which trips fail: the same seed, the same ones, by the order in which they begin. Default 1. */
  readonly seed?: number
}

/** States that several instances share: those of a name are opened once. */
interface States {
  readonly store: MemoryStore
  readonly blocks: Blocks
  readonly open: Map<string, { readonly ledger: ReturnType<MemoryStore['open']>; readonly users: number }>
}

const timeoutMs = 50

/** Made by {@link faultyStore}. */
export class FaultyStore implements RemoteStore {
  readonly remote = true
  readonly atomic = 'stack'
  /** Trips that began. */
  trips = 0
  private readonly states: States
  private readonly options: FaultyStoreOptions
  private readonly health: StoreHealth
  private readonly local = memoryStore()
  private readonly random: Random
  private failing: Faults = {}

  /** @internal */
  constructor(options: FaultyStoreOptions, states: States) {
    rejectUnknown(['faults', 'delayMs', 'seed'], options, 'options')
    const { faults = {}, delayMs = 0, seed = 1 } = options
    for (const [name, value] of Object.entries({ delayMs, seed })) {
      if (!Number.isFinite(value) || value < 0) throw invalid(`options.${name}`, value, 'a number from 0')
    }
    this.options = options
    this.states = states
    this.random = seededRandom(seed)
    this.faults = faults
    const central: Central = {
      open: (name, policies) => this.openCentral(name, policies),
      probe: () => this.trip(() => {}),
      liveInstances: undefined,
    }
    this.health = new StoreHealth(central)
  }

  /** What fails from now on: `{ gone: 1 }` is an outage, `{}` ends it. */
  get faults(): Faults {
    return this.failing
  }

  set faults(faults: Faults) {
    rejectUnknown(['gone', 'refuses', 'slow'], faults, 'faults')
    let sum = 0
    for (const [name, value] of Object.entries(faults)) {
      if (typeof value !== 'number' || !(value >= 0 && value <= 1)) throw invalid(`faults.${name}`, value, '0 to 1')
      sum += value
    }
    if (sum > 1) throw invalid('faults', sum, 'shares of at most 1 together')
    this.failing = faults
  }

  /** The store of another instance: the same states, and faults of its own. */
  sibling(options: FaultyStoreOptions = this.options): FaultyStore {
    return new FaultyStore(options, this.states)
  }

  open(name: string, policies: readonly Source[], hooks: RemoteHooks, failure: StoreFailureOptions): FailoverLedger {
    return new FailoverLedger(this.health, this.local, name, policies, hooks, failure)
  }

  close(): void {
    this.health.close()
    this.local.close()
  }

  private openCentral(name: string, policies: readonly Source[]): CentralLedger {
    const { store, open, blocks } = this.states
    const hooks = { evicted: () => {}, rebased: () => {}, closed: () => {} }
    const { ledger, users } = open.get(name) ?? { ledger: store.open(name, policies, hooks), users: 0 }
    open.set(name, { ledger, users: users + 1 })
    let names = policies.map((policy) => `${name}/${policy.name}`)
    const of = (member: number): string => names[member] as string
    const blocked = (member: number, key: string): number => blocks.waitUs(of(member), key, nowUs())

    const apply = (
      members: readonly number[],
      keys: readonly string[],
      costs: readonly number[],
      charge: boolean,
    ): Decision => {
      const waits = members.map((member, at) => blocked(member, keys[at] as string))
      const free = waits.every((wait) => wait === 0)
      const decision = ledger.applySome(members, keys, costs, undefined, charge && free)
      if (free) return decision
      const refused = decision.stack.map((one, at) => (waits[at] === 0 ? one : refuseBlocked(one, waits[at] as number)))
      return refused.length === 1 ? (refused[0] as Decision) : decide(refused, 0)
    }
    // Policies may be replaced while a trip is under way: a place is that of the list in which the question was asked.
    const send = <T>(members: readonly number[], act: (places: readonly number[]) => T): Promise<T> => {
      const asked = names
      return this.trip(() => act(names === asked ? members : members.map((member) => placeOf(names, asked, member))))
    }
    const sendOne = <T>(member: number, act: (place: number) => T): Promise<T> =>
      send([member], ([place]) => act(place as number))
    return {
      tryApply: () => undefined,
      apply: async (members, keys, _tags, costs, charge, otherwise) => {
        try {
          return await send(members, (places) => apply(places, keys, costs, charge))
        } catch (fault) {
          if (otherwise === undefined) throw fault
          return otherwise(fault)
        }
      },
      grant: (member, key, _tag, least, most) => sendOne(member, (place) => grantFrom(ledger, place, key, least, most)),
      reserve: (member, key, _tag, cost, maxWaitUs) =>
        sendOne(member, (place) => {
          const wait = blocked(place, key)
          return wait === 0
            ? ledger.reserve(place, key, cost, undefined, maxWaitUs)
            : refuseBlocked(ledger.applySome([place], [key], [cost], undefined, false), wait)
        }),
      applyUpTo: (members, keys, _tags, most) =>
        send(members, (places) => {
          const costs = (cost: number): number[] => places.map(() => cost)
          const one = apply(places, keys, costs(1), false)
          const cost = one.allowed ? Math.min(most, ...one.stack.map(({ remaining }) => remaining)) : 1
          return apply(places, keys, costs(cost), true)
        }),
      refund: (decision, units) => this.trip(() => ledger.refund(copyOf(decision), units, nowUs())),
      settle: (decision, units) => this.trip(() => ledger.settle(copyOf(decision), units, nowUs())),
      renew: () => this.trip(() => true),
      reset: (member, key) =>
        sendOne(member, (place) => {
          ledger.reset(place, key)
          blocks.remove(of(place), key)
        }),
      block: (member, key, _tag, us) =>
        sendOne(member, (place) => {
          if (us === 0) blocks.remove(of(place), key)
          else blocks.add(of(place), key, nowUs(), us)
        }),
      charge: (member, key, _tag, units) =>
        sendOne(member, (place) => void ledger.applySome([place], [key], [units], undefined, true)),
      replace: (next) => {
        names = next.map((policy) => `${name}/${policy.name}`)
        ledger.replace(next)
      },
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

  /** One way to the store and back. */
  private async trip<T>(act: () => T): Promise<T> {
    this.trips++
    // One draw per trip, so that the faults of one do not move those of the next.
    const draw = this.random()
    const { gone = 0, refuses = 0, slow = 0 } = this.failing
    await pause(this.options.delayMs ?? 0)
    if (draw < gone) throw new StoreFault('gone', 'told to be gone')
    if (draw < gone + refuses) throw new StoreFault('refuses', 'told to refuse')
    const answer = act()
    if (draw >= gone + refuses + slow) return answer
    await pause(timeoutMs)
    throw new StoreFault('slow', 'told to be slow')
  }
}

/**
 * A store that instances share, in memory, that fails as it is told: for tests of what an application does when its store is
 * slow or gone. What then decides is the library's own, as with Redis: the policies' `onStoreFailure`, a breaker after five
 * failures in a row, a trial every 500 ms. `renew` always succeeds, and the store never loses its memory.
 *
 * @param options Throws a `CatracaError` for what is not allowed.
 * @example
 * const store = faultyStore({ faults: { slow: 0.1 }, seed: 7 })
 * const limiter = createLimiter(rule, { store, storeFailure: { expectedInstances: 2 } })
 * store.faults = { gone: 1 }
 */
export function faultyStore(options: FaultyStoreOptions = {}): FaultyStore {
  return new FaultyStore(options, { store: memoryStore(), blocks: new Blocks(), open: new Map() })
}

function placeOf(names: readonly string[], asked: readonly string[], member: number): number {
  const place = names.indexOf(asked[member] as string)
  if (place < 0) throw new StoreFault('gone', `nothing counts for ${asked[member]} any more`)
  return place
}

function pause(ms: number): Promise<void> | undefined {
  if (ms === 0) return undefined
  return new Promise((resolve) => {
    if (later(ms, resolve) === undefined) resolve()
  })
}

function invalid(path: string, value: unknown, allowed: string): CatracaError {
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}

/** What becomes of a decision on the way is not sent. */
function copyOf(decision: Decision): Decision {
  return Object.assign(Object.create(Object.getPrototypeOf(decision) as object) as Decision, decision)
}
