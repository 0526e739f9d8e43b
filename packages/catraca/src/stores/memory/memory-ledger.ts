import { nowUs as clockUs } from '../../core/clock.ts'
import { Decision, decide, generationUnit, peeked, type Source } from '../../core/decision.ts'
import { type Reason, reasonCode } from '../../core/reason.ts'
import { type Rule, usedUnits } from '../../core/rule.ts'
import { flatCopy, storedKey } from '../key.ts'
import type { Ledger, StoreHooks } from '../store.ts'
import type { MemoryStore } from './memory-store.ts'
import { Table } from './table.ts'

/** Ids of admissions, unique in the process, so that a late release never meets another holder's permit. */
let lastPermit = 0

/** Keys of which a reset is remembered, per policy. */
const resetsKept = 10_000
/** Resets are counted round: with the reason and the bits a count stays a small number. */
const generations = 2 ** 23

/** One limiter's states in a memory store. */
export class MemoryLedger implements Ledger {
  /** All tables that hold keys, for the bound of the store and its sweep. */
  tables: readonly Table[] = []
  /** The table of each policy, in the order of the policies. */
  private current: readonly Table[]
  /** Of each policy, other tables under its name in which a key may still stand. */
  private siblings: readonly (readonly Table[])[] = []
  private bySource = new Map<Source, Table>()
  private only: Table
  private readonly store: MemoryStore
  private readonly hooks: StoreHooks
  private readonly onClose: () => void
  /** Which reset was a key's last, newest last: a charge from before must not come back out of a later one. */
  private readonly resets = new WeakMap<Table, Map<string, number>>()
  /** Resets so far. */
  private generation = 0
  /** The same as it stands in a decision. */
  private stamp = 0

  constructor(store: MemoryStore, policies: readonly Source[], hooks: StoreHooks, onClose: () => void) {
    this.current = policies.map((policy) => new Table(policy))
    this.only = this.current[0] as Table
    this.arrange([])
    this.store = store
    this.hooks = hooks
    this.onClose = onClose
  }

  replace(policies: readonly Source[]): void {
    const old = [...this.tables]
    this.current = policies.map((policy) => {
      const place = old.findIndex((table) => table.policy.name === policy.name && sameRule(table.policy.rule, policy.rule))
      return place === -1 ? new Table(policy) : (old.splice(place, 1)[0] as Table)
    })
    this.only = this.current[0] as Table
    const names = new Set(policies.map(({ name }) => name))
    const kept = old.filter((table) => names.has(table.policy.name) && table.size > 0)
    for (const table of old) if (!kept.includes(table)) this.store.forget(table)
    this.arrange(kept)
  }

  /** @param retired Tables of rules that are gone, whose keys move when they come next. */
  private arrange(retired: readonly Table[]): void {
    this.tables = [...this.current, ...retired]
    this.siblings = this.current.map((one) => {
      return this.tables.filter((table) => table !== one && table.policy.name === one.policy.name)
    })
    this.bySource = new Map(this.tables.map((table) => [table.policy, table]))
  }

  applyOne(key: string, cost: number, givenUs: number | undefined, charge: boolean): Decision {
    const nowUs = givenUs ?? clockUs()
    const { only: table } = this
    const { policy } = table
    const { rule } = policy
    const { width, tickUs } = rule
    const stored = storedKey(key)
    let slot = table.find(stored)
    // A rule of fixed width, the common case, is written out: one look-up, one reading of the state, one object.
    // A key never seen passes at any cost that can pass at all.
    if (slot < 0 && width !== 0 && charge && cost <= rule.limit) slot = this.store.add(table, stored, nowUs)
    if (slot >= 0 && width !== 0 && charge) {
      const { slab } = table.shard
      const at = slot * width
      const now = tickUs === 1 ? nowUs : Math.floor(nowUs / tickUs)
      if ((slab[at] as number) - now <= rule.graceTicks) {
        const answer =
          rule.take === undefined ? takeStepwise(rule, slab, at, now, cost) : rule.take(slab, at, now, cost)
        const lead = (slab[at] as number) - now
        const level = slab[at + 1] as number
        const prior = width === 3 ? (slab[at + 2] as number) : 0
        if (answer >= 0) return new Decision(policy, key, this.stamp, nowUs, cost, answer, lead, level, prior, 0)
        const reason = reasonCode(answer === -Infinity ? 'impossible' : rule.denial)
        // Where one unit does not pass, none does.
        const left = cost === 1 ? 0 : rule.remaining(slab, at, now)
        const waitUs = (now - answer) * tickUs - nowUs
        return new Decision(policy, key, reason, nowUs, cost, left, lead, level, prior, waitUs)
      }
    }
    const [decision] = this.applyAll([key], cost, nowUs, charge)
    return decision as Decision
  }

