import { Decision, decide, peeked, type Source } from '../../core/decision.ts'
import { Outcome, type Reason } from '../../core/rule.ts'
import { storedKey } from '../key.ts'
import type { Ledger, StoreHooks } from '../store.ts'
import { hashOf } from './hash.ts'
import type { MemoryStore } from './memory-store.ts'
import { Table } from './table.ts'

/** Ids of admissions, unique in the process, so that a late release never meets another holder's permit. */
let lastPermit = 0

/** One limiter's states in a memory store. */
export class MemoryLedger implements Ledger {
  readonly tables: readonly Table[]
  private readonly only: Table
  private readonly store: MemoryStore
  private readonly hooks: StoreHooks
  private readonly onClose: () => void
  /** One outcome per policy, used over and over. */
  private readonly outs: readonly Outcome[]
  private readonly out = new Outcome()
  private readonly hashes: Int32Array
  private readonly stored: string[]

  constructor(store: MemoryStore, policies: readonly Source[], hooks: StoreHooks, onClose: () => void) {
    this.tables = policies.map((policy) => new Table(policy))
    this.only = this.tables[0] as Table
    this.store = store
    this.hooks = hooks
    this.onClose = onClose
    this.outs = policies.map(() => new Outcome())
    this.hashes = new Int32Array(policies.length)
    this.stored = policies.map(() => '')
  }

  applyOne(key: string, cost: number, nowUs: number, charge: boolean): Decision {
    const { only: table, out } = this
    const { policy } = table
    const { rule } = policy
    const stored = storedKey(key)
    const hash = hashOf(stored)
    const now = rule.tickUs === 1 ? nowUs : Math.floor(nowUs / rule.tickUs)
    const shard = table.shardOf(hash)
    const slot = shard.find(hash, stored)
    const state = table.stateOf(shard, slot)
    out.permit = ++lastPermit
    rule.evaluate(state, slot < 0 ? 0 : slot * rule.width, now, cost, out)
    const { allowed, wait } = out
    if (!charge) {
      // The figures of a peek are those before the charge.
      rule.evaluate(state, slot < 0 ? 0 : slot * rule.width, now, 0, out)
    } else if (allowed || out.rebase > 0) {
      if (slot >= 0 && rule.width !== 0) rule.commit(shard.slab, slot * rule.width, cost, allowed, out)
      else this.write(table, hash, stored, cost, allowed, nowUs, out)
      if (out.rebase > 0) this.hooks.rebased((out.rebase * rule.tickUs) / 1_000)
    }
    return new Decision(
      policy,
      key,
      allowed ? 'ok' : wait === Infinity ? 'impossible' : rule.denial,
      nowUs,
      cost,
      out.origin - now,
      out.level,
      out.prior,
      allowed ? 0 : (now + wait) * rule.tickUs - nowUs,
      charge ? 0 : peeked,
      undefined,
    )
  }

  apply(keys: readonly string[], cost: number, nowUs: number, charge: boolean): Decision {
    const { tables, outs, hashes, stored } = this
    let passes = true
    for (let index = 0; index < tables.length; index++) {
      const key = storedKey(keys[index] as string)
      stored[index] = key
      hashes[index] = hashOf(key)
      if (!this.evaluate(index, cost, nowUs)) passes = false
    }
    const stack: Decision[] = []
    for (let index = 0; index < tables.length; index++) {
      const table = tables[index] as Table
      const out = outs[index] as Outcome
      const { rule } = table.policy
      const { allowed, wait } = out
      const reason: Reason = allowed ? 'ok' : wait === Infinity ? 'impossible' : rule.denial
      const now = Math.floor(nowUs / rule.tickUs)
      // What one policy would have taken is not taken when another refuses: show its state uncharged.
      if (allowed && !(passes && charge)) this.evaluate(index, 0, nowUs)
      else if (charge && (allowed || out.rebase > 0)) {
        this.write(table, hashes[index] as number, stored[index] as string, cost, allowed, nowUs, out)
        if (out.rebase > 0) this.hooks.rebased((out.rebase * rule.tickUs) / 1_000)
      }
      const { origin, level, prior } = out
      const waitUs = allowed ? 0 : (now + wait) * rule.tickUs - nowUs
      const key = keys[index] as string
      const state = charge ? 0 : peeked
      stack.push(
        new Decision(table.policy, key, reason, nowUs, cost, origin - now, level, prior, waitUs, state, undefined),
      )
    }
    return decide(stack, charge ? 0 : peeked)
  }

  refund(decision: Decision, units: number, nowUs: number): number {
    const table = this.tables.find(({ policy }) => policy === decision.source)
    if (table === undefined) return 0
    const { rule } = table.policy
    const key = storedKey(decision.key)
    const hash = hashOf(key)
    const shard = table.shardOf(hash)
    const slot = shard.find(hash, key)
    if (slot < 0) return 0
    const now = Math.floor(nowUs / rule.tickUs)
    return rule.refund(table.stateOf(shard, slot), slot * rule.width, now, decision, units)
  }

  reset(policy: number, key: string): void {
    const table = this.tables[policy] as Table
    const stored = storedKey(key)
    const hash = hashOf(stored)
    const shard = table.shardOf(hash)
    const slot = shard.find(hash, stored)
    if (slot >= 0) this.store.drop(table, shard, slot)
  }

  given(nowUs: number): void {
    this.store.given(nowUs)
  }

  close(): void {
    this.onClose()
  }

  private evaluate(index: number, cost: number, nowUs: number): boolean {
    const table = this.tables[index] as Table
    const out = this.outs[index] as Outcome
    const { rule } = table.policy
    const hash = this.hashes[index] as number
    const shard = table.shardOf(hash)
    const slot = shard.find(hash, this.stored[index] as string)
    out.permit = ++lastPermit
    rule.evaluate(
      table.stateOf(shard, slot),
      slot < 0 ? 0 : slot * rule.width,
      Math.floor(nowUs / rule.tickUs),
      cost,
      out,
    )
    return out.allowed
  }

  /** Commits an outcome, adding the key where it is new. Adding may move shards and slots, so it looks again. */
  private write(
    table: Table,
    hash: number,
    key: string,
    cost: number,
    charged: boolean,
    nowUs: number,
    out: Outcome,
  ): void {
    let shard = table.shardOf(hash)
    let slot = shard.find(hash, key)
    if (slot < 0) {
      this.store.add(table, hash, key, nowUs)
      shard = table.shardOf(hash)
      slot = shard.find(hash, key)
    }
    const { rule } = table.policy
    const state = rule.commit(table.stateOf(shard, slot), slot * rule.width, cost, charged, out)
    if (rule.width === 0) shard.lists[slot] = state
  }
}
