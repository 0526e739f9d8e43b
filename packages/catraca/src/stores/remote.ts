import type { Decision, LeaseTerms, Source } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import type { StoreHooks } from './store.ts'

/** What decides when the shared store does not answer: a share of the limit kept here, everybody passes, nobody does. */
export type StoreFailureMode = 'local' | 'open' | 'closed'

/** How many instances share a limit, and what all of them together may admit, while the store is gone. */
export interface StoreFailureOptions {
  /** A whole number from 1 to 100,000, or `live`: counted in the store, the last count kept while it is gone. */
  readonly expectedInstances: number | 'live'
  /** Units that all instances together admit, over all keys, by policies in mode `local`. Default: no ceiling. */
  readonly ceiling?: { readonly limit: number; readonly windowUs: number }
}

/** `healthy`: the store decides. `degraded`: declared modes decide. `probing`: they do, while one trial call is under way. */
export type Health = 'healthy' | 'degraded' | 'probing'

/** What a remote store tells the limiter that uses it. Nothing here is called for a single decision that went well. */
export interface RemoteHooks extends StoreHooks {
  /** Declared modes decide from now on. */
  degraded(cause: unknown): void
  /** The store decides again; `decisions` were made without it. */
  recovered(durationMs: number, decisions: number): void
  /** The store works and cannot answer for one key, which was left as it is; its policy's mode decided. */
  faulty(policy: string, key: string, cause: unknown): void
  /** The store lost its memory or was replaced; `decisionsAtRisk` were charged since it was last known to be the same. */
  lost(kind: 'restart' | 'flush' | 'failover', decisionsAtRisk: number): void
  /** The event loop of this process stood still for longer than the deadline: the store is not to blame. */
  paused(pauseMs: number): void
}

/**
 * Where limiters of many processes share their states. Every answer takes a trip. Made by `redisStore`; other stores are
 * given to limiters and guards the same way.
 */
export interface RemoteStore {
  readonly remote: true
  /**
   * What is charged all or nothing: `stack`, all policies that are asked together; `tag`, those under equal tags, while
   * others are charged each alone and given back where one refuses (a cluster).
   */
  readonly atomic: 'stack' | 'tag'
  /** Set where the processes of one machine share the memory of one of them. */
  readonly siblings?: Siblings
  /** Begins a limiter's use of the store, as `Store.open`. */
  open(name: string, policies: readonly Source[], hooks: RemoteHooks, failure: StoreFailureOptions): RemoteLedger
  /** Ends the use by all limiters; the client stays the user's. */
  close(): void
}

/** Processes of one machine whose limits hold together. */
export interface Siblings {
  /** How many there are. */
  readonly count: number
  /** How they hold units of a rule whose policy says neither `lease` nor `exact`; undefined: they ask each time. */
  lease(rule: Rule): LeaseTerms | undefined
}

/**
 * One limiter's states in a remote store. As `Ledger`, with answers that are promised; none of them rejects. Without the
 * store each policy's own mode answers, and the decision is `degraded`.
 *
 * `tags` go with the keys: policies asked together under equal tags are charged all or nothing in one trip in a cluster
 * too. A single server needs no tags. Undefined: each key is its own tag.
 */
export interface RemoteLedger {
  readonly health: Health
  /** The answer of {@link RemoteLedger.apply} where it is known without a trip; undefined: ask. */
  tryApply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Decision | undefined
  /** Evaluates some policies and charges all or none, as `Ledger.applySome`. With `charge` false nothing is written. */
  apply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
  ): Promise<Decision>
  /**
   * Charges one policy with as many units as pass, at least `least`, at most `most`: an admitted decision whose cost they
   * are, or a refusal of `least`. For policies with a `lease`, whose units are asked for in no other way; see
   * `docs/guides/distributed.md` for what happens after the store lost its memory. Rejects with a {@link StoreFault}.
   *
   * @param patient Nobody waits for the answer: the question may be held for some turns to travel with others.
   */
  grant(
    member: number,
    key: string,
    tag: string | undefined,
    least: number,
    most: number,
    patient?: boolean,
  ): Promise<Decision>
  /**
   * Charges one policy if its units start soon enough, as `Ledger.reserve`, over one trip. Without the store the policy's
   * mode answers: `local` reserves in its share, `open` passes at once, `closed` refuses.
   */
  reserve(member: number, key: string, tag: string | undefined, cost: number, maxWaitUs: number): Promise<Decision>
  /**
   * Charges some policies with as many units as pass under all of them, at most `most`, at least one, in one trip: an
   * admitted decision whose cost they are, or a refusal of one unit. All policies have the same cost.
   */
  applyUpTo(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    most: number,
  ): Promise<Decision>
  /** What the declared modes say: for a question that the store did not answer. */
  declared(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Decision
  /** Charges units unasked; does nothing where the store does not answer. */
  charge(member: number, key: string, tag: string | undefined, units: number): Promise<void>
  /** As `Ledger.refund`; 0 where the store does not answer. A permit is given back the same way. */
  refund(decision: Decision, units: number): Promise<number>
  /** As `Ledger.settle`; 0 where the store does not answer. */
  settle(decision: Decision, units: number): Promise<number>
  /** Makes a permit last for another `permitTtl` from now. False when it had expired, or the store does not answer. */
  renew(decision: Decision): Promise<boolean>
  /** Forgets the state of a key and its block. Rejects when the store does not answer. */
  reset(member: number, key: string, tag: string | undefined): Promise<void>
  /** Refuses a key for so long, whatever its limit says; 0 ends that. Rejects when the store does not answer. */
  block(member: number, key: string, tag: string | undefined, us: number): Promise<void>
  /** Puts a new list of policies in place of the old one, as `Ledger.replace`, and new figures for an outage. */
  replace(policies: readonly Source[], failure: StoreFailureOptions): void
  close(): void
}

/**
 * The part of a remote store that only asks: what {@link RemoteLedger} is built on. Its promises reject with a
 * {@link StoreFault} after the deadline of the store at the latest; it decides nothing without the store.
 */
export interface CentralLedger {
  tryApply: RemoteLedger['tryApply']
  /** As {@link RemoteLedger.apply}; where `otherwise` is given it decides what fails, in place of a rejection. */
  apply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
    otherwise?: (fault: unknown) => Decision,
  ): Promise<Decision>
  grant: RemoteLedger['grant']
  reserve: RemoteLedger['reserve']
  applyUpTo: RemoteLedger['applyUpTo']
  refund: RemoteLedger['refund']
  settle: RemoteLedger['settle']
  renew: RemoteLedger['renew']
  reset: RemoteLedger['reset']
  block: RemoteLedger['block']
  /** Charges units unasked, such as those admitted while the store was gone. */
  charge(member: number, key: string, tag: string | undefined, units: number): Promise<void>
  replace(policies: readonly Source[]): void
  close(): void
}

/** What the parts of one store share: whether it answers, and how many instances use it. */
export interface Central {
  open(name: string, policies: readonly Source[]): CentralLedger
  /** Asks the store for something small that also writes. Rejects as a decision would. */
  probe(): Promise<void>
  /** Instances that used the store lately, this one included; undefined when it was never asked. */
  readonly liveInstances: number | undefined
}

/** `gone`: no connection. `slow`: no answer in time. `refuses`: it answers that it cannot serve. `key`: one key is unfit. */
export type FaultKind = 'gone' | 'slow' | 'refuses' | 'key'

/** Why a store did not decide. */
export class StoreFault extends Error {
  override readonly name = 'StoreFault'
  readonly kind: FaultKind

  constructor(kind: FaultKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
  }
}