  apply(keys: readonly string[], cost: number, givenUs: number | undefined, charge: boolean): Decision {
    return decide(this.applyAll(keys, cost, givenUs ?? clockUs(), charge), charge ? 0 : peeked)
  }

  applySome(
    members: readonly number[],
    keys: readonly string[],
    costs: readonly number[],
    givenUs: number | undefined,
    charge: boolean,
  ): Decision {
    const nowUs = givenUs ?? clockUs()
    const tables: Table[] = []
    const stored: string[] = []
    const waits: number[] = []
    let passes = charge
    for (let index = 0; index < members.length; index++) {
      const member = members[index] as number
      const table = this.current[member] as Table
      const key = storedKey(keys[index] as string)
      const siblings = this.siblings[member] as readonly Table[]
      if (siblings.length > 0) this.adopt(table, siblings, key, nowUs)
      const { rule } = table.policy
      const slot = table.find(key)
      const at = slot < 0 ? 0 : slot * rule.width
      const wait = rule.wait(table.stateOf(table.shard, slot), at, tickAt(nowUs, rule), costs[index] as number)
      if (wait > 0) passes = false
      tables.push(table)
      stored.push(key)
      waits.push(wait)
    }
    const stack: Decision[] = []
    for (let index = 0; index < members.length; index++) {
      const table = tables[index] as Table
      const key = stored[index] as string
      const cost = costs[index] as number
      const permit = ++lastPermit
      if (charge) this.write(table, key, passes ? cost : 0, nowUs, permit)
      const wait = waits[index] as number
      stack.push(this.decision(table, keys[index] as string, key, wait, cost, nowUs, permit, charge))
    }
    return stack.length === 1 ? (stack[0] as Decision) : decide(stack, charge ? 0 : peeked)
  }

  /**
   * Carries over what a key has used under another variant, where this one does not know it. A key stands in one table of
   * its name at most, so that is where all its use is.
   */
  private adopt(table: Table, siblings: readonly Table[], key: string, nowUs: number): void {
    if (table.find(key) >= 0) return
    for (const other of siblings) {
      if (other.size === 0) continue
      const slot = other.find(key)
      if (slot < 0) continue
      const { rule: from } = other.policy
      const { rule: to } = table.policy
      const state = other.stateOf(other.shard, slot)
      const list = from.holds && to.holds ? Float64Array.from(state) : undefined
      const used = usedUnits(from, state, slot * from.width, tickAt(nowUs, from))
      this.store.drop(other, other.shard, slot)
      if (list === undefined && used === 0) return
      // Adding a key may evict another one, and looks for it anew.
      table.find(key)
      const place = this.store.add(table, key, nowUs)
      const { shard } = table
      // Rounded against the caller: parts of a unit count as one, and all of it as if it were used now.
      const charged = list ?? to.charge(table.stateOf(shard, place), place * to.width, tickAt(nowUs, to), used, 0)
      if (to.width === 0) shard.lists[place] = charged
      return
    }
  }

  refund(decision: Decision, units: number, nowUs: number): number {
    const table = this.bySource.get(decision.source)
    if (table === undefined) return 0
    const key = storedKey(decision.key)
    if (decision.generation < (this.resets.get(table)?.get(key) ?? 0)) return 0
    const slot = table.find(key)
    if (slot < 0) return 0
    const { rule } = table.policy
    const now = Math.floor(nowUs / rule.tickUs)
    return rule.refund(table.stateOf(table.shard, slot), slot * rule.width, now, decision, units)
  }

