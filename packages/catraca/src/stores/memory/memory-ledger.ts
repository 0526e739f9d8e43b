import { nowUs as clockUs } from '../../core/clock.ts'
import { Decision, decide, generationUnit, peeked, type Source, startingIn } from '../../core/decision.ts'
import { type Reason, reasonCode } from '../../core/reason.ts'
import type { Rule } from '../../core/rule.ts'
import { flatCopy, storedKey } from '../key.ts'
import { startUsOf, tooLate } from '../reservation.ts'
import type { Ledger, StoreHooks } from '../store.ts'
import type { MemoryStore } from './memory-store.ts'
import type { Shard } from './shard.ts'
import type { Table } from './table.ts'
import { Variants } from './variants.ts'

/** Ids of admissions, unique in the process, so that a late release never meets another holder's permit. */
let lastPermit = 0

/** Keys of which a reset is remembered, per name of a policy. */
const resetsKept = 10_000
/** Resets are counted round: with the reason and the bits a count stays a small number. */
const generations = 2 ** 23

/** One question to several policies and what is known of each so far. Kept from question to question. */
class Asked {
  count = 0
  readonly tables: Table[] = []
  readonly keys: string[] = []
  readonly costs: number[] = []
  /** Keys as they are stored. */
  readonly stored: string[] = []
  readonly waits: number[] = []
  /** Where the states are, until {@link MemoryStore.changes} goes up. */
  readonly slots: number[] = []
  readonly shards: Shard[] = []
  /** The state that a key would bring along from another variant, where it is only looked at. */
  readonly views: (Float64Array | undefined)[] = []

  add(table: Table, key: string, cost: number): void {
    const index = this.count++
    this.tables[index] = table
    this.keys[index] = key
    this.costs[index] = cost
  }
}

/** One limiter's states in a memory store. */
export class MemoryLedger implements Ledger {
  private readonly variants: Variants
  private only: Table
  private readonly store: MemoryStore
  private readonly hooks: StoreHooks
  private readonly onClose: () => void
  /** Which reset was a key's last, newest last: a charge from before must not come back out of a later one. */
  private readonly resets: Map<string, number>[] = []
  /** Resets so far. */
  private generation = 0
  /** The same as it stands in a decision. */
  private stamp = 0
  /** Undefined while a question is under way: a listener may ask the next one. */
  private spare: Asked | undefined

  constructor(store: MemoryStore, policies: readonly Source[], hooks: StoreHooks, onClose: () => void) {
    this.variants = new Variants(store, policies)
    this.only = this.variants.current[0] as Table
    this.store = store
    this.hooks = hooks
    this.onClose = onClose
  }

  /** All tables that hold keys, for the bound of the store and its sweep. */
  get tables(): readonly Table[] {
    return this.variants.tables
  }

  applyOne(key: string, cost: number, givenUs: number | undefined, charge: boolean): Decision {
    return this.ask(this.only, key, cost, givenUs ?? clockUs(), charge)
  }

  apply(keys: readonly string[], cost: number, givenUs: number | undefined, charge: boolean): Decision {
    const { current } = this.variants
    const asked = this.begin()
    for (let index = 0; index < current.length; index++) {
      asked.add(current[index] as Table, keys[index] as string, cost)
    }
    return this.answer(asked, givenUs ?? clockUs(), charge)
  }

  applySome(
    members: readonly number[],
    keys: readonly string[],
    costs: readonly number[],
    givenUs: number | undefined,
    charge: boolean,
  ): Decision {
    const { current } = this.variants
    const nowUs = givenUs ?? clockUs()
    if (members.length === 1) {
      return this.ask(current[members[0] as number] as Table, keys[0] as string, costs[0] as number, nowUs, charge)
    }
    const asked = this.begin()
    for (let index = 0; index < members.length; index++) {
      asked.add(current[members[index] as number] as Table, keys[index] as string, costs[index] as number)
    }
    return this.answer(asked, nowUs, charge)
  }

  reserve(member: number, key: string, cost: number, givenUs: number | undefined, maxWaitUs: number): Decision {
    const table = this.variants.current[member] as Table
    const nowUs = givenUs ?? clockUs()
    const { rule } = table.policy
    const stored = storedKey(key)
    let slot = table.find(stored)
    if (slot < 0 && !table.alone) slot = this.variants.fetch(table, stored, nowUs)
    const state = table.stateOf(table.shard, slot)
    const at = slot < 0 ? 0 : slot * rule.width
    const startUs = startUsOf(rule, state, at, nowUs, cost)
    if (startUs <= maxWaitUs) return startingIn(this.charge(member, key, cost, nowUs), startUs)
    if (rule.wait(state, at, tickOf(nowUs, rule), cost) > 0) return this.ask(table, key, cost, nowUs, true)
    // A shaper would take it. Only a state of a broken clock is written, as by every refusal.
    this.charge(member, key, 0, nowUs)
    return tooLate(this.ask(table, key, cost, nowUs, false), startUs, maxWaitUs)
  }

