import { slidingCounter } from 'catraca'
import { describe, expect, test } from 'vitest'
import { type Counts, leaseCases, searchLeases } from '../../src/testing.ts'

/** Seeds per rule, in CI and in long searches. */
const seeds = Number(process.env['CATRACA_SEEDS'] ?? 4_800)

describe.each(Object.entries(leaseCases))('leases of a %s', (_, cases) => {
  const totals = new Map<string, number>()
  let excess = -Infinity

  test.each(cases.map((one, at) => [at, one] as const))(
    'keep their bounds and invariants, case %i',
    (_, one) => {
      const result = searchLeases({ ...one, seeds: Math.ceil(seeds / cases.length) })
      expect(result.violation).toBeUndefined()
      expect(result.over).toBe(one.rule.lease === 'window' ? 0 : one.instances * Math.ceil(1.3 * one.terms.block))
      excess = Math.max(excess, result.greatestExcess / Math.max(1, result.over))
      for (const [what, count] of Object.entries(result.counts)) totals.set(what, (totals.get(what) ?? 0) + count)
    },
    600_000,
  )

  test('were really attacked: everything that can happen did', () => {
    expect(totals.get('seeds')).toBeGreaterThanOrEqual(2_000)
    const rare = [...totals].filter(([, count]) => count < 20)
    expect(rare).toEqual([])
  })

  test('came close to their bound, or met the limit where the bound is the limit', () => {
    expect(excess).toBeGreaterThanOrEqual(cases.every(({ rule }) => rule.lease === 'kept') ? 0.6 : 0)
  })
})

describe('a search', () => {
  const [one] = leaseCases['token bucket'] ?? []
  const search = { ...(one as NonNullable<typeof one>), seeds: 50 }

  test('is the same again from the same seeds, and another from others', () => {
    const first = searchLeases(search)
    expect(searchLeases(search)).toEqual(first)
    expect(searchLeases({ ...search, firstSeed: 1_000 }).counts).not.toEqual(first.counts)
  })

  test('can go on where another ended', () => {
    const sum = (a: Readonly<Counts>, b: Readonly<Counts>): Record<string, number> =>
      Object.fromEntries(Object.entries(a).map(([what, count]) => [what, count + b[what as keyof Counts]]))
    const [first, second] = [
      searchLeases({ ...search, seeds: 20 }),
      searchLeases({ ...search, seeds: 30, firstSeed: 21 }),
    ]
    expect(sum(first.counts, second.counts)).toEqual({ ...searchLeases(search).counts })
  })

  test('of a rule with longer ticks is refused', () => {
    const rule = slidingCounter({ limit: 1e6, window: '1d' })
    expect(rule.tickUs).toBeGreaterThan(1)
    expect(() => searchLeases({ ...search, rule })).toThrow(RangeError)
  })
})
