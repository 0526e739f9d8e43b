import type { Source } from '../../core/decision.ts'
import type { Rule } from '../../core/rule.ts'
import type { MemoryStore } from './memory-store.ts'
import { empty } from './shard.ts'
import { Table } from './table.ts'

/**
 * The tables of a ledger, and how the state of a key passes between those of one name.
 *
 * Policies of one name are variants of one: plans, big customers, and after {@link Variants.replace} the rules of an
 * earlier document, which are not asked any more. A key stands in at most one variant's table. Asked for under another
 * one it is converted and moves there ({@link Rule.adopt}), so what is used stays used.
 *
 * From a rule that is not kin only the units in use come along. Its state is then parked, in a table beside that is never
 * asked, until it has ended or the key comes back to it or to its kin: else one minute under a plan per minute would
 * clear a budget per day. Nobody pays for a parked state but who comes back to it.
 *
 * All this happens only when a key is not found, and costs a look-up in each table of the name that holds keys.
 */
export class Variants {
  /** All tables that hold keys. */
  tables: readonly Table[] = []
  /** The table of each policy, in the order of the policies. */
  current: readonly Table[] = []
  private readonly store: MemoryStore
  /** Tables by the policies they were ever asked under: a decision from before a replacement can still be refunded. */
  private readonly bySource = new WeakMap<Source, Table>()
  private readonly numbers = new Map<string, number>()

  constructor(store: MemoryStore, policies: readonly Source[]) {
    this.store = store
    this.replace(policies)
  }

  tableOf(policy: Source): Table | undefined {
    return this.bySource.get(policy)
  }

  /**
   * Other policies from now on. A table of equal name and rule goes on under the new policy; others of a name that stays
   * are kept until they are empty; those of a name that goes are cleared.
   */
  replace(policies: readonly Source[]): void {
    const old = this.tables.filter((table) => !table.parked)
    this.current = policies.map((policy) => {
      const place = old.findIndex(({ policy: { name, rule } }) => name === policy.name && equal(rule, policy.rule))
      const table = place < 0 ? new Table(policy) : (old.splice(place, 1)[0] as Table)
      table.policy = policy
      this.bySource.set(policy, table)
      return table
    })
    const names = new Set(policies.map(({ name }) => name))
    const left = [...old, ...this.tables.filter((table) => table.parked)].filter((table) => {
      if (names.has(table.policy.name)) return true
      this.store.forget(table)
      return false
    })
    this.tables = [...this.current, ...left]
    this.prune()
    this.arrange()
  }

  /** Lets go of tables that are empty and not asked. */
  prune(): void {
    const asked = new Set(this.current)
    const kept = this.tables.filter((table) => table.size > 0 || asked.has(table))
    if (kept.length === this.tables.length) return
    for (const table of this.tables) if (table.parking?.size === 0) table.parking = undefined
    this.tables = kept
    this.arrange()
  }

  /** The state that a key which `table` does not hold would bring along, or undefined; nothing moves. */
  view(table: Table, key: string, nowUs: number): Float64Array | undefined {
    const { rule, onRuleChange } = table.policy
    const resets = onRuleChange === 'reset'
    let state: Float64Array | undefined
    for (const other of table.kindred) {
      if (other === table || other.size === 0) continue
      const slot = other.find(key)
      if (slot < 0 || (resets && other.policy.rule.script.name !== rule.script.name)) continue
      state = adopted(rule, rule.width === 0 ? empty : new Float64Array(rule.width), nowUs, other, slot)
      if (onRuleChange === 'proportional') rule.rescale?.(state, 0, other.policy.rule)
      break
    }
    for (const other of table.strangers) {
      if (other.size === 0 || resets) continue
      const slot = other.find(key)
      if (slot < 0) continue
      // A list may still be the one of the table it stands in.
      const own = rule.width === 0 ? (state ?? empty).slice() : (state ?? new Float64Array(rule.width))
      return adopted(rule, own, nowUs, other, slot)
    }
    return state
  }

  /** Moves a key that `table` does not hold there; its slot in {@link Table.shard}, or −1 when no other table holds it. */
  fetch(table: Table, key: string, nowUs: number): number {
    let state = this.view(table, key, nowUs)
    // What is parked takes room. A listener that hears who went may have asked for anything.
    if (state !== undefined && table.strangers.length > 0 && this.store.makeRoom(nowUs)) {
      const slot = table.find(key)
      if (slot >= 0) return slot
      state = this.view(table, key, nowUs)
    }
    if (state === undefined) {
      // What is not taken over is forgotten, or it would come back with the next change.
      if (table.policy.onRuleChange === 'reset') {
        for (const other of [...table.kindred, ...table.strangers]) if (other !== table) this.takeOut(other, key)
      }
      return -1
    }
    for (const other of table.kindred) if (other !== table) this.takeOut(other, key)
    for (const other of table.strangers) {
      if (table.policy.onRuleChange === 'reset') this.takeOut(other, key)
      else this.park(other, key, nowUs)
    }
    return this.store.put(table, key, state, 0)
  }

  private takeOut(table: Table, key: string): void {
    const slot = table.size === 0 ? -1 : table.find(key)
    if (slot >= 0) this.store.drop(table, table.shard, slot)
  }

  private park(table: Table, key: string, nowUs: number): void {
    const slot = table.size === 0 ? -1 : table.find(key)
    if (slot < 0) return
    const { rule } = table.policy
    const { shard } = table
    const state = table.stateOf(shard, slot)
    if (rule.endsAt(state, slot * rule.width) > Math.floor(nowUs / rule.tickUs)) {
      this.store.put(this.parkingOf(table), key, state, slot * rule.width)
    }
    this.store.drop(table, shard, slot)
  }

  private parkingOf(table: Table): Table {
    if (table.parking !== undefined) return table.parking
    const parking = new Table(table.policy)
    parking.parked = true
    table.parking = parking
    this.tables = [...this.tables, parking]
    this.arrange()
    return parking
  }

  /** Tells every table who its kin are. */
  private arrange(): void {
    const families = new Map<string, Table[][]>()
    for (const table of this.tables) {
      const { name, rule } = table.policy
      const family = families.get(name) ?? []
      families.set(name, family)
      const kindred = family.find(([first]) => (first as Table).policy.rule.kinship(rule) !== 'none')
      if (kindred === undefined) family.push([table])
      else kindred.push(table)
    }
    for (const [name, family] of families) {
      const number = this.numbers.get(name) ?? this.numbers.size
      this.numbers.set(name, number)
      const alone = family.length === 1 && family[0]?.length === 1
      for (const kindred of family) {
        const strangers = family.flatMap((others) => (others === kindred ? [] : others.filter(({ parked }) => !parked)))
        for (const table of kindred) Object.assign(table, { family: number, alone, kindred, strangers })
      }
    }
  }
}

function adopted(rule: Rule, state: Float64Array, nowUs: number, other: Table, slot: number): Float64Array {
  const { rule: from } = other.policy
  return rule.adopt(state, 0, nowUs, from, other.stateOf(other.shard, slot), slot * from.width)
}

/** True when a state and a charge of one mean to the other what they mean to it, and both answer alike. */
function equal(one: Rule, other: Rule): boolean {
  return one.algorithm === other.algorithm && JSON.stringify(one.options) === JSON.stringify(other.options)
}
