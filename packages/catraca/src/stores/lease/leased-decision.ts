import { Decision, degraded, peeked } from '../../core/decision.ts'
import { floorDiv } from '../../core/integer.ts'
import { reasonCode } from '../../core/reason.ts'
import type { GrantLot, KeyLease } from './key-lease.ts'

/** An admission that took units which the instance holds, or that were asked for on its behalf. */
export class LeasedDecision extends Decision {
  /** @internal */
  readonly lease: KeyLease
  /** @internal The units it took. */
  readonly lot: GrantLot
  /** @internal When: `Lease.marks`. */
  readonly marks: number

  /** @internal */
  constructor(
    lease: KeyLease,
    lot: GrantLot,
    marks: number,
    key: string,
    cost: number,
    atUs: number,
    remaining: number,
    lead: number,
    level: number,
    prior: number,
  ) {
    super(lease.source, key, 0, atUs, cost, remaining, lead, level, prior, 0)
    this.lease = lease
    this.lot = lot
    this.marks = marks
  }
}

/** The decision of units in hand. `nowUs` is by the monotonic clock here. */
export function leasedDecision(
  lease: KeyLease,
  lot: GrantLot,
  marks: number,
  key: string,
  cost: number,
  nowUs: number,
): LeasedDecision {
  const { decision, sentUs } = lot.grant
  const { source, level, prior, origin } = decision
  const { limit, tickUs } = source.rule
  // The time of the centre, at the latest: from the sending on, which was before the charge.
  const atUs = decision.nowUs + (nowUs - sentUs)
  const lead = origin - (tickUs === 1 ? atUs : floorDiv(atUs, tickUs))
  // What this instance knows would pass: its own units, and what the centre had left when it was asked.
  const remaining = Math.min(limit, lease.held + decision.remaining)
  return new LeasedDecision(lease, lot, marks, key, cost, atUs, remaining, lead, level, prior)
}

/** The last refusal of a key, for one caller. */
export function refusalOf(lease: KeyLease, key: string, cost: number): Decision {
  const { source, nowUs, remaining, lead, level, prior, waitUs, reason } = lease.refusal as Decision
  const left = Math.min(source.rule.limit, remaining + lease.held)
  return new Decision(source, key, reasonCode(reason), nowUs, cost, left, lead, level, prior, waitUs)
}

/** What would pass with the units in hand here. */
export function withHeld(part: Decision, held: number): Decision {
  const { source, key, nowUs, cost, remaining, lead, level, prior, waitUs } = part
  const left = Math.min(source.rule.limit, remaining + held)
  const passes = part.allowed || (cost <= left && part.reason !== 'blocked')
  const state = passes ? peeked | (part.degraded ? degraded : 0) : part.state
  return new Decision(source, key, state, nowUs, cost, left, lead, level, prior, passes ? 0 : waitUs)
}
