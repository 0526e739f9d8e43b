import { type Decision, type MemoryStore, type MemoryStoreOptions, memoryStore, type Rule } from 'catraca'

type Ledger = ReturnType<MemoryStore['open']>
type Source = Parameters<Ledger['replace']>[0][number]
/** A rule under the name of its policy. */
export type Named = readonly [name: string, rule: Rule, onRuleChange?: 'keep' | 'proportional' | 'reset']

/** A ledger of one store, asked by places in the list of policies as a guard asks it; time in seconds. */
export class Book {
  readonly store: MemoryStore
  readonly ledger: Ledger
  readonly evicted: { policy: string; key: string; limited: boolean }[] = []
  readonly rebasedMs: number[] = []
  /** Called after each eviction. */
  onEvicted: () => void = () => {}

  constructor(policies: readonly Named[], options: MemoryStoreOptions = {}) {
    this.store = memoryStore(options)
    this.ledger = this.store.open('book', this.sources(policies), {
      evicted: (policy, key, limited) => {
        this.evicted.push({ policy, key, limited })
        this.onEvicted()
      },
      rebased: (stepMs) => this.rebasedMs.push(stepMs),
      closed: () => {},
    })
  }

  get keys(): number {
    return this.store.stats().keys
  }

  take(member: number, key: string, cost: number, now = 0): Decision {
    return this.ledger.applySome([member], [key], [cost], Math.round(now * 1e6), true)
  }

  peek(member: number, key: string, now = 0): Decision {
    return this.ledger.applySome([member], [key], [1], Math.round(now * 1e6), false)
  }

  /** Asks several policies about the same key. */
  takeAll(costs: Readonly<Record<number, number>>, now = 0, key = 'k'): Decision {
    const members = Object.keys(costs).map(Number)
    return this.ledger.applySome(
      members,
      members.map(() => key),
      Object.values(costs),
      Math.round(now * 1e6),
      true,
    )
  }

  left(member: number, now = 0, key = 'k'): number {
    return this.peek(member, key, now).remaining
  }

  refund(decision: Decision, units = decision.cost, now = 0): number {
    return this.ledger.refund(decision, units, Math.round(now * 1e6))
  }

  replace(policies: readonly Named[]): void {
    this.ledger.replace(this.sources(policies))
  }

  private sources(policies: readonly Named[]): Source[] {
    const issuer = { release: (decision: Decision) => void this.ledger.refund(decision, decision.cost, decision.nowUs) }
    return policies.map(([name, rule, onRuleChange = 'keep']) => ({ name, rule, issuer, onRuleChange }))
  }
}
