import { nowUs as clockUs, later } from '../../core/clock.ts'
import type { Source } from '../../core/decision.ts'
import { CatracaError, show } from '../../core/errors.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import { type Random, seededRandom } from '../../core/random.ts'
import type { Store, StoreHooks } from '../store.ts'
import { MemoryLedger } from './memory-ledger.ts'
import type { Shard } from './shard.ts'
import type { Table } from './table.ts'

/** Options of {@link memoryStore}. */
export interface MemoryStoreOptions {
  /** Most keys in memory, over all limiters of the store: 1 to 10^8. Default 1,000,000, about 80 MB. */
  maxKeys?: number
  /** Seed of the sample that chooses whom to forget at the bound. Default: drawn. */
  seed?: number
}

/** Sizes and losses of a memory store. */
export interface MemoryStats {
  /** Keys in memory now. */
  readonly keys: number
  /** Keys forgotten at the bound since the start. */
  readonly evicted: number
  /** Of these, keys that were over their limit: each got a fresh limit too early. */
  readonly evictedLimited: number
}

export const parameters: Parameters = {
  maxKeys: { kind: 'integer', unit: 'keys', min: 1, max: 1e8, default: 1_000_000, words: 'most keys in memory' },
  seed: { kind: 'integer', unit: '', min: 0, max: 2 ** 32 - 1, default: '', words: 'seed of the eviction sample' },
}

/** Keys looked at when one must go. */
const sampleSize = 16
const sweepEveryMs = 1_000
/** A sweep passes over all keys in about a minute, in slices of at most this many. */
const sweepSlices = 60
const maxSlice = 16_384

/** State in the memory of this process: synchronous, bounded, without a timer per key. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const checked = checkOptions(parameters, options, 'memoryStore')
  return new MemoryStore(checked['maxKeys'] as number, checked['seed'] as number | undefined)
}

/**
 * The store of {@link memoryStore}. Keys whose state equals that of a key never seen are forgotten in slices. At the
 * bound a sample of 16 gives one up: a key with nothing used, else the one below its limit that is nearest to full, else
 * the limited one whose limit ends first. Held permits and debts, such as what waits, are never given up, even if the
 * bound is passed by them.
 */
export class MemoryStore implements Store {
  private readonly maxKeys: number
  private readonly seed: number | undefined
  /** Made when a key must go for the first time. */
  private random: Random | undefined
  private readonly ledgers = new Map<string, { ledger: MemoryLedger; hooks: StoreHooks }>()
  /** @internal Goes up whenever a slot may have been added or moved. */
  changes = 0
  private keys = 0
  private evicted = 0
  private evictedLimited = 0
  /** The last time a caller gave, when callers give the time; the sweep then goes by it. */
  private givenUs: number | undefined
  private cancelSweep: (() => void) | undefined
  private closed = false

  /** @internal Use {@link memoryStore}. */
  constructor(maxKeys: number, seed: number | undefined) {
    this.maxKeys = maxKeys
    this.seed = seed
  }

  open(name: string, policies: readonly Source[], hooks: StoreHooks): MemoryLedger {
    if (this.closed) throw new CatracaError('CATRACA_LIMITER_CLOSED', 'the memory store was closed; make a new one')
    if (this.ledgers.has(name)) {
      const what = name === '' ? 'another limiter without a name' : `a limiter named ${show(name)}`
      throw new CatracaError('CATRACA_NAME_TAKEN', `the store already has ${what}; give each its own name`, {
        path: 'name',
        value: name,
      })
    }
    const ledger = new MemoryLedger(this, policies, hooks, () => {
      if (!this.ledgers.delete(name)) return
      this.keys -= ledger.tables.reduce((sum, table) => sum + table.size, 0)
    })
    this.ledgers.set(name, { ledger, hooks })
    return ledger
  }

  stats(): MemoryStats {
    return { keys: this.keys, evicted: this.evicted, evictedLimited: this.evictedLimited }
  }

  close(): void {
    this.closed = true
    this.cancelSweep?.()
    for (const { hooks } of this.ledgers.values()) hooks.closed()
    this.ledgers.clear()
    this.keys = 0
  }

  /** @internal Time as the callers see it. */
  given(nowUs: number): void {
    this.givenUs = nowUs
  }

