import { variantFor, variantsOf } from '../algorithms/fixed-window/fixed-window.ts'
import type { Decision, Source } from '../core/decision.ts'
import type { Ledger, Store, StoreHooks } from '../stores/store.ts'

/** Which of the policies of a ledger a key is asked under, where some policies stand there as several variants. */
export class Spread {
  /** The policies as a store takes them: in place of one with an offset per key its variants. */
  readonly policies: readonly Source[]
  /** Of each policy as it was given: the place of its first variant, and how many there are. */
  private readonly firsts: number[] = []
  private readonly counts: number[] = []

  constructor(policies: readonly Source[]) {
    const all: Source[] = []
    for (const policy of policies) {
      const variants = variantsOf(policy.rule)
      this.firsts.push(all.length)
      this.counts.push(variants.length)
      for (const rule of variants) all.push(rule === policy.rule ? policy : { ...policy, rule })
    }
    this.policies = all
  }

  /** True where every policy stands for itself. */
  get isNone(): boolean {
    return this.policies.length === this.counts.length
  }

  /** The place in {@link Spread.policies}. */
  member(policy: number, key: string): number {
    const first = this.firsts[policy] as number
    return this.counts[policy] === 1 ? first : first + variantFor(key)
  }
}

/** As `store.open`, for policies that may have an offset per key, and may not be replaced. */
export function openSpread(store: Store, name: string, policies: readonly Source[], hooks: StoreHooks): Ledger {
  const spread = new Spread(policies)
  const ledger = store.open(name, spread.policies, hooks)
  return spread.isNone ? ledger : new SpreadLedger(ledger, spread)
}

/**
 * Asks each policy under the variant of its key. Costs a hash of the key; nothing where every policy stands for itself.
 */
export class SpreadLedger implements Ledger {
  private readonly ledger: Ledger
  private spread: Spread

  constructor(ledger: Ledger, spread: Spread) {
    this.ledger = ledger
    this.spread = spread
  }

  apply(keys: readonly string[], cost: number, nowUs: number | undefined, charge: boolean): Decision {
    const members = keys.map((key, policy) => this.spread.member(policy, key))
    const costs = keys.map(() => cost)
    return this.ledger.applySome(members, keys, costs, nowUs, charge)
  }

  applyOne(key: string, cost: number, nowUs: number | undefined, charge: boolean): Decision {
    return this.ledger.applySome([this.spread.member(0, key)], [key], [cost], nowUs, charge)
  }

  applySome(
    members: readonly number[],
    keys: readonly string[],
    costs: readonly number[],
    nowUs: number | undefined,
    charge: boolean,
  ): Decision {
    const { spread } = this
    if (spread.isNone) return this.ledger.applySome(members, keys, costs, nowUs, charge)
    const own = members.map((policy, index) => spread.member(policy, keys[index] as string))
    return this.ledger.applySome(own, keys, costs, nowUs, charge)
  }

  reserve(member: number, key: string, cost: number, nowUs: number | undefined, maxWaitUs: number): Decision {
    return this.ledger.reserve(this.spread.member(member, key), key, cost, nowUs, maxWaitUs)
  }

  settle(decision: Decision, units: number, nowUs: number): number {
    return this.ledger.settle(decision, units, nowUs)
  }

  replace(policies: readonly Source[]): void {
    this.spread = new Spread(policies)
    this.ledger.replace(this.spread.policies)
  }

  refund(decision: Decision, units: number, nowUs: number): number {
    return this.ledger.refund(decision, units, nowUs)
  }

  reset(policy: number, key: string): void {
    this.ledger.reset(this.spread.member(policy, key), key)
  }

  given(nowUs: number): void {
    this.ledger.given(nowUs)
  }

  close(): void {
    this.ledger.close()
  }
}