  /** Charges units unasked, also beyond the limit. */
  charge(member: number, key: string, units: number, nowUs: number): Decision {
    const asked = this.begin()
    asked.add(this.variants.current[member] as Table, key, units)
    return this.answer(asked, nowUs, true, true)
  }

  replace(policies: readonly Source[]): void {
    this.variants.replace(policies)
    this.only = this.variants.current[0] as Table
  }

  /** @internal Lets go of empty tables. */
  prune(): void {
    this.variants.prune()
  }

  refund(decision: Decision, units: number, nowUs: number): number {
    const table = this.variants.tableOf(decision.source)
    if (table === undefined || decision.charged === 0) return 0
    const policy = table.family
    const key = storedKey(decision.key)
    if (decision.generation < (this.resets[policy]?.get(key) ?? 0)) return 0
    let holder = table
    let slot = table.find(key)
    if (slot < 0 && !table.alone) {
      // Under another variant now, or parked: there a charge counts if it means the same.
      for (const other of table.kindred) {
        if (other.size === 0 || other.policy.rule.kinship(table.policy.rule) !== 'same') continue
        holder = other
        slot = other.find(key)
        if (slot >= 0) break
      }
    }
    if (slot < 0) return 0
    const { rule } = holder.policy
    const state = holder.stateOf(holder.shard, slot)
    return rule.refund(state, slot * rule.width, tickOf(nowUs, rule), decision, Math.min(units, decision.charged))
  }

  settle(decision: Decision, units: number, nowUs: number): number {
    const { charged } = decision
    if (charged === 0 || units === charged) return 0
    if (units < charged) return this.refund(decision, charged - units, nowUs)
    const table = this.variants.tableOf(decision.source)
    if (table === undefined || decision.source.rule.holds) return 0
    const added = this.addTo(table, storedKey(decision.key), units - charged, nowUs)
    return added === 0 ? 0 : -added
  }

  /** Charges a key unasked, under whichever variant it stands, up to twice its limit; says how many units. */
  private addTo(table: Table, key: string, units: number, nowUs: number): number {
    let holder = table
    let slot = table.find(key)
    for (const other of table.alone ? [] : [...table.kindred, ...table.strangers]) {
      if (slot >= 0) break
      if (other.size === 0) continue
      holder = other
      slot = other.find(key)
    }
    if (slot < 0) {
      holder = table
      table.find(key)
      slot = this.store.add(table, key, nowUs)
    }
    const { rule } = holder.policy
    const { shard } = holder
    const now = tickOf(nowUs, rule)
    const at = slot * rule.width
    const state = holder.stateOf(shard, slot)
    const added = Math.min(units, Math.max(0, 2 * rule.limit - rule.used(state, at, now)))
    if (added === 0) return 0
    const charged = rule.charge(state, at, now, added, ++lastPermit)
    if (rule.width === 0) shard.lists[slot] = charged
    return added
  }

