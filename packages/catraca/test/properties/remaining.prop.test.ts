import { expect } from 'vitest'
import { Engine } from './support/engine.ts'
import { everyRule } from './support/every-rule.ts'
import { play } from './support/histories.ts'

everyRule(
  'what remains is what passes now, and one more does not',
  (specimen, history) => {
    const engine = new Engine(specimen.rule)
    play(specimen, history, (at, cost) => {
      const decision = engine.take(at, cost)
      const { remaining } = decision
      expect(remaining).toBeGreaterThanOrEqual(0)
      expect(remaining).toBeLessThanOrEqual(decision.limit)
      if (remaining > 0) expect(engine.peek(at, remaining)).toMatchObject({ allowed: true, remaining })
      expect(engine.peek(at, remaining + 1)).toMatchObject({ allowed: false, remaining })
      return decision
    })
  },
  { clock: 'set' },
)
