import type { Decision } from 'catraca'
import { expect } from 'vitest'
import { Engine, us } from './support/engine.ts'
import { everyRule } from './support/every-rule.ts'
import { costOf, instantOf, lastUs, startOf } from './support/histories.ts'

everyRule('a caller that waits as told passes, and not before', (specimen, history) => {
  const engine = new Engine(specimen.rule)
  let now = startOf(specimen, history)
  let last: Decision | undefined
  for (const step of history.steps) {
    now = instantOf(specimen, step, now, last)
    const cost = costOf(specimen, step, last)
    last = engine.take(now, cost)
    const told = now + us(last.retryAfterMs)
    if (last.allowed || told > lastUs) continue
    expect(told).toBeGreaterThan(now)
    expect(engine.take(told - 1, cost).allowed).toBe(false)
    last = engine.take(told, cost)
    expect(last.allowed).toBe(true)
    now = told
  }
})
