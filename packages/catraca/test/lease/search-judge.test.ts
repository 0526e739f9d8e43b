import { fixedWindow, type Rule, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { expect, test } from 'vitest'
import { Chance } from '../../src/testing/lease-search/chance.ts'
import type { Admission } from '../../src/testing/lease-search/log.ts'
import { worstOf } from '../../src/testing/lease-search/worst.ts'
import { bucketLaw } from '../model/bucket.ts'
import { counterLaw } from '../model/counter.ts'
import { Judge, type Law } from '../model/judge.ts'
import { logLaw } from '../model/log.ts'
import { subCounterLaw } from '../model/sub-counter.ts'
import { clockWindows, firstWindowLaw, periodLaw } from '../model/window.ts'

const limit = 7
const windowUs = 1_000
const law = { limit: BigInt(limit), windowUs: BigInt(windowUs) }
const options = { limit, window: windowUs / 1_000 }

const rules: readonly (readonly [string, Rule, () => Law<never>])[] = [
  ['a fixed window', fixedWindow(options), () => periodLaw(law.limit, clockWindows(law.windowUs), 'limited') as never],
  [
    'a fixed window from the first',
    fixedWindow({ ...options, anchor: 'first' }),
    () => firstWindowLaw(law.limit, law.windowUs) as never,
  ],
  ['a sliding counter', slidingCounter(options), () => counterLaw(law.limit, law.windowUs) as never],
  [
    'a sliding counter in parts',
    slidingCounter({ ...options, subWindows: 4 }),
    () => subCounterLaw(law.limit, law.windowUs, 4n) as never,
  ],
  ['a sliding log', slidingLog(options), () => logLaw(law.limit, law.windowUs, 'limited') as never],
  ['a token bucket', tokenBucket({ ...options, burst: 4 }), () => bucketLaw({ ...law, burst: 4n }) as never],
]

/** A log of what the model admits, and how many units too many the first request is that it refuses. */
function play(rule: Rule, judge: Judge, seed: number): { admitted: Admission[]; refused: Admission | undefined } {
  const chance = new Chance(seed)
  const admitted: Admission[] = []
  let us = 1_000_000 * windowUs
  let originUs = -Infinity
  for (let left = chance.between(1, 60); left > 0; left--) {
    us += chance.pick([0, 1, 10, 100, 143, 500, 1_000]) * chance.between(0, 3)
    const cost = chance.between(1, Math.min(3, rule.limit))
    if (us >= originUs + windowUs) originUs = us
    const one = { us, cost, epoch: 0, origin: originUs, heldFromUs: undefined, instance: 0 }
    if (judge.take(us, cost).reason !== 'ok') return { admitted, refused: one }
    admitted.push(one)
  }
  return { admitted, refused: undefined }
}

test.each(rules)(
  'the judge of %s finds nothing in what the model admits, and each request that it refuses',
  (_, rule, lawOf) => {
    let refusals = 0
    for (let seed = 1; seed <= 500; seed++) {
      const { admitted, refused } = play(rule, new Judge(lawOf()), seed)
      if (admitted.length > 0) expect(worstOf(rule, admitted).over).toBeLessThanOrEqual(0)
      if (refused === undefined) continue
      refusals++
      expect(worstOf(rule, [...admitted, refused]).over).toBeGreaterThan(0)
    }
    expect(refusals).toBeGreaterThan(100)
  },
)
