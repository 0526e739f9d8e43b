import { Decision, degraded, peeked, type Source } from '../../core/decision.ts'
import { reasonCode } from '../../core/reason.ts'
import { flatCopy, storedKey } from '../key.ts'
import { onlyStoreUs } from './modes.ts'

/** Keys that are remembered; at the bound the one not asked for longest goes. */
const keysKept = 100_000
/** Longer keys are kept as they are: such are rare, and copying has its bounds. */
const copied = 1_024

/** Units granted without the store, to be charged to it. */
export interface Owed {
  readonly source: Source
  readonly key: string
  readonly tag: string | undefined
  readonly units: number
}

/** What is known of one key in one period. */
interface Known {
  /** End of the period, in µs: another one begins with nothing used. */
  readonly endUs: number
  readonly startUs: number
  /** Used in the store when it last answered. */
  used: number
  /** Granted here since, as far as the store did not say that it knows. */
  granted: number
  /** Of these, not yet charged to the store. */
  owed: number
  /** Being charged right now. */
  sending: number
  /** Set while something is owed: what the store is asked with. */
  asked: { readonly source: Source; readonly key: string; readonly tag: string | undefined } | undefined
}

/**
 * Quotas while the shared store is gone. A quota is a promise about money, so an instance grants only its part of what
 * the store had left when it last answered: left ÷ instances, rounded down; of a key with nothing used, or never seen in
 * the period, its share of the limit (at least 1). What it granted counts here until the store has answered again, and is charged to the store at recovery.
 *
 * Bound: with u > 0 used when the store last answered all N instances, they grant at most N × floor((limit − u) ÷ N) ≤
 * limit − u units in the period, and with u = 0 at most max(limit, N). One whose last answer was older grants at most
 * 1 ÷ N of what was used since on top. At most 100,000 keys are remembered, in about 300 bytes each; what was granted to
 * one that is dropped is not charged.
 */
export class QuotaShares {
  private readonly known = new Map<string, Known>()
  private readonly scratch = new Float64Array(2)

  /** The store answered about a key. */
  seen(decision: Decision): void {
    const { source, remaining, nowUs } = decision
    const known = this.find(source, decision.key, nowUs, true)
    known.used = source.rule.limit - remaining
    known.granted = known.owed + known.sending
  }

  /** What is granted now; nothing is counted. */
  ask(source: Source, key: string, cost: number, instances: number, nowUs: number): Decision {
    const { limit, denial } = source.rule
    const known = this.find(source, key, nowUs, false)
    const left = Math.max(0, limit - known.used)
    const share = known.used === 0 ? Math.max(1, Math.floor(limit / instances)) : Math.floor(left / instances)
    const remaining = Math.max(0, Math.min(share - known.granted, left - known.granted))
    const state = (cost <= remaining ? 0 : reasonCode(cost > limit ? 'impossible' : denial)) | degraded | peeked
    const toEndUs = known.endUs - nowUs
    let waitUs = 0
    if (cost > limit) waitUs = Infinity
    else if (cost > remaining) waitUs = cost > left - known.granted ? toEndUs : Math.min(onlyStoreUs, toEndUs)
    const lead = known.startUs - nowUs
    return new Decision(source, key, state, nowUs, cost, remaining, lead, known.used + known.granted, 0, waitUs)
  }

  /** Counts what {@link QuotaShares.ask} granted; returns the decision that says so. */
  grant(asked: Decision, tag: string | undefined): Decision {
    const { source, key, nowUs, cost, remaining, lead, level, prior } = asked
    const known = this.find(source, key, nowUs, true)
    known.granted += cost
    known.owed += cost
    known.asked = { source, key: key.length <= copied ? flatCopy(key) : key, tag }
    return new Decision(source, key, degraded, nowUs, cost, remaining - cost, lead, level + cost, prior, 0)
  }

  /** Takes units of a grant back as long as they were not charged to the store; says how many. */
  refund(decision: Decision, units: number, nowUs: number): number {
    const known = this.known.get(nameOf(decision.source, decision.key))
    if (decision.charged === 0 || known === undefined || nowUs >= known.endUs) return 0
    if (known.startUs !== decision.nowUs + decision.lead) return 0
    const given = Math.min(units, decision.charged, known.owed)
    known.granted -= given
    known.owed -= given
    return given
  }

  forget(source: Source, key: string): void {
    this.known.delete(nameOf(source, key))
  }

  /** What is to be charged to the store now. Each is out until {@link QuotaShares.settle}. */
  takeOwed(nowUs: number): readonly { readonly owed: Owed; settle(charged: boolean): void }[] {
    const due = [...this.known.values()].filter(({ owed, endUs }) => owed > 0 && nowUs < endUs)
    return due.flatMap((known) => {
      const { owed: units, asked } = known
      if (asked === undefined) return []
      known.owed = 0
      known.sending += units
      const settle = (charged: boolean): void => {
        known.sending -= units
        if (!charged) known.owed += units
        else if (known.owed === 0) known.asked = undefined
      }
      return [{ owed: { ...asked, units }, settle }]
    })
  }

  /** What is known of a key in the period of `nowUs`. */
  private find(source: Source, key: string, nowUs: number, keep: boolean): Known {
    const name = nameOf(source, key)
    const { scratch } = this
    scratch[0] = 0
    scratch[1] = 0
    source.rule.charge(scratch, 0, nowUs, 0, 0)
    const startUs = source.rule.originAt(scratch, 0)
    const endUs = source.rule.endsAt(scratch, 0)
    const before = this.known.get(name)
    const same = before !== undefined && before.startUs === startUs && before.endUs === endUs
    const known = same ? before : { endUs, startUs, used: 0, granted: 0, owed: 0, sending: 0, asked: undefined }
    if (!keep) return known
    // The place in the map tells who was asked for last.
    if (before !== undefined) this.known.delete(name)
    this.known.set(name, known)
    if (this.known.size > keysKept) {
      const [oldest] = this.known.keys()
      this.known.delete(oldest as string)
    }
    return known
  }
}

/** Variants of one name count a key together. */
function nameOf({ name }: Source, key: string): string {
  return `${name} ${storedKey(key)}`
}
