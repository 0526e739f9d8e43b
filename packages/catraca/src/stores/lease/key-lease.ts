import type { Decision, LeaseTerms, Source } from '../../core/decision.ts'
import type { Lot } from './events.ts'
import { Lease } from './lease.ts'

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

/** Where units of a lease can be taken without a word to it. */
interface Pockets {
  settle(lease: KeyLease): void
  fill(lease: KeyLease): void
}

/** The lease of one key of one policy. */
export class KeyLease extends Lease<Grant, Caller> {
  /** The place of the policy; another one after a replacement. */
  member: number
  readonly source: Source
  readonly ttlUs: number
  readonly key: string
  readonly tag: string | undefined
  /** Under which it is found. */
  readonly name: string
  /** What the centre said when it last refused. */
  refusal: Decision | undefined
  /** Its place among the leases of the policy; -1 once it is forgotten there. */
  slot: number
  private readonly pockets: Pockets

  constructor(
    terms: LeaseTerms,
    source: Source,
    member: number,
    key: string,
    tag: string | undefined,
    name: string,
    slot: number,
    pockets: Pockets,
  ) {
    super(terms)
    this.source = source
    this.ttlUs = terms.ttlUs
    this.member = member
    this.key = key
    this.tag = tag
    this.name = name
    this.slot = slot
    this.pockets = pockets
  }

  /** Asks or changes the lease with all units accounted for that were taken without a word to it. */
  with<T>(run: (lease: KeyLease) => T): T {
    this.pockets.settle(this)
    try {
      return run(this)
    } finally {
      this.pockets.fill(this)
    }
  }
}

/** Units in hand at one lot. */
export type GrantLot = Lot<Grant>
