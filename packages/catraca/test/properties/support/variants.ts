import type { Decision } from 'catraca'
import * as fc from 'fast-check'
import { Book } from '../../contract/ledger.ts'
import { costOf, type History, histories, instantOf, startOf } from './histories.ts'
import { type Setting, type Specimen, type Subject, subjects } from './subjects.ts'

/** Variants of one policy, and one caller who is asked under any of them. */
export class Caller {
  readonly specimens: readonly Specimen[]
  private readonly ledger: Book['ledger']

  constructor(specimens: readonly Specimen[]) {
    this.specimens = specimens
    this.ledger = new Book(specimens.map(({ rule }) => ['policy', rule])).ledger
  }

  take(variant: number, at: number, cost: number): Decision {
    return this.ledger.applySome([variant], ['a'], [cost], at, true)
  }

  peek(variant: number, at: number, cost: number): Decision {
    return this.ledger.applySome([variant], ['a'], [cost], at, false)
  }

  /** Plays a history, each request under the variant that its step chooses. */
  play(history: History, ask: (variant: number, at: number, cost: number) => Decision): void {
    let now = startOf(this.specimens[0] as Specimen, history)
    let last: Decision | undefined
    for (const step of history.steps) {
      const variant = (step.share + step.pause) % this.specimens.length
      const specimen = this.specimens[variant] as Specimen
      now = instantOf(specimen, step, now, last)
      last = ask(variant, now, costOf(specimen, step, last))
    }
  }
}

/** Settings of one rule whose states are kin: other limits, and of buckets other rates and bursts. */
export function kinOf(subject: Subject): fc.Arbitrary<Setting[]> {
  return fc.array(subject.settings, { minLength: 2, maxLength: 3 }).map((settings) => {
    const [{ windowUs, calendar }] = settings as [Setting]
    return isBucket(subject) ? settings : settings.map((setting) => ({ ...setting, windowUs, calendar }))
  })
}

export const isBucket = ({ name }: Subject): boolean => /bucket|gcra|leaky/.test(name)

export function callerOf(subject: Subject, settings: readonly Setting[]): Caller {
  return new Caller(settings.map((setting) => subject.specimen(setting)))
}

/** Rules of one stack or one caller share a start, so calendars that are known for some weeks only stay out. */
const anywhere = ({ from, to }: Specimen): boolean => to - from > 5 * 365 * 86_400_000_000

interface AnyRule {
  subject: string
  setting: Setting
}

/** Any rule of any kind. */
export const anyRule: fc.Arbitrary<AnyRule> = fc.oneof(
  ...subjects.map((subject) =>
    subject.settings
      .filter((setting) => anywhere(subject.specimen(setting)))
      .map((setting) => ({ subject: subject.name, setting })),
  ),
)

export function specimenOf({ subject, setting }: AnyRule): Specimen {
  return (subjects.find(({ name }) => name === subject) as Subject).specimen(setting)
}

export const shortHistories: fc.Arbitrary<History> = histories(30)
