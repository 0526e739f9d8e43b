import type { LeaseTerms } from '../../src/core/decision.ts'
import type { LeaseEffect, LeaseEvent, Lot } from '../../src/stores/lease/events.ts'
import { Lease } from '../../src/stores/lease/lease.ts'
import type { Caller, Fault, Grant, LeaseSearch } from '../../src/testing.ts'

type Machine = Lease<Grant, Caller>

/** A defect of a lease, or of what is around it. */
export interface Planted {
  readonly name: string
  /** What a search is given for it. */
  readonly search: Pick<LeaseSearch, 'makeLease' | 'endUs' | 'clock' | 'learns'>
  /** A kind of rule under which it does harm. */
  readonly rule: string
  /** What the search sees of it; each of these by itself. */
  readonly seen: readonly Fault['kind'][]
}

/** Leases that end are forgotten, and nothing goes back. */
class NeverReturns extends Lease<Grant, Caller> {
  override step(event: LeaseEvent<Grant, Caller>, nowUs: number): LeaseEffect<Grant, Caller>[] {
    return super.step(event, nowUs).filter(({ type }) => type !== 'return')
  }
}

/** The window of a lease has both its ends. */
class ClosedWindow extends Lease<Grant, Caller> {
  protected override hasEnded(lot: Lot<Grant>, nowUs: number): boolean {
    return nowUs > lot.endsUs
  }
}

/** More stays in hand than a lease may hold. */
class Hoards extends Lease<Grant, Caller> {
  protected override get most(): number {
    return 2 * super.most
  }
}

const by =
  (machine: new (terms: LeaseTerms) => Machine) =>
  (terms: LeaseTerms): Machine =>
    new machine(terms)

export const planted: readonly Planted[] = [
  {
    name: 'a lease that is not returned',
    search: { makeLease: by(NeverReturns) },
    rule: 'sliding log',
    seen: ['kept'],
  },
  {
    name: 'a window that is closed on both sides',
    search: {
      makeLease: by(ClosedWindow),
      endUs: (sentUs, ttlUs, windowLeftUs) => sentUs + Math.min(ttlUs, windowLeftUs),
    },
    rule: 'fixed window',
    seen: ['late', 'over'],
  },
  {
    name: 'more in hand than a lease may hold',
    search: { makeLease: by(Hoards) },
    rule: 'sliding log',
    seen: ['held', 'over'],
  },
  {
    name: 'a clock that is moved back',
    search: { clock: 'wall' },
    rule: 'fixed window',
    seen: ['late', 'over'],
  },
  {
    name: 'a loss of memory that nobody minds',
    search: { learns: false },
    rule: 'sliding log',
    seen: ['over'],
  },
]
