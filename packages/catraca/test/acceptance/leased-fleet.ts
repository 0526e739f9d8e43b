import type { Rule } from 'catraca'
import type { LeaseEffect, Lot } from '../../src/stores/lease/events.ts'
import { Lease } from '../../src/stores/lease/lease.ts'
import { leaseEndUs, windowLeftUs } from '../../src/stores/lease/terms.ts'

/** How the instances of a fleet hold units. */
export interface FleetTerms {
  readonly block: number
  readonly ttlUs: number
  /** False: blocks are asked for only when somebody needs one. */
  readonly refill: boolean
  /** False: leases do not end with the window in which they were charged. */
  readonly endsWithWindow: boolean
}

/** What the centre charged, as a rule remembers it. */
type Charged = Parameters<Rule['refund']>[3]

/** Instances that lease one key of one rule from a centre which answers at once. Time is whole µs. */
export class LeasedFleet {
  private readonly rule: Rule
  private readonly terms: FleetTerms
  private readonly instances: Lease<Charged, { admitted?: boolean }>[]
  private state: Float64Array
  private permit = 0

  constructor(rule: Rule, count: number, terms: FleetTerms) {
    this.rule = rule
    this.terms = terms
    this.state = new Float64Array(rule.width)
    this.instances = Array.from({ length: count }, () => new Lease(terms, terms.refill ? 3 : 0))
  }

  /** Asks one instance for `cost` units. */
  ask(at: number, nowUs: number, cost = 1): boolean {
    const lease = this.instances[at] as Lease<Charged, { admitted?: boolean }>
    if (lease.take(cost, nowUs) !== undefined) {
      if (lease.wantsRefill(nowUs)) this.perform(lease, lease.step({ type: 'refill' }, nowUs), nowUs)
      return true
    }
    const waiter: { admitted?: boolean } = {}
    this.perform(lease, lease.step({ type: 'wait', waiter, cost }, nowUs), nowUs)
    if (waiter.admitted === undefined) throw new Error('a caller was left waiting by a centre that answers at once')
    return waiter.admitted
  }

  /** Units that one instance holds. */
  heldBy(at: number): number {
    return this.instances[at]?.held ?? 0
  }

  /** An instance ends in order: what it holds goes back. */
  close(at: number, nowUs: number): void {
    const lease = this.instances[at] as Lease<Charged, { admitted?: boolean }>
    this.perform(lease, lease.step({ type: 'close' }, nowUs), nowUs)
  }

  private perform(
    lease: Lease<Charged, { admitted?: boolean }>,
    effects: LeaseEffect<Charged, { admitted?: boolean }>[],
    nowUs: number,
  ): void {
    for (const effect of effects) {
      if (effect.type === 'ask') this.grant(lease, effect.least, effect.most, nowUs)
      else if (effect.type === 'return') this.giveBack(effect.lot, effect.units, nowUs)
      else if (effect.type === 'admit') effect.waiter.admitted = true
      else if (effect.type === 'refuse') effect.waiter.admitted = false
    }
  }

  private grant(lease: Lease<Charged, { admitted?: boolean }>, least: number, most: number, nowUs: number): void {
    const { rule, state } = this
    const units = Math.min(most, rule.remaining(state, 0, nowUs))
    if (units < least) {
      const waitUs = rule.wait(state, 0, nowUs, least)
      this.perform(lease, lease.step({ type: 'refused', waitUs }, nowUs), nowUs)
      return
    }
    this.permit++
    this.state = rule.charge(state, 0, nowUs, units, this.permit)
    const origin = rule.originAt(this.state, 0)
    const level = rule.levelAt(this.state, 0, nowUs)
    const grant = { origin, level, lead: origin - nowUs, prior: rule.width === 0 ? this.permit : 0, cost: units }
    const left = this.terms.endsWithWindow ? windowLeftUs(rule, origin, nowUs) : Infinity
    const endsUs = leaseEndUs(nowUs, this.terms.ttlUs, left)
    this.perform(lease, lease.step({ type: 'granted', grant, units, endsUs }, nowUs), nowUs)
  }

  private giveBack({ grant }: Lot<Charged>, units: number, nowUs: number): void {
    this.rule.refund(this.state, 0, nowUs, grant, units)
  }
}
