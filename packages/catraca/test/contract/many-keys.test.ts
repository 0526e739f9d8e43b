import { createLimiter, fixedWindow, memoryStore, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { type Arbitrary, array, assert, constant, integer, nat, oneof, property, record } from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

const limit = 50
const hour = 3_600_000
/** State of two numbers, of three, and a list; nothing comes back within an hour of a whole window. */
const rules: Record<string, { rule: Rule; runs: number }> = {
  'two numbers': { rule: fixedWindow({ limit, window: '1h', anchor: 'first' }), runs: 400 },
  'three numbers': { rule: slidingCounter({ limit, window: '1h' }), runs: 300 },
  'a list': { rule: slidingLog({ limit, window: '1h' }), runs: 300 },
}

type Step = { kind: 'take' | 'reset' | 'refund' | 'sweep' | 'forget all'; key: number; cost: number }
const step: Arbitrary<Step> = record({
  kind: oneof(
    { weight: 60, arbitrary: constant('take' as const) },
    { weight: 30, arbitrary: constant('reset' as const) },
    { weight: 6, arbitrary: constant('refund' as const) },
    { weight: 3, arbitrary: constant('sweep' as const) },
    { weight: 1, arbitrary: constant('forget all' as const) },
  ),
  key: nat(1_400),
  cost: integer({ min: 1, max: 20 }),
})
const name = (key: number): string => (key % 3 === 0 ? `${key}` : `client:${key}:${'x'.repeat(key % 40)}`)

describe.each(Object.entries(rules))('a state of %s', (_, { rule, runs }) => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => vi.useRealTimers())

  test('every key keeps its state while thousands come, move and go, as a map would', () => {
    assert(
      property(integer({ min: 900, max: 1_300 }), array(step, { minLength: 50, maxLength: 300 }), (start, steps) => {
        const store = memoryStore()
        const limiter = createLimiter(rule, { store })
        const model = new Map<string, number>()
        let now = 10 * hour
        const take = (key: string, cost: number) => {
          const used = model.get(key) ?? 0
          const decision = limiter.take(key, { now, cost })
          if (decision.allowed !== used + cost <= limit)
            throw new Error(`${key}: ${decision.allowed} with ${used} used`)
          if (decision.allowed) model.set(key, used + cost)
          return decision
        }
        for (let key = 0; key < start; key++) take(name(key), 1 + (key % 9))
        for (const { kind, key, cost } of steps) {
          if (kind === 'sweep') vi.advanceTimersByTime(1_000)
          else if (kind === 'forget all') {
            now += 3 * hour
            limiter.peek('nobody', { now })
            model.clear()
            vi.advanceTimersByTime(70_000)
            expect(store.stats().keys).toBe(0)
          } else if (kind === 'reset') {
            limiter.reset(name(key))
            model.delete(name(key))
          } else {
            const decision = take(name(key), cost)
            if (kind === 'take' || !decision.allowed) continue
            expect(limiter.refund(decision)).toBe(cost)
            model.set(name(key), (model.get(name(key)) ?? 0) - cost)
          }
        }
        const wrong = Array.from({ length: 1_401 }, (_, key) => name(key)).filter(
          (key) => limiter.peek(key, { now }).remaining !== limit - (model.get(key) ?? 0),
        )
        expect(wrong).toEqual([])
        limiter.close()
        store.close()
      }),
      { numRuns: runs, seed: 20_270_101 },
    )
  })
})

test('200 000 keys keep their state', () => {
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1h' }))
  for (let key = 0; key < 200_000; key++) limiter.take(`user:${key}`, { now: 0, cost: 1 + (key % 10) })
  let wrong = 0
  for (let key = 0; key < 200_000; key++) {
    if (limiter.peek(`user:${key}`, { now: 0 }).remaining !== 9 - (key % 10)) wrong++
  }
  expect(wrong).toBe(0)
})
