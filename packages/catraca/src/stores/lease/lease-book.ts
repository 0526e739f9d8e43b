import type { LeaseTerms, Source } from '../../core/decision.ts'
import { floorDiv } from '../../core/integer.ts'
import { flatCopy, storedKey } from '../key.ts'
import { type GrantLot, KeyLease } from './key-lease.ts'
import { LeasedDecision } from './leased-decision.ts'

/** Keys of a policy that are leased at once; others are asked for each time. A key that is not used leaves after two lease times. */
const keysKept = 250_000
/** Numbers per key: those of {@link LeaseBook.take}, then how many units were put into the pocket. */
const width = 8

/**
 * The leases of one policy by key.
 *
 * Of each lease some units are in a pocket: they can be taken without a word to it, and nothing is asked for meanwhile.
 * All that such a decision needs is in eight numbers side by side: with very many keys its time is that of reaching for
 * memory, and a lease of objects lies in a dozen places.
 */
export class LeaseBook {
  readonly terms: LeaseTerms
  private readonly source: Source
  private readonly member: number
  private readonly slots = new Map<string, number>()
  private readonly leases: (KeyLease | undefined)[] = []
  private readonly lots: (GrantLot | undefined)[] = []
  private readonly marks: number[] = []
  private readonly free: number[] = []
  private numbers = new Float64Array(64 * width)
  /** Where the walk over all leases is. */
  private walk = 0

  constructor(terms: LeaseTerms, source: Source, member: number) {
    this.terms = terms
    this.source = source
    this.member = member
  }

  get size(): number {
    return this.slots.size
  }

  /** The place of the lease of a key; -1 where there is none. */
  slotOf(key: string, tag: string | undefined): number {
    return this.slots.get(nameOf(key, tag)) ?? -1
  }

  /** The same, of a lease that is made where there is none; -1 when there are too many. */
  open(key: string, tag: string | undefined): number {
    const name = nameOf(key, tag)
    const known = this.slots.get(name)
    if (known !== undefined) return known
    if (this.slots.size >= keysKept) return -1
    const slot = this.free.pop() ?? this.leases.length
    if ((slot + 1) * width > this.numbers.length) {
      const larger = new Float64Array(this.numbers.length * 2)
      larger.set(this.numbers)
      this.numbers = larger
    }
    const flat = flatCopy(name)
    this.numbers.fill(0, slot * width, (slot + 1) * width)
    this.leases[slot] = new KeyLease(this.terms, this.source, this.member, key, tag, flat, slot, this)
    this.lots[slot] = undefined
    this.marks[slot] = 0
    this.slots.set(flat, slot)
    return slot
  }

  lease(slot: number): KeyLease {
    return this.leases[slot] as KeyLease
  }

  /** Takes units from a pocket; undefined where it has not enough, or its lease is over. */
  take(slot: number, key: string, cost: number, nowUs: number): LeasedDecision | undefined {
    const { numbers, source } = this
    const at = slot * width
    const left = (numbers[at] as number) - cost
    if (left < 0 || nowUs >= (numbers[at + 1] as number)) return undefined
    numbers[at] = left
    const { limit, tickUs } = source.rule
    const atUs = nowUs + (numbers[at + 2] as number)
    const lead = (numbers[at + 3] as number) - (tickUs === 1 ? atUs : floorDiv(atUs, tickUs))
    const level = numbers[at + 4] as number
    const prior = numbers[at + 5] as number
    const remaining = Math.min(limit, left + (numbers[at + 6] as number))
    const lease = this.leases[slot] as KeyLease
    const lot = this.lots[slot] as GrantLot
    return new LeasedDecision(lease, lot, this.marks[slot] as number, key, cost, atUs, remaining, lead, level, prior)
  }

  /** Tells a lease what was taken from its pocket, which is empty then. */
  settle({ slot }: KeyLease): void {
    if (slot < 0) return
    const { numbers } = this
    const at = slot * width
    const taken = (numbers[at + 7] as number) - (numbers[at] as number)
    numbers[at] = 0
    numbers[at + 7] = 0
    if (taken > 0) this.lease(slot).spend(taken)
  }

  /** Puts into the pocket of a lease what it can spare. */
  fill(lease: KeyLease): void {
    const { slot, first, spare } = lease
    if (slot < 0 || first === undefined || spare === 0) return
    const { numbers } = this
    const at = slot * width
    const { decision, sentUs } = first.grant
    numbers[at] = spare
    numbers[at + 1] = first.endsUs
    numbers[at + 2] = decision.nowUs - sentUs
    numbers[at + 3] = decision.origin
    numbers[at + 4] = decision.level
    numbers[at + 5] = decision.prior
    numbers[at + 6] = lease.held - spare + decision.remaining
    numbers[at + 7] = spare
    this.lots[slot] = first
    this.marks[slot] = lease.marks
  }

  /** Forgets the lease of a key; undefined where there is none. */
  remove(key: string, tag: string | undefined): KeyLease | undefined {
    const slot = this.slotOf(key, tag)
    if (slot < 0) return undefined
    const lease = this.lease(slot)
    this.forget(lease)
    return lease
  }

  /** All leases, which are forgotten. */
  takeAll(): KeyLease[] {
    const all = this.all()
    for (const lease of all) this.forget(lease)
    return all
  }

  /** All leases. */
  all(): KeyLease[] {
    return this.leases.filter((lease) => lease !== undefined)
  }

  /**
   * Goes on in the walk over all leases by `share` of them, at those that end within `soonUs` or have nothing in their
   * pocket; those that became idle are forgotten.
   */
  look(share: number, nowUs: number, soonUs: number, visit: (lease: KeyLease) => void): void {
    for (let left = Math.ceil(this.leases.length * share); left > 0; left--) {
      this.walk = (this.walk + 1) % this.leases.length
      const lease = this.leases[this.walk]
      const at = this.walk * width
      const lasts = (this.numbers[at + 7] as number) > 0 && (this.numbers[at + 1] as number) > nowUs + soonUs
      if (lease === undefined || lasts) continue
      visit(lease)
      if (lease.isIdle) this.forget(lease)
    }
  }

  private forget(lease: KeyLease): void {
    this.settle(lease)
    this.slots.delete(lease.name)
    this.leases[lease.slot] = undefined
    this.lots[lease.slot] = undefined
    this.free.push(lease.slot)
    lease.slot = -1
  }
}

/** Under which a lease is found: states of one key under two tags are two states. */
function nameOf(key: string, tag: string | undefined): string {
  return tag === undefined ? storedKey(key) : storedKey(`${tag.length}:${tag}${key}`)
}
