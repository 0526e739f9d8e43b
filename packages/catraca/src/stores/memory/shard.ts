import { flatCopy } from '../key.ts'

const firstCapacity = 16
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
  /** Pairs (hash, slot + 1); slot 0 + 1 = 0 marks a free place. */
  private index: Int32Array = new Int32Array(firstCapacity * 2)
  private mask: number = firstCapacity - 1
  private readonly width: number

  constructor(width: number) {
    this.width = width
    this.slab = new Float64Array(firstCapacity * width)
  }

  /** Slot of a key, or −1. */
  find(hash: number, key: string): number {
    const { index, mask, keys } = this
    for (let place = (hash >>> 6) & mask; ; place = (place + 1) & mask) {
      const slot = (index[place * 2 + 1] as number) - 1
      if (slot < 0) return -1
      if (index[place * 2] === hash && keys[slot] === key) return slot
    }
  }

  /** Adds a key that is not there, with the state of a key never seen; returns its slot. */
  add(hash: number, key: string): number {
    if (this.size >= (this.mask + 1) * maxLoad) this.resize((this.mask + 1) * 2)
    const slot = this.size++
    this.keys.push(flatCopy(key))
    if (this.width === 0) this.lists.push(empty)
    else {
      const end = this.size * this.width
      if (end > this.slab.length)
        this.slab = copy(this.slab, (Math.ceil(this.size * 1.25) + firstCapacity) * this.width)
      this.slab.fill(0, end - this.width, end)
    }
    this.enter(hash, slot)
    return slot
  }

  /** Forgets the key in a slot; the last slot moves there. */
  drop(slot: number, hashOf: (key: string) => number): void {
    const last = --this.size
    this.leave(hashOf(this.keyAt(slot)), slot)
    if (slot !== last) {
      const key = this.keyAt(last)
      this.index[this.placeOf(hashOf(key), last) * 2 + 1] = slot + 1
      this.keys[slot] = key
      if (this.width === 0) this.lists[slot] = this.lists[last] as Float64Array
      else this.slab.copyWithin(slot * this.width, last * this.width, (last + 1) * this.width)
    }
    this.keys.pop()
    this.lists.pop()
    if (this.mask + 1 > firstCapacity && this.size < (this.mask + 1) / 8) this.resize((this.mask + 1) / 2)
  }

  keyAt(slot: number): string {
    return this.keys[slot] as string
  }

  private placeOf(hash: number, slot: number): number {
    let place = (hash >>> 6) & this.mask
    while (this.index[place * 2 + 1] !== slot + 1) place = (place + 1) & this.mask
    return place
  }

  private enter(hash: number, slot: number): void {
    let place = (hash >>> 6) & this.mask
    while (this.index[place * 2 + 1] !== 0) place = (place + 1) & this.mask
    this.index[place * 2] = hash
    this.index[place * 2 + 1] = slot + 1
  }

  /** Frees the place of a slot and pulls later entries of the same run back, so that no search ends too early. */
  private leave(hash: number, slot: number): void {
    const { index, mask } = this
    let hole = this.placeOf(hash, slot)
    for (let place = (hole + 1) & mask; index[place * 2 + 1] !== 0; place = (place + 1) & mask) {
      const home = ((index[place * 2] as number) >>> 6) & mask
      if (((place - home) & mask) < ((place - hole) & mask)) continue
      index[hole * 2] = index[place * 2] as number
      index[hole * 2 + 1] = index[place * 2 + 1] as number
      hole = place
    }
    index[hole * 2] = 0
    index[hole * 2 + 1] = 0
  }

  private resize(capacity: number): void {
    const old = this.index
    this.index = new Int32Array(capacity * 2)
    this.mask = capacity - 1
    for (let place = 0; place < old.length; place += 2) {
      const slot = (old[place + 1] as number) - 1
      if (slot >= 0) this.enter(old[place] as number, slot)
    }
    if (this.slab.length > capacity * this.width * 2) this.slab = copy(this.slab, capacity * this.width)
  }
}

/** The list of a key never seen. */
export const empty: Float64Array = new Float64Array(0)

function copy(slab: Float64Array, length: number): Float64Array {
  const other = new Float64Array(length)
  other.set(length < slab.length ? slab.subarray(0, length) : slab)
  return other
}
