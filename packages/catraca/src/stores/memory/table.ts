import type { Source } from '../../core/decision.ts'
import { hashOf } from './hash.ts'
import { empty, Shard } from './shard.ts'

/** Up to this many keys a table is one shard; beyond it, many, so that growing one is a short pause. */
const oneShardKeys = 1_024
const manyShards = 64
/** A key stays this long after its state has ended: one that comes again and again is not forgotten and added each time. */
const lingerUs = 5_000_000

/** All keys of one policy. */
export class Table {
  readonly policy: Source
  size = 0
  private shards: Shard[]
  private sweepShard = 0

  constructor(policy: Source) {
    this.policy = policy
    this.shards = [new Shard(policy.rule.width)]
  }

  shardOf(hash: number): Shard {
    return this.shards[hash & (this.shards.length - 1)] as Shard
  }

  /** Adds a key that is not there; its shard may be another one afterwards. */
  add(hash: number, key: string): void {
    if (this.size === oneShardKeys && this.shards.length === 1) this.split()
    this.size++
    this.shardOf(hash).add(hash, key)
  }

  drop(shard: Shard, slot: number): void {
    shard.drop(slot, hashOf)
    this.size--
  }

  /** The array in which a slot keeps its state, from index slot × width; slot −1 is a key never seen. */
  stateOf(shard: Shard, slot: number): Float64Array {
    if (this.policy.rule.width === 0) return slot < 0 ? empty : (shard.lists[slot] as Float64Array)
    return slot < 0 ? zeros : shard.slab
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

  private split(): void {
    const [old] = this.shards as [Shard]
    const { width } = this.policy.rule
    this.shards = Array.from({ length: manyShards }, () => new Shard(width))
    for (let slot = 0; slot < old.size; slot++) {
      const key = old.keyAt(slot)
      const hash = hashOf(key)
      const shard = this.shardOf(hash)
      const to = shard.add(hash, key)
      if (width === 0) shard.lists[to] = old.lists[slot] as Float64Array
      else shard.slab.set(old.slab.subarray(slot * width, (slot + 1) * width), to * width)
    }
  }
}

/** The state of a key never seen, for rules of fixed width; lists use the empty array. */
const zeros: Float64Array = new Float64Array(3)
