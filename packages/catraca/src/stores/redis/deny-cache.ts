import { Decision } from '../../core/decision.ts'
import { reasonCode } from '../../core/reason.ts'

/** A refusal is believed this long at most: what others give back may make it pass earlier. */
const longestUs = 1_000_000
/** Then all are forgotten: each costs one trip more. */
const maxKeys = 10_000

interface Denial {
  readonly decision: Decision
  /** When the question was sent, by the clock here: the refusal was true at that instant or later. */
  readonly sentUs: number
  readonly untilUs: number
}

/**
 * Refusals that are still true, by policy, key and cost, so that a caller who hammers costs no trips. The wait counts
 * from the sending of the question that was refused, so that nobody waits longer than the store said. Not for permits,
 * which come back at any time, nor for policies whose charges are given back.
 */
export class DenyCache {
  /** By policy, then by key. */
  private readonly byPolicy: Map<string, Denial>[] = []
  private size = 0

  get isEmpty(): boolean {
    return this.size === 0
  }

  find(policy: number, key: string, cost: number, nowUs: number): Decision | undefined {
    const denial = this.byPolicy[policy]?.get(key)
    if (denial === undefined || denial.decision.cost !== cost) return undefined
    if (nowUs >= denial.untilUs || nowUs < denial.sentUs) {
      this.forget(policy, key)
      return undefined
    }
    return aged(denial.decision, nowUs - denial.sentUs)
  }

  add(policy: number, key: string, decision: Decision, sentUs: number): void {
    if (decision.waitUs === Infinity || decision.waitUs < 1_000) return
    this.forget(policy, key)
    if (this.size >= maxKeys) this.clear()
    const denials = this.byPolicy[policy] ?? new Map<string, Denial>()
    this.byPolicy[policy] = denials
    denials.set(key, { decision, sentUs, untilUs: sentUs + Math.min(longestUs, decision.waitUs) })
    this.size++
  }

  /** For a key whose state was changed from here. */
  forget(policy: number, key: string): void {
    if (this.byPolicy[policy]?.delete(key) === true) this.size--
  }

  clear(): void {
    this.byPolicy.length = 0
    this.size = 0
  }
}

/** The same refusal some µs later. */
function aged(decision: Decision, us: number): Decision {
  const { source, key, nowUs, cost, remaining, lead, level, prior, waitUs, reason } = decision
  const { tickUs } = source.rule
  const ticks = Math.floor((nowUs + us) / tickUs) - Math.floor(nowUs / tickUs)
  const code = reasonCode(reason)
  return new Decision(source, key, code, nowUs + us, cost, remaining, lead - ticks, level, prior, waitUs - us)
}
