import { slidingLog } from 'catraca'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { calendars, type NamedCalendar } from '../model/calendar.ts'
import { Engine, us } from './support/engine.ts'
import { everyRule } from './support/every-rule.ts'
import { histories, play } from './support/histories.ts'
import { mostStarting, mostWithin, type Passed, seenAt, spansOf } from './support/spans.ts'
import { type Subject, subjects } from './support/subjects.ts'

const shapes = ({ name }: Subject): boolean => name === 'leaky queue'

everyRule(
  'no half-open span admits more than the bound',
  (specimen, history) => {
    const engine = new Engine(specimen.rule)
    const passed: Passed[] = []
    play(specimen, history, (at, cost) => {
      const decision = engine.take(at, cost)
      if (decision.allowed) passed.push({ at: seenAt(specimen, at), units: cost })
      return decision
    })
    for (const span of spansOf(specimen)) expect(mostWithin(passed, span)).toBeLessThanOrEqual(specimen.bound(span))
  },
  { only: (subject) => !shapes(subject) },
)

everyRule(
  'what leaves never exceeds the rate in any half-open span',
  (specimen, history) => {
    const engine = new Engine(specimen.rule)
    const starts: Passed[] = []
    play(specimen, history, (at, cost) => {
      const decision = engine.take(at, cost)
      if (decision.allowed) starts.push({ at: at + us(decision.delayMs), units: cost })
      return decision
    })
    for (const span of spansOf(specimen)) {
      expect(mostStarting(starts, span)).toBeLessThanOrEqual(specimen.bound(span))
    }
  },
  { only: shapes },
)

test('a quota admits at most its limit in each period of its calendar', () => {
  const quota = subjects.find(({ name }) => name === 'quota') as Subject
  fc.assert(
    fc.property(quota.settings, histories(30), (setting, history) => {
      const specimen = quota.specimen(setting)
      const { calendar } = calendars[setting.calendar] as NamedCalendar
      const engine = new Engine(specimen.rule)
      const counts = new Map<bigint, number>()
      play(specimen, history, (at, cost) => {
        const decision = engine.take(at, cost)
        const { start } = calendar(BigInt(at))
        if (decision.allowed) counts.set(start, (counts.get(start) ?? 0) + cost)
        return decision
      })
      for (const count of counts.values()) expect(count).toBeLessThanOrEqual(setting.limit)
    }),
    { numRuns: 1_000 },
  )
})

test('acceptance 13: the log never admits more than 10 in any half-open second', () => {
  const gaps = fc.array(fc.oneof(fc.constant(0), fc.nat(40), fc.nat(400), fc.constantFrom(999, 1_000, 1_001)), {
    minLength: 100,
    maxLength: 200,
  })
  fc.assert(
    fc.property(gaps, (list) => {
      const engine = new Engine(slidingLog({ limit: 10, window: '1s' }))
      const passed: Passed[] = []
      let at = Date.UTC(2026, 5, 1) * 1_000
      for (const gap of list) {
        at += gap * 1_000
        if (engine.take(at, 1).allowed) passed.push({ at, units: 1 })
      }
      expect(mostWithin(passed, 1_000_000n)).toBeLessThanOrEqual(10n)
    }),
    { numRuns: 300, seed: 13 },
  )
})
