import { Decision } from '../../core/decision.ts'
import { floorDiv } from '../../core/integer.ts'
import type { Grant, KeyLease } from './key-lease.ts'
import type { Lot } from './lease.ts'

/** An admission that took units which the instance holds, or that were asked for on its behalf. */
export class LeasedDecision extends Decision {
  /** @internal */
  readonly lease: KeyLease
  /** @internal The units it took. */
  readonly lot: Lot<Grant>

  /** @internal @param nowUs By the monotonic clock here. */
  constructor(lease: KeyLease, lot: Lot<Grant>, key: string, cost: number, nowUs: number) {
    const { decision, sentUs } = lot.grant
    const { source, level, prior, lead } = decision
    const { limit, tickUs } = source.rule
    // The time of the centre, at the latest: from the sending on, which was before the charge.
    const atUs = decision.nowUs + (nowUs - sentUs)
    const ticks = tickUs === 1 ? nowUs - sentUs : floorDiv(atUs, tickUs) - floorDiv(decision.nowUs, tickUs)
    // What this instance knows would pass: its own units, and what the centre had left when it was asked.
    const left = Math.min(limit, lease.held + decision.remaining)
    super(source, key, 0, atUs, cost, left, lead - ticks, level, prior, 0)
    this.lease = lease
    this.lot = lot
  }
}