  /** @internal Makes room for the key just looked for and adds it; returns its slot in `table.shard`. */
  add(table: Table, key: string, nowUs: number): number {
    if (this.makeRoom(nowUs)) {
      // A listener that heard of it may have asked for this key.
      const slot = table.find(key)
      if (slot >= 0) return slot
    }
    // Two looked at for one that comes: what has ended leaves at least as fast as new keys arrive.
    const before = table.size
    table.sweepOne(table.shard, 2, nowUs)
    const slot = table.add(key)
    this.keys += table.size - before
    this.changes++
    this.cancelSweep ??= later(sweepEveryMs, this.sweep)
    return slot
  }

  /** @internal At the bound gives keys up; true when it was there, and listeners may have heard. */
  makeRoom(nowUs: number): boolean {
    if (this.keys < this.maxKeys) return false
    // Two for one, so that a bound that held permits have passed is kept again once they are released.
    for (let tries = 0; tries < 2 && this.keys >= this.maxKeys; tries++) this.evict(nowUs)
    return true
  }

  /** @internal Writes a state that comes from another table, bound or not; returns its slot in `table.shard`. */
  put(table: Table, key: string, state: Float64Array, at: number): number {
    let slot = table.find(key)
    if (slot < 0) {
      slot = table.add(key)
      this.keys++
      this.changes++
    }
    table.put(slot, state, at)
    this.cancelSweep ??= later(sweepEveryMs, this.sweep)
    return slot
  }

  /** @internal Forgets one key. */
  drop(table: Table, shard: Shard, slot: number): void {
    table.drop(shard, slot)
    this.keys--
    this.changes++
  }

  /** @internal Forgets all keys of a table. */
  forget(table: Table): void {
    this.keys -= table.size
    this.changes++
    table.clear()
  }

  private readonly sweep = (): void => {
    const nowUs = this.givenUs ?? clockUs()
    for (const { ledger } of this.ledgers.values()) {
      for (const table of ledger.tables) {
        const before = table.size
        table.sweep(Math.min(maxSlice, Math.max(256, Math.ceil(table.size / sweepSlices))), nowUs)
        this.keys += table.size - before
      }
      ledger.prune()
    }
    this.cancelSweep = this.keys > 0 ? later(sweepEveryMs, this.sweep) : undefined
  }

  private evict(nowUs: number): void {
    this.random ??= seededRandom(this.seed ?? (crypto.getRandomValues(new Uint32Array(1))[0] as number))
    let best: Candidate | undefined
    for (let tries = 0; tries < sampleSize; tries++) {
      const candidate = this.sample(nowUs, this.random)
      if (candidate !== undefined && (best === undefined || candidate.score < best.score)) best = candidate
      if (best?.score === 0) break
    }
    if (best === undefined) return
    const { table, shard, slot, score, hooks } = best
    const key = shard.keyAt(slot)
    this.drop(table, shard, slot)
    if (score === 0) return
    const limited = score >= 1
    this.evicted++
    if (limited) this.evictedLimited++
    hooks.evicted(table.policy.name, key, limited)
  }

  /**
   * A key by chance and how costly it is to forget: 0 with nothing used, below 1 the used share of one below its limit,
   * from 1 on a limited one, later ends costing more. Undefined when it holds permits or is in debt.
   */
  private sample(nowUs: number, random: Random): Candidate | undefined {
    let nth = Math.floor(random() * this.keys)
    for (const { ledger, hooks } of this.ledgers.values()) {
      for (const table of ledger.tables) {
        if (nth >= table.size) {
          nth -= table.size
          continue
        }
        const shard = table.someShard(random())
        if (shard === undefined) return undefined
        const slot = Math.floor(random() * shard.size)
        const { rule } = table.policy
        const now = Math.floor(nowUs / rule.tickUs)
        const state = table.stateOf(shard, slot)
        const at = slot * rule.width
        const level = rule.levelAt(state, at, now)
        if (rule.holds && level > 0) return undefined
        // In debt: somebody may wait for what was reserved.
        if (rule.used(state, at, now) > rule.limit) return undefined
        const remaining = rule.remaining(state, at, now)
        const ends = rule.endsAt(state, at)
        const score =
          ends <= now ? 0 : remaining > 0 ? 1 - remaining / (rule.limit + 1) : 1 + (ends - now) * rule.tickUs
        return { table, shard, slot, score, hooks }
      }
    }
    return undefined
  }
}

interface Candidate {
  table: Table
  shard: Shard
  slot: number
  score: number
  hooks: StoreHooks
}
