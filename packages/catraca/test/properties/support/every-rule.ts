import * as fc from 'fast-check'
import { test } from 'vitest'
import { type History, histories } from './histories.ts'
import { type Setting, type Specimen, type Subject, subjects } from './subjects.ts'

export const numRuns = 1_000

export interface Options {
  /** Failing cases found earlier, by the name of their subject. */
  readonly examples?: Readonly<Record<string, [Setting, History][]>>
  readonly only?: (subject: Subject) => boolean
  readonly maxLength?: number
  readonly clock?: 'steady' | 'set'
}

/** One test per rule: `holds` is run on random settings and histories of it. */
export function everyRule(
  title: string,
  holds: (specimen: Specimen, history: History) => void,
  options: Options = {},
): void {
  const { examples = {}, only = () => true, maxLength = 30, clock = 'steady' } = options
  for (const subject of subjects.filter(only)) {
    test(`${title}: ${subject.name}`, () => {
      fc.assert(
        fc.property(subject.settings, histories(maxLength, clock), (setting, history) =>
          holds(subject.specimen(setting), history),
        ),
        { numRuns, examples: examples[subject.name] ?? [] },
      )
    })
  }
}
