import { expect, test } from 'vitest'
import { type Fault, type LeaseViolation, leaseCases, searchLeases } from '../../src/testing.ts'
import { type Planted, planted } from './planted.ts'

/** Seeds that the search in CI spends on a rule. */
const most = 2_400
/** Seeds of one case before the next has its turn. */
const turn = 5

/** Searches all cases of a rule in turn; the seeds it took, and what was found. */
function find(
  { search, rule }: Planted,
  kinds: readonly Fault['kind'][],
): { seeds: number; violation?: LeaseViolation } {
  const cases = leaseCases[rule] ?? []
  let seeds = 0
  for (let firstSeed = 1; seeds < most; firstSeed += turn) {
    for (const one of cases) {
      const { counts, violation } = searchLeases({ ...one, ...search, seeds: turn, firstSeed, kinds })
      seeds += counts.seeds
      if (violation !== undefined) return { seeds, violation }
    }
  }
  return { seeds }
}

const sights = planted.flatMap((one) => one.seen.map((kind) => [one.name, kind, one] as const))

test.each(sights)('%s is found as %s', (_, kind, one) => {
  const { seeds, violation } = find(one, [kind])
  expect(violation?.faults.map((fault) => fault.kind)).toEqual([kind])
  expect(seeds).toBeLessThanOrEqual(1_000)
})

test.each(planted.map((one) => [one.name, one] as const))('%s is told so that it can be played again', (_, one) => {
  const { violation } = find(one, one.seen)
  const { rule, terms, instances, seed, faults, trace } = violation as LeaseViolation
  expect(trace.length).toBeGreaterThan(5)
  const same = leaseCases[one.rule]?.find((other) => {
    return rule.includes(JSON.stringify(other.rule.options)) && other.terms === terms && other.instances === instances
  })
  const again = searchLeases({ ...(same as NonNullable<typeof same>), ...one.search, seeds: 1, firstSeed: seed })
  expect(again.violation?.faults).toEqual(expect.arrayContaining([...faults]))
})

test('what is too much is told with its span', () => {
  const loss = planted.find(({ seen }) => seen[0] === 'over') as Planted
  const [fault] = find(loss, ['over']).violation?.faults ?? []
  const { fromUs, toUs, over, allowed } = fault?.span ?? { fromUs: 0, toUs: 0, over: 0, allowed: 0 }
  expect(over).toBeGreaterThan(allowed)
  expect(toUs).toBeGreaterThan(fromUs)
  expect(fault?.atUs).toBe(toUs)
})