  reset(policy: number, key: string): void {
    const table = this.current[policy] as Table
    const stored = flatCopy(storedKey(key))
    const slot = table.find(stored)
    if (slot < 0) return
    this.store.drop(table, table.shard, slot)
    const resets = this.resets.get(table) ?? new Map<string, number>()
    this.resets.set(table, resets)
    resets.delete(stored)
    this.generation = (this.generation + 1) % generations
    this.stamp = this.generation * generationUnit
    resets.set(stored, this.generation)
    if (resets.size <= resetsKept) return
    const [oldest] = resets.keys()
    resets.delete(oldest as string)
  }

  given(nowUs: number): void {
    this.store.given(nowUs)
  }

  close(): void {
    this.onClose()
  }

  /** One decision per policy. All waits are known before anything is written. */
  private applyAll(keys: readonly string[], cost: number, nowUs: number, charge: boolean): Decision[] {
    const stored = keys.map(storedKey)
    const waits = this.current.map((table, index) => {
      const { rule } = table.policy
      const slot = table.find(stored[index] as string)
      return rule.wait(
        table.stateOf(table.shard, slot),
        Math.max(0, slot * rule.width),
        Math.floor(nowUs / rule.tickUs),
        cost,
      )
    })
    const passes = charge && waits.every((wait) => wait === 0)
    return this.current.map((table, index) => {
      const wait = waits[index] as number
      const permit = ++lastPermit
      if (charge) this.write(table, stored[index] as string, passes ? cost : 0, nowUs, permit)
      return this.decision(table, keys[index] as string, stored[index] as string, wait, cost, nowUs, permit, charge)
    })
  }

  /** Charges, adding the key where it is new; at cost 0 only a state of a broken clock is written back. */
  private write(table: Table, key: string, cost: number, nowUs: number, permit: number): void {
    const { rule } = table.policy
    const now = Math.floor(nowUs / rule.tickUs)
    let slot = table.find(key)
    const ahead = slot < 0 ? 0 : rule.originAt(table.stateOf(table.shard, slot), slot * rule.width) - now
    const rebase = ahead > rule.graceTicks
    if (cost === 0 && !rebase) return
    if (slot < 0) slot = this.store.add(table, key, nowUs)
    const { shard } = table
    const state = rule.charge(table.stateOf(shard, slot), slot * rule.width, now, cost, permit)
    if (rule.width === 0) shard.lists[slot] = state
    if (rebase) this.hooks.rebased((ahead * rule.tickUs) / 1_000)
  }

  private decision(
    table: Table,
    key: string,
    stored: string,
    wait: number,
    cost: number,
    nowUs: number,
    permit: number,
    charge: boolean,
  ): Decision {
    const { rule } = table.policy
    const now = Math.floor(nowUs / rule.tickUs)
    const slot = table.find(stored)
    const state = table.stateOf(table.shard, slot)
    const at = Math.max(0, slot * rule.width)
    const reason: Reason = wait === 0 ? 'ok' : wait === Infinity ? 'impossible' : rule.denial
    return new Decision(
      table.policy,
      key,
      reasonCode(reason) | (charge ? this.stamp : peeked),
      nowUs,
      cost,
      rule.remaining(state, at, now),
      rule.originAt(state, at) - now,
      rule.levelAt(state, at, now),
      rule.width === 3 ? (state[at + 2] as number) : permit,
      wait === 0 ? 0 : (now + wait) * rule.tickUs - nowUs,
    )
  }
}

function tickAt(nowUs: number, { tickUs }: Rule): number {
  return tickUs === 1 ? nowUs : Math.floor(nowUs / tickUs)
}

/** True when a state of one means the same to the other. */
function sameRule(one: Rule, other: Rule): boolean {
  return one.algorithm === other.algorithm && JSON.stringify(one.options) === JSON.stringify(other.options)
}

/** {@link Rule.take} for a rule without it. */
function takeStepwise(rule: Rule, state: Float64Array, at: number, now: number, cost: number): number {
  const wait = rule.wait(state, at, now, cost)
  if (wait > 0) return -wait
  rule.charge(state, at, now, cost, 0)
  return rule.remaining(state, at, now)
}
