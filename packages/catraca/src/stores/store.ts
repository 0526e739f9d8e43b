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
 * What a limiter or a guard asks of a store: apply one operation atomically to the states of its policies. Never
 * "increment a key": which numbers change is the rule's business, so all rules, costs and stacks share this contract.
 *
 * Policies are named by their place in the list last given, to {@link Store.open} or {@link Ledger.replace}; keys are any
 * texts. Costs are positive safe integers and times whole µs, checked by the caller. No method throws for them. A listener
 * behind a hook may ask the ledger again; one that throws throws into the call.
 *
 * Policies of the same name are variants of one (plans, big customers) and share what a key has used: a key stands under
 * one variant at a time, and comes over with all it has used when it is asked for under another (`Rule.adopt`).
 * That costs nothing while keys stay where they are, and a look-up per variant for a key that is not found.
 */
export interface Ledger {
  /**
   * Evaluates every policy at the same cost, `keys` in the order of the policies, and charges all or none. The answer is
   * that of {@link Ledger.applySome} for all of them.
   */
  apply(keys: readonly string[], cost: number, nowUs: number | undefined, charge: boolean): Decision
  /** {@link Ledger.apply} for the first policy alone: the short way of a limiter of one rule. */
  applyOne(key: string, cost: number, nowUs: number | undefined, charge: boolean): Decision
  /**
   * Evaluates some policies, at least one and each at most once, and charges all of them or none. `keys` and `costs` go
   * with `members`: each has a key and a cost of its own.
   *
   * The answer is a decision as of one instant: `nowUs`, or without it one reading of the store's clock. Its `stack` has
   * the decision of each member, in the order given, with its own `cost`; `charged` of a member is that cost when all
   * passed, else 0. Of one member it is that member's decision itself. A cost above the capacity of its rule is
   * `impossible` for that member, so none is charged.
   *
   * With `charge` false it says what would be and writes nothing: no key is added, moved or refreshed.
   * Costs one look-up and two objects or less per member; a refusal may move a state between variants, or back to a clock
   * that was set, and changes nothing else.
   */
  applySome(
    members: readonly number[],
    keys: readonly string[],
    costs: readonly number[],
    nowUs: number | undefined,
    charge: boolean,
  ): Decision
  /**
   * Charges one policy whose rule {@link Rule.reserves} if its units start at most `maxWaitUs` from now: an admitted
   * decision whose `waitUs` says when, 0 where they pass at once. The units are charged now, so whoever is asked about
   * later, by {@link Ledger.apply} too, comes behind them. Else a refusal that charged nothing: its wait is the one that
   * was too long; for a shaper, whose wait is a delay, the time after which the same question passes.
   *
   * To give a reservation back before it starts, {@link Ledger.refund} it. Where others reserved behind it more than the
   * capacity holds beside it, that gives 0: they keep their times, and it can be given back only once it is the last.
   */
  reserve(member: number, key: string, cost: number, nowUs: number | undefined, maxWaitUs: number): Decision
  /**
   * Puts a new list of policies in place of the old one. A policy of the same name and rule (algorithm and options) as
   * one before keeps its states. States under other rules of a name that stays come over when their key is next asked
   * for, as between variants, and count against the bound until then or until they end. What belonged to a name that is
   * gone is forgotten. Costs a walk over the policies, not over the keys.
   */
  replace(policies: readonly Source[]): void
  /**
   * Gives back up to `units` of what one member was charged, its own cost at most, while it still counts; says how many.
   * Wherever the state is by now: also after a replacement, and under another variant where a charge means the same there
   * (windows of one length, permits). 0 where nothing was charged or the state is gone; for a bucket also where its key
   * was under other numbers since. Of a stack: member by member.
   */
  refund(decision: Decision, units: number, nowUs: number): number
  /**
   * Makes the charge of one member what it really cost, `units`, 0 or more; says how many units came back (positive) or
   * were added (negative). What comes back is that of {@link Ledger.refund}. More is charged to the current window or
   * bucket unasked, up to twice the limit in use; permits are never added. Of a stack: member by member. That it is done
   * once, and not beside a refund, is the caller's business.
   */
  settle(decision: Decision, units: number, nowUs: number): number
  /** Forgets the state of a key under all variants of a policy; what was charged before can no longer be refunded. */
  reset(policy: number, key: string): void
  /** Tells the store the time by which its callers live, when they give it themselves; its sweep goes by it. */
  given(nowUs: number): void
  /** Ends the use and forgets all states. Later refunds and releases do nothing that counts. */
  close(): void
}

/** Where the states of limiters live. */
export interface Store {
  /**
   * Begins a limiter's use of the store. A name that is in use throws `CATRACA_NAME_TAKEN`, a closed store
   * `CATRACA_LIMITER_CLOSED`. Names of policies may repeat: such are variants of one.
   */
  open(name: string, policies: readonly Source[], hooks: StoreHooks): Ledger
  /** Forgets everything and tells every limiter by {@link StoreHooks.closed}. */
  close(): void
}
