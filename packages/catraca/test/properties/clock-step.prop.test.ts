import type { Decision } from 'catraca'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Engine, us } from './support/engine.ts'
import { numRuns } from './support/every-rule.ts'
import { costOf, histories, instantOf, type Step, startOf } from './support/histories.ts'
import { mostWithin, type Passed, seenAt, spansOf, unitsOf } from './support/spans.ts'
import { type Specimen, subjects } from './support/subjects.ts'

const second = 1_000_000
const graceUs = 60 * second
/** How far the clock is wrong while it is. */
const steps = fc.oneof(
  fc.constantFrom(1, second, 30 * second, graceUs - 1, graceUs, graceUs + 1, 61 * second, 3_600 * second),
  fc.integer({ min: 1, max: 180 * second }),
  fc.integer({ min: 1, max: 3 * 86_400 }).map((seconds) => seconds * second),
)
const cases = fc.record({
  history: histories(10),
  ahead: fc.array(histories(1), { minLength: 1, maxLength: 8 }),
  back: histories(20),
  stepUs: steps,
})

/** Ends of clock windows that a wrong clock went through. */
function endsBetween(specimen: Specimen, from: number, to: number): bigint {
  let ends = 0n
  if (specimen.aligned) for (let end = specimen.edgeAfter(from); end <= to; end = specimen.edgeAfter(end)) ends++
  return ends
}

for (const subject of subjects) {
  test(`a clock set ahead and back grants one capacity more, and 60 s more of waiting: ${subject.name}`, () => {
    fc.assert(
      fc.property(subject.settings, cases, (setting, { history, ahead, back, stepUs }) => {
        const specimen = subject.specimen(setting)
        const engine = new Engine(specimen.rule)
        const passed: Passed[] = []
        let now = startOf(specimen, history)
        let last: Decision | undefined

        /** Asks at true times, of a clock that is wrong by `offUs`. */
        const run = (some: readonly Step[], offUs: number, answered: (decision: Decision) => void): void => {
          for (const step of some) {
            now = instantOf(specimen, step, now + offUs, last) - offUs
            const cost = costOf(specimen, step, last)
            last = engine.take(now + offUs, cost)
            if (last.allowed) passed.push(...unitsOf(specimen, now, cost, us(last.delayMs)))
            answered(last)
          }
        }

        run(history.steps, 0, () => {})
        const setAhead = now + stepUs
        run(
          ahead.flatMap((one) => one.steps),
          stepUs,
          () => {},
        )
        const ends = endsBetween(specimen, setAhead, now + stepUs)
        run(back.steps, 0, (decision) => {
          if (decision.retryAfterMs === Number.POSITIVE_INFINITY) return
          const longest = specimen.longestWaitUs(decision.cost) + specimen.rule.tickUs + graceUs
          expect(us(decision.retryAfterMs)).toBeLessThanOrEqual(longest)
        })

        const seen = passed.map(({ at, units }) => ({ at: seenAt(specimen, at), units }))
        for (const span of spansOf(specimen)) {
          const extra = BigInt(specimen.capacity) * (1n + ends)
          // Departures are known to the µs.
          const slack = specimen.gapUs === undefined ? 0n : 2n
          expect(mostWithin(seen, span)).toBeLessThanOrEqual(specimen.bound(span + slack) + extra)
        }
      }),
      { numRuns },
    )
  })
}
