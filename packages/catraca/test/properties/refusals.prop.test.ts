import { expect } from 'vitest'
import { answerOf, Engine } from './support/engine.ts'
import { everyRule } from './support/every-rule.ts'
import { arrivalsOf } from './support/histories.ts'

everyRule('a refused request costs nothing: without it all others meet the same', (specimen, history) => {
  const all = new Engine(specimen.rule)
  const asked = arrivalsOf(specimen, history).map(({ at, cost }) => ({ at, cost, decision: all.take(at, cost) }))
  const admittedOnly = new Engine(specimen.rule)
  for (const { at, cost, decision } of asked) {
    if (decision.allowed) expect(answerOf(admittedOnly.take(at, cost))).toEqual(answerOf(decision))
  }
})

everyRule(
  'peeking counts nothing, ahead of and behind the clock too',
  (specimen, history) => {
    const quiet = new Engine(specimen.rule)
    const curious = new Engine(specimen.rule)
    for (const { at, cost } of arrivalsOf(specimen, history)) {
      curious.peek(at, cost)
      curious.peek(at + specimen.spanUs, specimen.capacity)
      curious.peek(at - 61_000_000, 1)
      expect(answerOf(curious.take(at, cost))).toEqual(answerOf(quiet.take(at, cost)))
    }
  },
  { clock: 'set' },
)
