import { tokenBucket } from 'catraca'
import { expect, test } from 'vitest'
import { answerOf, Engine, us } from './support/engine.ts'
import { everyRule } from './support/every-rule.ts'
import { arrivalsOf } from './support/histories.ts'

everyRule('acceptance 81: a state dropped at the end of its life changes no decision', (specimen, history) => {
  const keeping = new Engine(specimen.rule)
  const dropping = new Engine(specimen.rule)
  let end = Number.POSITIVE_INFINITY
  for (const { at, cost } of arrivalsOf(specimen, history)) {
    if (at >= end) dropping.limiter.reset('a')
    const decision = dropping.take(at, cost)
    expect(answerOf(decision)).toEqual(answerOf(keeping.take(at, cost)))
    end = at + us(decision.resetAfterMs)
  }
})

everyRule('when nothing is used any more the whole limit passes', (specimen, history) => {
  const engine = new Engine(specimen.rule)
  for (const { at, cost } of arrivalsOf(specimen, history)) {
    const end = at + us(engine.take(at, cost).resetAfterMs)
    expect(engine.peek(end, specimen.capacity)).toMatchObject({ allowed: true, resetAfterMs: 0 })
  }
})

test('a state dropped before the end of its life would be a fault: 20 pass in place of 6', () => {
  const passing = (drop: boolean): number => {
    const engine = new Engine(tokenBucket({ limit: 1, window: '1s', burst: 20 }))
    const start = Date.UTC(2026, 5, 1) * 1_000
    engine.take(start, 20)
    if (drop) engine.limiter.reset('a')
    return Array.from({ length: 20 }, () => engine.take(start + 6_000_000, 1)).filter(({ allowed }) => allowed).length
  }
  expect(passing(false)).toBe(6)
  expect(passing(true)).toBe(20)
})
