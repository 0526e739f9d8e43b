import { expect } from 'vitest'
import { answerOf, Engine } from './support/engine.ts'
import { everyRule } from './support/every-rule.ts'
import { type History, play } from './support/histories.ts'
import type { Setting, Specimen } from './support/subjects.ts'

function agrees(specimen: Specimen, history: History): void {
  const engine = new Engine(specimen.rule)
  const judge = specimen.judge()
  play(specimen, history, (at, cost) => {
    const { steppedUs: _, ...shown } = judge.peek(at, cost)
    expect({ at, cost, ...answerOf(engine.peek(at, cost)) }).toEqual({
      at,
      cost,
      ...shown,
    })
    const answer = judge.take(at, cost)
    const decision = engine.take(at, cost)
    expect({ at, cost, ...answerOf(decision), steppedUs: engine.takeStep() }).toEqual({
      at,
      cost,
      ...answer,
    })
    return decision
  })
}

const single: Setting = { limit: 1, windowUs: 1_000_000, capacity: 1, calendar: 0 }
const once: History = {
  start: 0,
  steps: [{ move: 'same', off: 0, pause: 0, cost: 'one', share: 1, jumpUs: 0 }],
}

everyRule('every figure of every decision is the judge’s', agrees, { examples: { 'leaky queue': [[single, once]] } })

everyRule('every figure is the judge’s while the clock is set ahead and back', agrees, { clock: 'set' })
