import type { Decision, Source } from '../core/decision.ts'
import type { Health, RemoteLedger, StoreFailureOptions } from '../stores/remote.ts'
import { Spread } from './spread.ts'

/** As what `open` gives, for policies that may have an offset per key, and may not be replaced. */
export function openSpreadRemote(
  policies: readonly Source[],
  open: (policies: readonly Source[]) => RemoteLedger,
): RemoteLedger {
  const spread = new Spread(policies)
  const ledger = open(spread.policies)
  return spread.isNone ? ledger : new SpreadRemoteLedger(ledger, spread)
}

/** Asks each policy under the variant of its key. Costs a hash of the key; nothing where every policy stands for itself. */
export class SpreadRemoteLedger implements RemoteLedger {
  private readonly ledger: RemoteLedger
  private spread: Spread

  constructor(ledger: RemoteLedger, spread: Spread) {
    this.ledger = ledger
    this.spread = spread
  }

  get health(): Health {
    return this.ledger.health
  }

  tryApply(...[policies, keys, tags, costs]: Parameters<RemoteLedger['tryApply']>): Decision | undefined {
    return this.ledger.tryApply(this.members(policies, keys), keys, tags, costs)
  }

  apply(...[policies, keys, tags, costs, charge]: Parameters<RemoteLedger['apply']>): Promise<Decision> {
    return this.ledger.apply(this.members(policies, keys), keys, tags, costs, charge)
  }

  applyUpTo(...[policies, keys, ...rest]: Parameters<RemoteLedger['applyUpTo']>): Promise<Decision> {
    return this.ledger.applyUpTo(this.members(policies, keys), keys, ...rest)
  }

  grant(...[policy, key, ...rest]: Parameters<RemoteLedger['grant']>): Promise<Decision> {
    return this.ledger.grant(this.spread.member(policy, key), key, ...rest)
  }

  declared(...[policies, keys, tags, costs]: Parameters<RemoteLedger['declared']>): Decision {
    return this.ledger.declared(this.members(policies, keys), keys, tags, costs)
  }

  charge(policy: number, key: string, tag: string | undefined, units: number): Promise<void> {
    return this.ledger.charge(this.spread.member(policy, key), key, tag, units)
  }

  reserve(...[policy, key, ...rest]: Parameters<RemoteLedger['reserve']>): Promise<Decision> {
    return this.ledger.reserve(this.spread.member(policy, key), key, ...rest)
  }

  settle(decision: Decision, units: number): Promise<number> {
    return this.ledger.settle(decision, units)
  }

  refund(decision: Decision, units: number): Promise<number> {
    return this.ledger.refund(decision, units)
  }

  renew(decision: Decision): Promise<boolean> {
    return this.ledger.renew(decision)
  }

  reset(policy: number, key: string, tag: string | undefined): Promise<void> {
    return this.ledger.reset(this.spread.member(policy, key), key, tag)
  }

  block(policy: number, key: string, tag: string | undefined, us: number): Promise<void> {
    return this.ledger.block(this.spread.member(policy, key), key, tag, us)
  }

  replace(policies: readonly Source[], failure: StoreFailureOptions): void {
    this.spread = new Spread(policies)
    this.ledger.replace(this.spread.policies, failure)
  }

  close(): void {
    this.ledger.close()
  }

  private members(policies: readonly number[], keys: readonly string[]): readonly number[] {
    if (this.spread.isNone) return policies
    return policies.map((policy, index) => this.spread.member(policy, keys[index] as string))
  }
}
