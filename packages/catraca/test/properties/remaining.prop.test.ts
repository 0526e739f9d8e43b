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
      const { remaining, limit } = decision
      const rest = remaining === 0 || engine.peek(at, remaining).allowed
      const more = engine.peek(at, remaining + 1)
      expect([rest, more.allowed, more.remaining]).toEqual([true, false, remaining])
      expect(remaining >= 0 && remaining <= limit).toBe(true)
      return decision
    })
  },
  { clock: 'set' },
)