  reset(policy: number, key: string): void {
    const table = this.variants.current[policy] as Table
    const stored = flatCopy(storedKey(key))
    let found = false
    for (const one of this.tables) {
      if (one.family !== table.family || one.size === 0) continue
      const slot = one.find(stored)
      if (slot < 0) continue
      this.store.drop(one, one.shard, slot)
      found = true
    }
    if (!found) return
    const resets = this.resets[table.family] ?? new Map<string, number>()
    this.resets[table.family] = resets
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

  /** Asks one policy. */
  private ask(table: Table, key: string, cost: number, nowUs: number, charge: boolean): Decision {
    const { policy } = table
    const { rule } = policy
    const { width, tickUs } = rule
    const stored = storedKey(key)
    let slot = table.find(stored)
    if (slot < 0 && !table.alone && charge) slot = this.variants.fetch(table, stored, nowUs)
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
    const asked = this.begin()
    asked.add(table, key, cost)
    return this.answer(asked, nowUs, charge)
  }

  private begin(): Asked {
    const asked = this.spare ?? new Asked()
    this.spare = undefined
    asked.count = 0
    return asked
  }

  /** One decision per policy. All waits are known before anything is charged; `unasked` does not wait. */
  private answer(asked: Asked, nowUs: number, charge: boolean, unasked = false): Decision {
    const { count, tables, keys, costs, stored, waits, slots, shards, views } = asked
    const { store } = this
    const { changes } = store
    let passes = charge
    for (let index = 0; index < count; index++) {
      const table = tables[index] as Table
      const { rule } = table.policy
      const key = storedKey(keys[index] as string)
      let slot = table.find(key)
      let view: Float64Array | undefined
      if (slot < 0 && !table.alone) {
        if (charge) slot = this.variants.fetch(table, key, nowUs)
        else view = this.variants.view(table, key, nowUs)
      }
      const state = view ?? table.stateOf(table.shard, slot)
      const wait = unasked
        ? 0
        : rule.wait(state, slot < 0 ? 0 : slot * rule.width, tickOf(nowUs, rule), costs[index] as number)
      if (wait > 0) passes = false
      stored[index] = key
      waits[index] = wait
      slots[index] = slot
      shards[index] = table.shard
      views[index] = view
    }
    const parts: Decision[] = []
    let rebasedMs: number[] | undefined
    for (let index = 0; index < count; index++) {
      const permit = ++lastPermit
      const cost = costs[index] as number
      if (store.changes !== changes) this.find(asked, index)
      if (charge) {
        const ms = this.write(asked, index, passes ? cost : 0, nowUs, permit)
        if (ms > 0) rebasedMs = [...(rebasedMs ?? []), ms]
      }
      // What a refused stack did not charge cannot be given back.
      parts.push(this.decision(asked, index, nowUs, permit, passes ? this.stamp : peeked))
    }
    this.spare = asked
    if (rebasedMs !== undefined) for (const ms of rebasedMs) this.hooks.rebased(ms)
    return parts.length === 1 ? (parts[0] as Decision) : decide(parts, charge ? 0 : peeked)
  }

  /** Looks for the state anew. */
  private find({ tables, stored, slots, shards }: Asked, index: number): void {
    const table = tables[index] as Table
    slots[index] = table.find(stored[index] as string)
    shards[index] = table.shard
  }

  /**
   * Charges, adding the key where it is new; at cost 0 only a state of a broken clock is written back. Says by how many
   * milliseconds such a one was moved.
   */
  private write(asked: Asked, index: number, cost: number, nowUs: number, permit: number): number {
    const { tables, stored, slots, shards } = asked
    const table = tables[index] as Table
    const { rule } = table.policy
    const { width } = rule
    const now = tickOf(nowUs, rule)
    let slot = slots[index] as number
    const ahead = slot < 0 ? 0 : rule.originAt(table.stateOf(shards[index] as Shard, slot), slot * width) - now
    const rebase = ahead > rule.graceTicks
    if (cost === 0 && !rebase) return 0
    if (slot < 0) {
      // Its hash and its place may be another key's by now.
      slot = table.find(stored[index] as string)
      if (slot < 0) slot = this.store.add(table, stored[index] as string, nowUs)
      slots[index] = slot
      shards[index] = table.shard
    }
    const shard = shards[index] as Shard
    const state = rule.charge(table.stateOf(shard, slot), slot * width, now, cost, permit)
    if (width === 0) shard.lists[slot] = state
    return rebase ? (ahead * rule.tickUs) / 1_000 : 0
  }

  private decision(asked: Asked, index: number, nowUs: number, permit: number, bits: number): Decision {
    const { policy } = asked.tables[index] as Table
    const { rule } = policy
    const now = tickOf(nowUs, rule)
    const slot = asked.slots[index] as number
    const state = asked.views[index] ?? (asked.tables[index] as Table).stateOf(asked.shards[index] as Shard, slot)
    const at = slot < 0 ? 0 : slot * rule.width
    const wait = asked.waits[index] as number
    const reason: Reason = wait === 0 ? 'ok' : wait === Infinity ? 'impossible' : rule.denial
    return new Decision(
      policy,
      asked.keys[index] as string,
      reasonCode(reason) | bits,
      nowUs,
      asked.costs[index] as number,
      rule.remaining(state, at, now),
      rule.originAt(state, at) - now,
      rule.levelAt(state, at, now),
      rule.width === 3 ? (state[at + 2] as number) : permit,
      wait === 0 ? 0 : (now + wait) * rule.tickUs - nowUs,
    )
  }
}

function tickOf(nowUs: number, { tickUs }: Rule): number {
  return tickUs === 1 ? nowUs : Math.floor(nowUs / tickUs)
}

/** {@link Rule.take} for a rule without it. */
function takeStepwise(rule: Rule, state: Float64Array, at: number, now: number, cost: number): number {
  const wait = rule.wait(state, at, now, cost)
  if (wait > 0) return -wait
  rule.charge(state, at, now, cost, 0)
  return rule.remaining(state, at, now)
}
