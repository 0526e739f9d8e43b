import type { Decision, Source } from '../core/decision.ts'

/** What a store tells the limiter that uses it. */
export interface StoreHooks {
  /** The store forgot a key at its bound. */
  evicted(policy: string, key: string, limited: boolean): void
  /** A state was found more than 60 s ahead of the clock and was moved back. */
  rebased(stepMs: number): void
  /** The store was closed and does not answer any more. */
  closed(): void
}

/**
 * What a limiter asks of a store: apply one operation atomically to the states of all its policies. Never "increment a
 * key": which numbers change is the rule's business, so all rules, costs and stacks share this contract.
 * Keys come one per policy, in the order of the policies.
 */
export interface Ledger {
  /**
   * Evaluates every policy and charges all or none. With `charge` false nothing is written. Without `nowUs` the store
   * goes by its own clock.
   */
  apply(keys: readonly string[], cost: number, nowUs: number | undefined, charge: boolean): Decision
  /** The same for a limiter of one policy. */
  applyOne(key: string, cost: number, nowUs: number | undefined, charge: boolean): Decision
  /**
   * As {@link Ledger.apply} for some of the policies, each with a cost of its own: `members` are places in the list given
   * to {@link Store.open}, `keys` and `costs` go with them. The answer is a stack of one decision per member, in order.
   */
  applySome(
    members: readonly number[],
    keys: readonly string[],
    costs: readonly number[],
    nowUs: number | undefined,
    charge: boolean,
  ): Decision
  /**
   * Puts other policies in place of all: those of equal name and rule keep their states; where only the name stays, what
   * a key has used is carried over when the key comes next; what belonged to a name that is gone is forgotten.
   */
  replace(policies: readonly Source[]): void
  /** Gives back up to `units` of what a decision charged, while it still counts; says how many. */
  refund(decision: Decision, units: number, nowUs: number): number
  /** Forgets the state of a key; what was charged before can no longer be refunded. */
  reset(policy: number, key: string): void
  /** Tells the store the time by which its callers live, when they give it themselves. */
  given(nowUs: number): void
  close(): void
}

/** Where the states of limiters live. */
export interface Store {
  /**
   * Begins a limiter's use of the store. A name that is in use throws `CATRACA_NAME_TAKEN`. Policies of the same name are
   * variants of one, for plans and single clients: a key that changes its variant takes along what it has used.
   */
  open(name: string, policies: readonly Source[], hooks: StoreHooks): Ledger
  close(): void
}
