import type { LeaseTerms } from '../../core/decision.ts'
import type { Rule } from '../../core/rule.ts'
import type { Lease } from '../../stores/lease/lease.ts'
import { type LeaseBounds, leaseBounds } from '../../stores/lease/terms.ts'
import { Agenda } from './agenda.ts'
import { Centre, type Grant } from './centre.ts'
import type { Chance } from './chance.ts'
import type { Admission, Counts, Fault } from './log.ts'
import type { Profile } from './profile.ts'

/** Somebody who asks for units. */
export interface Caller {
  readonly cost: number
  /** Does not wait for an answer. */
  readonly leaves?: boolean
  /** Of who was refused and comes again. */
  readonly appointment?: Appointment | undefined
}

/** What a refusal says: who comes again at that time is admitted, if nobody else asks meanwhile. */
export interface Appointment {
  readonly atUs: number
  /** Grants of the centre when it was given. */
  readonly grants: number
}

/** What is searched, and the parts of the library that a test may put others in place of. */
export interface Trial {
  readonly rule: Rule
  readonly terms: LeaseTerms
  readonly instances: number
  readonly makeLease: (terms: LeaseTerms) => Lease<Grant, Caller>
  readonly endUs: (sentUs: number, ttlUs: number, windowLeftUs: number) => number
  /** The clock that leases are judged by. */
  readonly clock: 'monotonic' | 'wall'
  /** False: nobody minds that the centre lost its memory. */
  readonly learns: boolean
}

/** Something that happened, µs since the start of the run. */
export interface Line {
  readonly us: number
  readonly text: string
}

/** What all parts of one run share. */
export class World {
  readonly trial: Trial
  readonly profile: Profile
  readonly chance: Chance
  readonly agenda: Agenda
  readonly centre: Centre
  readonly bounds: LeaseBounds
  readonly log: Admission[] = []
  readonly faults: Fault[] = []
  readonly counts: Counts
  /** Losses of the centre's memory, true time. */
  readonly lostUs: number[] = []
  /** While it lasts no new callers come: somebody wants to see whether a promise is kept. */
  quietUntilUs = -Infinity
  /** What happened; undefined where nobody reads it. */
  readonly trace: Line[] | undefined

  constructor(trial: Trial, profile: Profile, chance: Chance, counts: Counts, traced: boolean) {
    this.trial = trial
    this.profile = profile
    this.chance = chance
    this.counts = counts
    this.agenda = new Agenda(profile.startUs, chance)
    this.centre = new Centre(trial.rule, trial.terms, trial.learns)
    this.bounds = leaseBounds(trial.rule, trial.terms, trial.instances)
    this.trace = traced ? [] : undefined
  }

  get nowUs(): number {
    return this.agenda.nowUs
  }

  /** Sends a message; `arrive` runs at the other end, unless it gets lost. */
  send(arrive: () => void): void {
    const { chance, profile } = this
    if (profile.loss > 0 && chance.passes(profile.loss)) {
      this.counts.lostMessages++
      return
    }
    this.agenda.at(this.nowUs + this.delayUs(), arrive)
  }

  /** The first fault of each kind is kept. */
  blame(kind: Fault['kind'], detail: string, span?: Fault['span']): void {
    this.note(() => `fault: ${kind}, ${detail}`)
    if (this.faults.some((fault) => fault.kind === kind)) return
    const { startUs } = this.profile
    const since = span && { ...span, fromUs: span.fromUs - startUs, toUs: span.toUs - startUs }
    this.faults.push({
      kind,
      detail,
      atUs: span === undefined ? this.nowUs - startUs : span.toUs - startUs,
      span: since,
    })
  }

  /** Writes a line where somebody reads it. */
  note(text: () => string): void {
    this.trace?.push({ us: this.nowUs - this.profile.startUs, text: text() })
  }

  private delayUs(): number {
    const { chance, profile } = this
    const { delayUs, gridUs } = profile
    if (delayUs === 0 || chance.passes(0.2)) return 0
    return Math.floor((delayUs * chance.share()) / gridUs) * gridUs
  }
}
