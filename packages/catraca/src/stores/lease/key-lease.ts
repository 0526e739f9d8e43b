import type { Decision, LeaseTerms, Source } from '../../core/decision.ts'
import { flatCopy, storedKey } from '../key.ts'
import { Lease } from './lease.ts'

/** Keys of a policy that are leased at once; others are asked for each time. A key that is not used leaves after two lease times. */
const keysKept = 250_000

/** Units that the centre gave, as the instance that holds them sees them. */
export interface Grant {
  /** What the centre said. */
  readonly decision: Decision
  /** When the question was sent, by the monotonic clock here. */
  readonly sentUs: number
  /** The first instant, by the same clock, at which nothing can be given back any more. */
  readonly countsUntilUs: number
}

/** Somebody who waits for units. */
export interface Caller {
  readonly key: string
  readonly resolve: (decision: Decision) => void
}

/** The lease of one key of one policy. */
export class KeyLease extends Lease<Grant, Caller> {
  /** The place of the policy; another one after a replacement. */
  member: number
  readonly source: Source
  readonly ttlUs: number
  readonly key: string
  readonly tag: string | undefined
  /** What the centre said when it last refused. */
  refusal: Decision | undefined

  constructor(terms: LeaseTerms, source: Source, member: number, key: string, tag: string | undefined) {
    super(terms)
    this.source = source
    this.ttlUs = terms.ttlUs
    this.member = member
    this.key = key
    this.tag = tag
  }
}

/** The leases of one policy by key. */
export class LeaseBook {
  readonly terms: LeaseTerms
  private readonly source: Source
  private readonly member: number
  private readonly byKey = new Map<string, KeyLease>()
  /** Where the walk over all leases is. */
  private walk: Iterator<[string, KeyLease]> | undefined

  constructor(terms: LeaseTerms, source: Source, member: number) {
    this.terms = terms
    this.source = source
    this.member = member
  }

  get size(): number {
    return this.byKey.size
  }

  find(key: string, tag: string | undefined): KeyLease | undefined {
    return this.byKey.get(nameOf(key, tag))
  }

  /** The lease of a key, made where there is none; undefined when there are too many. */
  open(key: string, tag: string | undefined): KeyLease | undefined {
    const name = nameOf(key, tag)
    const known = this.byKey.get(name)
    if (known !== undefined || this.byKey.size >= keysKept) return known
    const lease = new KeyLease(this.terms, this.source, this.member, key, tag)
    this.byKey.set(flatCopy(name), lease)
    return lease
  }

  remove(key: string, tag: string | undefined): KeyLease | undefined {
    const name = nameOf(key, tag)
    const lease = this.byKey.get(name)
    this.byKey.delete(name)
    return lease
  }

  /** All leases, which are forgotten. */
  takeAll(): KeyLease[] {
    const all = [...this.byKey.values()]
    this.byKey.clear()
    this.walk = undefined
    return all
  }

  /** All leases. */
  all(): IterableIterator<KeyLease> {
    return this.byKey.values()
  }

  /** Goes on in the walk over all leases by `share` of them; those that became idle are forgotten. */
  look(share: number, visit: (lease: KeyLease) => void): void {
    for (let left = Math.ceil(this.byKey.size * share); left > 0; left--) {
      this.walk ??= this.byKey.entries()
      const { done, value } = this.walk.next() as IteratorResult<[string, KeyLease], undefined>
      if (done === true || value === undefined) {
        this.walk = undefined
        return
      }
      const [name, lease] = value
      visit(lease)
      if (lease.isIdle) this.byKey.delete(name)
    }
  }
}

/** Under which a lease is found: states of one key under two tags are two states. */
function nameOf(key: string, tag: string | undefined): string {
  return tag === undefined ? storedKey(key) : storedKey(`${tag.length}:${tag}${key}`)
}
