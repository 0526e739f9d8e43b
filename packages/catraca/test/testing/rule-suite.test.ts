import {
  concurrency,
  fixedWindow,
  gcra,
  leakyMeter,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { type RulePromise, ruleSuite } from 'catraca/testing'
import { describe, expect, test } from 'vitest'

const window = '10s' as const
const rules: readonly [name: string, make: () => Rule, most: RulePromise | undefined][] = [
  ['fixed window', () => fixedWindow({ limit: 7, window }), { units: 14, window }],
  ['fixed window, from the first', () => fixedWindow({ limit: 7, window, anchor: 'first' }), { units: 14, window }],
  ['sliding log', () => slidingLog({ limit: 7, window }), { units: 7, window }],
  ['sliding counter', () => slidingCounter({ limit: 7, window }), { units: 14, window }],
  ['sliding counter in parts', () => slidingCounter({ limit: 7, window, subWindows: 5 }), { units: 14, window }],
  ['token bucket', () => tokenBucket({ limit: 7, window, burst: 3 }), { units: 10, window }],
  ['gcra', () => gcra({ limit: 7, window, burst: 5 }), { units: 12, window }],
  ['leaky meter', () => leakyMeter({ limit: 7, window }), { units: 14, window }],
  ['quota', () => quota({ limit: 7, period: 'day' }), { units: 14, window: '1d' }],
  ['concurrency', () => concurrency({ limit: 7, permitTtl: '30s' }), undefined],
]

describe.each(rules)('the contract of a rule: %s', (_, make, most) => ruleSuite(test, make, most))

describe('a rule that breaks it is found', () => {
  /** Which of the tests fail. */
  const failing = async (make: () => Rule, most?: RulePromise): Promise<string[]> => {
    const failed: string[] = []
    const tests: [string, () => Promise<void>][] = []
    ruleSuite((name, run) => tests.push([name, run]), make, most)
    for (const [name, run] of tests) await run().catch(() => failed.push(name.replace(/^[\w-]+: /, '')))
    return failed
  }
  /** A rule of which one function does something else. */
  const broken = (change: (rule: Rule) => Partial<Rule>) => (): Rule => {
    const rule = slidingLog({ limit: 7, window })
    const bound = Object.create(rule) as Rule
    return Object.defineProperties(bound, Object.getOwnPropertyDescriptors(change(rule)))
  }

  test('one that is not broken is not', async () => {
    expect(
      await failing(
        broken(() => ({})),
        { units: 7, window },
      ),
    ).toEqual([])
  })

  test('a wait that is too short, or too long', async () => {
    const wait = (by: number) =>
      broken((rule) => ({
        wait: (state, at, now, cost) => {
          const ticks = rule.wait(state, at, now, cost)
          return ticks > 0 && ticks < Infinity ? ticks + by : ticks
        },
      }))
    expect(await failing(wait(-2_000))).toContain('the wait of a refusal is exact: refused before it, admitted at it')
    expect(await failing(wait(2_000))).toContain('the wait of a refusal is exact: refused before it, admitted at it')
  })

  test('more than it says remains', async () => {
    const more = broken((rule) => ({ remaining: (state, at, now) => rule.remaining(state, at, now) + 1 }))
    expect(await failing(more)).toContain('what remains passes at once, and no unit more')
  })

  test('a promise that it does not keep', async () => {
    const window1 = { units: 6, window }
    expect(
      await failing(
        broken(() => ({})),
        window1,
      ),
    ).toEqual(['in no span of 10s more than 6 start'])
  })

  test('a refund of what was never charged', async () => {
    const generous = broken(() => ({ refund: (_state, _at, _now, _charge, units) => units }))
    expect(await failing(generous)).toContain('what is given back was charged, once and never more')
  })
})
