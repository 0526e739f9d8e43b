import type { Source } from '../../core/decision.ts'
import { flatCopy } from '../key.ts'
import { hashOf, seedHash } from './hash.ts'
import { empty, Shard } from './shard.ts'

/** Up to this many keys a table is one shard; beyond it, many, so that growing one is a short pause. */
const oneShardKeys = 1_024
const manyShards = 64
/** A key stays this long after its state has ended: one that comes again and again is not forgotten and added each time. */
const lingerUs = 5_000_000

/**
 * All keys of one policy, or of one variant of it.
 *
 * A small table finds slots by a `Map`, which knows the hash of a text it has met before; a large one by its own index
 * of numbers, which meets fewer cold cache lines. Both lead to dense slots in shards.
 */
export class Table {
  /** Who is asked under it; after a replacement another of an equal rule. */
  policy: Source
  size = 0
  /** A number for the name of the policy. */
  family = 0
  /** True when no other table belongs to its name. */
  alone = true
  /** Tables of its name and of kin rules, itself among them. */
  kindred: readonly Table[] = []
  /** Tables of its name and of other rules, parked ones left out. */
  strangers: readonly Table[] = []
  /** Where its states wait while their keys are asked under strangers. */
  parking: Table | undefined = undefined
  /** True when it is such a place. */
  parked = false
  /** The shard of the key last looked for. */
  shard: Shard
  private hash = 0
  private shards: Shard[]
  /** Slots of the only shard by key; undefined once there are many shards. */
  private small: Map<string, number> | undefined = new Map()
  private sweepShard = 0

  constructor(policy: Source) {
    this.policy = policy
    this.shard = new Shard(policy.rule.width)
    this.shards = [this.shard]
  }

  /** Slot of a key in {@link Table.shard}, or −1. */
  find(key: string): number {
    const { small } = this
    if (small !== undefined) {
      const slot = small.get(key)
      return slot === undefined ? -1 : slot
    }
    const hash = hashOf(key)
    this.hash = hash
    const shard = this.shards[hash & (manyShards - 1)] as Shard
    this.shard = shard
    return shard.find(hash, key)
  }

  /** Adds the key that was just looked for and not found; returns its slot in {@link Table.shard}. */
  add(key: string): number {
    if (this.small !== undefined && this.size === oneShardKeys) this.split(key)
    const own = flatCopy(key)
    const slot = this.shard.add(own)
    if (this.small !== undefined) this.small.set(own, slot)
    else this.shard.enter(this.hash, slot)
    this.size++
    return slot
  }

  /** Forgets the key in a slot; the last slot of the shard moves there. */
  drop(shard: Shard, slot: number): void {
    const key = shard.keyAt(slot)
    const last = shard.size - 1
    const moved = shard.keyAt(last)
    if (this.small !== undefined) {
      this.small.set(moved, slot)
      this.small.delete(key)
    } else {
      shard.leave(hashOf(key), slot)
      if (slot !== last) shard.rename(hashOf(moved), last, slot)
    }
    shard.drop(slot)
    if (this.small === undefined) shard.shrink()
    this.size--
  }

  /** The array in which a slot keeps its state, from index slot × width; slot −1 is a key never seen. */
  stateOf(shard: Shard, slot: number): Float64Array {
    if (this.policy.rule.width === 0) return slot < 0 ? empty : (shard.lists[slot] as Float64Array)
    return slot < 0 ? zeros : shard.slab
  }

  /** Writes a state, given from index `at`, into a slot of {@link Table.shard}. */
  put(slot: number, state: Float64Array, at: number): void {
    const { width } = this.policy.rule
    if (width === 0) this.shard.lists[slot] = state
    else for (let index = 0; index < width; index++) this.shard.slab[slot * width + index] = state[at + index] as number
  }

  /** Forgets everything. */
  clear(): void {
    this.size = 0
    this.shard = new Shard(this.policy.rule.width)
    this.shards = [this.shard]
    this.small = new Map()
    this.sweepShard = 0
  }

  /** A shard that has keys, from a number in [0, 1); undefined when there is none. */
  someShard(chance: number): Shard | undefined {
    const first = Math.floor(chance * this.shards.length)
    for (let step = 0; step < this.shards.length; step++) {
      const shard = this.shards[(first + step) % this.shards.length] as Shard
      if (shard.size > 0) return shard
    }
    return undefined
  }

  /** Forgets, among the next `slots` slots, those whose state has long equalled that of a key never seen. */
  sweep(slots: number, nowUs: number): void {
    let left = Math.min(slots, this.size)
    for (let visited = 0; left > 0 && visited <= this.shards.length; visited++) {
      const shard = this.shards[this.sweepShard % this.shards.length] as Shard
      left -= this.sweepOne(shard, left, nowUs)
      if (shard.cursor === 0) this.sweepShard = (this.sweepShard + 1) % this.shards.length
    }
  }

  /** Looks at up to `slots` slots of one shard from where it stopped; says how many it looked at. */
  sweepOne(shard: Shard, slots: number, nowUs: number): number {
    const { rule } = this.policy
    const ended = Math.floor((nowUs - lingerUs) / rule.tickUs)
    let looked = 0
    while (looked < slots && shard.cursor < shard.size) {
      looked++
      const slot = shard.cursor
      if (rule.endsAt(this.stateOf(shard, slot), slot * rule.width) <= ended) this.drop(shard, slot)
      else shard.cursor++
    }
    if (shard.cursor >= shard.size) shard.cursor = 0
    return looked
  }

  /** Spreads the only shard over many; `key` is the one about to be added. */
  private split(key: string): void {
    const [old] = this.shards as [Shard]
    const { width } = this.policy.rule
    seedHash()
    this.small = undefined
    this.shards = Array.from({ length: manyShards }, () => new Shard(width))
    for (let slot = 0; slot < old.size; slot++) {
      this.find(old.keyAt(slot))
      const { shard } = this
      const to = shard.add(old.keyAt(slot))
      shard.enter(this.hash, to)
      if (width === 0) shard.lists[to] = old.lists[slot] as Float64Array
      else shard.slab.set(old.slab.subarray(slot * width, (slot + 1) * width), to * width)
    }
    this.find(key)
  }
}

/** The state of a key never seen, for rules of fixed width; lists use the empty array. */
const zeros: Float64Array = new Float64Array(3)
