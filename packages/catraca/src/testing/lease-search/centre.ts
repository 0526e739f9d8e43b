import type { LeaseTerms } from '../../core/decision.ts'
import type { Charge, Rule } from '../../core/rule.ts'
import { outlastsRule, windowLeftUs } from '../../stores/lease/terms.ts'

/** Units that the centre gave. */
export interface Grant {
  readonly id: number
  /** The instant at which they were charged, true time. */
  readonly atUs: number
  readonly units: number
  readonly charge: Charge
  /** How often the centre had lost its memory before. */
  readonly epoch: number
  readonly windowLeftUs: number
}

/** What the centre says to a question. */
export interface Answer {
  /** Undefined where it refuses. */
  readonly grant: Grant | undefined
  /** Until what was asked for at least would pass. */
  readonly waitUs: number
  readonly atUs: number
  readonly epoch: number
  /** Grants so far, this one included. */
  readonly grants: number
}

/** The store that all instances share, holding one key by the functions of its rule. */
export class Centre {
  epoch = 0
  /** Grants so far. */
  grants = 0
  /** Units given so far, and those that came back, counted or not. */
  given = 0
  returned = 0
  /** Units that came back and that the rule did not give back in full. */
  notRefunded = 0
  private readonly rule: Rule
  private readonly ttlUs: number
  private readonly startsFull: boolean
  private readonly learns: boolean
  private state: Float64Array | undefined
  private lostUs = -Infinity

  /** @param learns False: a lost memory is not noticed. */
  constructor(rule: Rule, terms: LeaseTerms, learns: boolean) {
    this.rule = rule
    this.ttlUs = terms.ttlUs
    this.startsFull = outlastsRule(rule, terms)
    this.learns = learns
  }

  /** As many units as pass: at least `least`, at most `most`. */
  grant(least: number, most: number, nowUs: number): Answer {
    const { rule, epoch } = this
    const state = this.stateAt(nowUs)
    const wait = rule.wait(state, 0, nowUs, least)
    if (wait > 0) return { grant: undefined, waitUs: wait, atUs: nowUs, epoch, grants: this.grants }
    const units = Math.max(least, Math.min(most, rule.remaining(state, 0, nowUs)))
    const id = ++this.grants
    this.state = rule.charge(state, 0, nowUs, units, id)
    const origin = rule.originAt(this.state, 0)
    const charge: Charge = {
      lead: origin - nowUs,
      level: rule.levelAt(this.state, 0, nowUs),
      prior: rule.width === 0 ? id : rule.width === 3 ? (this.state[2] as number) : 0,
      origin,
      cost: units,
    }
    this.given += units
    const left = windowLeftUs(rule, origin, nowUs)
    const grant: Grant = { id, atUs: nowUs, units, charge, epoch, windowLeftUs: left }
    return { grant, waitUs: 0, atUs: nowUs, epoch, grants: id }
  }

  /** Units of a grant come back. */
  takeBack(grant: Grant, units: number, nowUs: number): void {
    this.returned += units
    if (this.state === undefined) return
    this.notRefunded += units - this.rule.refund(this.state, 0, nowUs, grant.charge, units)
  }

  /** An instance tells what it has in hand and used, after a loss. */
  report(units: number, nowUs: number): void {
    if (this.startsFull || !this.isLearning(nowUs)) return
    const { rule } = this
    this.state = rule.charge(this.stateAt(nowUs), 0, nowUs, Math.min(units, rule.limit), ++this.grants)
  }

  /** The memory is gone. */
  lose(nowUs: number): void {
    this.epoch++
    this.state = undefined
    this.lostUs = nowUs
  }

  usedAt(nowUs: number): number {
    return this.rule.used(this.stateAt(nowUs), 0, nowUs)
  }

  private isLearning(nowUs: number): boolean {
    return this.learns && nowUs < this.lostUs + this.ttlUs
  }

  /** The state, or what a key without one starts with. */
  private stateAt(nowUs: number): Float64Array {
    if (this.state !== undefined) return this.state
    const { rule } = this
    const fresh = new Float64Array(rule.width)
    return this.startsFull && this.isLearning(nowUs) ? rule.charge(fresh, 0, this.lostUs, rule.limit, 0) : fresh
  }
}
