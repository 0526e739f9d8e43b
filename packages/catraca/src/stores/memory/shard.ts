import { hashOf } from './hash.ts'

const firstCapacity = 16
/** The lowest bits of a hash choose the shard. */
const shardBits = 6
const slotBits = 24
const slotMask = (1 << slotBits) - 1
/** The index grows when more than 3 of 4 places are taken. */
const maxLoad = 0.75

/**
 * A part of a table: keys in an open-addressed index over typed arrays, states in a slab of numbers.
 *
 * Slots are dense, 0 to `size − 1`: the last one moves into the place of one that is dropped, so a sweep or a sample can
 * walk them. A look-up touches the index, then the key and the state, which are independent reads.
 */
export class Shard {
  size = 0
  /** State of slot s: numbers from s × width. Unused when `width` is 0. */
  slab: Float64Array
  /** State of slot s when `width` is 0: a list of its own. */
  readonly lists: Float64Array[] = []
  /** Where the sweep goes on. */
  cursor = 0
  private readonly keys: string[] = []
  /** Slot + 1 in the low 24 bits, 0 for a free place, and 8 bits of the hash above, so that few other keys are compared. */
  private index: Int32Array = new Int32Array(firstCapacity)
  private mask: number = firstCapacity - 1
  private entries = 0
  private readonly width: number

  constructor(width: number) {
    this.width = width
    this.slab = new Float64Array(firstCapacity * width)
  }

  /** Slot of a key that was entered, or −1. */
  find(hash: number, key: string): number {
    const { index, mask, keys } = this
    for (let place = (hash >>> shardBits) & mask; ; place = (place + 1) & mask) {
      const entry = index[place] as number
      if (entry === 0) return -1
      if ((entry ^ hash) >>> slotBits === 0 && keys[(entry & slotMask) - 1] === key) return (entry & slotMask) - 1
    }
  }

  /** Takes the next slot for a key, with the state of a key never seen; the caller makes it findable. */
  add(key: string): number {
    const slot = this.size++
    this.keys.push(key)
    if (this.width === 0) this.lists.push(empty)
    else {
      const end = this.size * this.width
      if (end > this.slab.length)
        this.slab = copy(this.slab, (Math.ceil(this.size * 1.25) + firstCapacity) * this.width)
      this.slab.fill(0, end - this.width, end)
    }
    return slot
  }

  /** Empties a slot; the last one moves there. The caller has renamed them. */
  drop(slot: number): void {
    const last = --this.size
    this.keys[slot] = this.keys[last] as string
    this.keys.pop()
    if (this.width === 0) {
      this.lists[slot] = this.lists[last] as Float64Array
      this.lists.pop()
      return
    }
    this.slab.copyWithin(slot * this.width, last * this.width, (last + 1) * this.width)
    if (this.slab.length > 4 * (this.size + firstCapacity) * this.width) {
      this.slab = copy(this.slab, 2 * (this.size + firstCapacity) * this.width)
    }
  }

  keyAt(slot: number): string {
    return this.keys[slot] as string
  }

  /** Makes a slot findable by the hash of its key. */
  enter(hash: number, slot: number): void {
    if (++this.entries > (this.mask + 1) * maxLoad) this.resize((this.mask + 1) * 2)
    else this.put(hash, slot)
  }

  /** Notes that a key has moved to another slot. */
  rename(hash: number, from: number, to: number): void {
    this.index[this.placeOf(hash, from)] = entryOf(hash, to)
  }

  /** Frees the place of a slot and pulls later entries of the same run back, so that no search ends too early. */
  leave(hash: number, slot: number): void {
    const { index, mask } = this
    let hole = this.placeOf(hash, slot)
    for (let place = (hole + 1) & mask; index[place] !== 0; place = (place + 1) & mask) {
      const home = (hashOf(this.keyAt(((index[place] as number) & slotMask) - 1)) >>> shardBits) & mask
      if (((place - home) & mask) < ((place - hole) & mask)) continue
      index[hole] = index[place] as number
      hole = place
    }
    index[hole] = 0
    this.entries--
  }

  /** Gives memory back after most keys have left. The slot just dropped is gone from the index and from the slots. */
  shrink(): void {
    if (this.mask + 1 > firstCapacity && this.size < (this.mask + 1) / 8) this.resize((this.mask + 1) / 2)
  }

  private placeOf(hash: number, slot: number): number {
    let place = (hash >>> shardBits) & this.mask
    while (((this.index[place] as number) & slotMask) !== slot + 1) place = (place + 1) & this.mask
    return place
  }

  private put(hash: number, slot: number): void {
    let place = (hash >>> shardBits) & this.mask
    while (this.index[place] !== 0) place = (place + 1) & this.mask
    this.index[place] = entryOf(hash, slot)
  }

  /** A new index for all slots. Hashes are computed anew: keeping them would double the index. */
  private resize(capacity: number): void {
    this.index = new Int32Array(capacity)
    this.mask = capacity - 1
    for (let slot = 0; slot < this.size; slot++) this.put(hashOf(this.keyAt(slot)), slot)
  }
}

function entryOf(hash: number, slot: number): number {
  return (hash & ~slotMask) | (slot + 1)
}

/** The list of a key never seen. */
export const empty: Float64Array = new Float64Array(0)

function copy(slab: Float64Array, length: number): Float64Array {
  const other = new Float64Array(length)
  other.set(length < slab.length ? slab.subarray(0, length) : slab)
  return other
}
