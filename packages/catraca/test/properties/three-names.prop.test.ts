import { gcra, leakyMeter, tokenBucket } from 'catraca'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { bucketLaw, cellRateLaw, levelAt, meterLaw, type Rate, tokensAt } from '../model/bucket.ts'
import { whole } from '../model/fraction.ts'
import { Judge } from '../model/judge.ts'
import { answerOf, Engine } from './support/engine.ts'

interface Settings {
  readonly limit: number
  readonly window: number
  readonly burst: number
}

interface Arrival {
  readonly gapUs: number
  readonly cost: number
}

const start = Date.UTC(2026, 0, 31) * 1_000
const arrivals = (gapUs: fc.Arbitrary<number>, cost: fc.Arbitrary<number>): fc.Arbitrary<Arrival[]> =>
  fc.array(fc.record({ gapUs, cost }), { minLength: 20, maxLength: 60 })

const judges = ({ limit, window, burst }: Settings) => {
  const rate: Rate = { limit: BigInt(limit), windowUs: BigInt(window) * 1_000n, burst: BigInt(burst) }
  return {
    rate,
    bucket: new Judge(bucketLaw(rate)),
    meter: new Judge(meterLaw(rate)),
    cell: new Judge(cellRateLaw(rate)),
  }
}

/** Bursts of 1 to 15, 1 to 20 per second, whole milliseconds. */
const small = fc.record({
  limit: fc.integer({ min: 1, max: 20 }),
  window: fc.constant(1_000),
  burst: fc.integer({ min: 1, max: 15 }),
})
const msGaps = fc.oneof(fc.constant(0), fc.nat(60), fc.nat(600), fc.nat(6_000)).map((ms) => ms * 1_000)

test('acceptance 42: gcra admits what the bucket and the meter admit', () => {
  fc.assert(
    fc.property(small, arrivals(msGaps, fc.constantFrom(1, 1, 1, 2, 3)), (settings, list) => {
      const engines = [tokenBucket, gcra, leakyMeter].map((rule) => new Engine(rule(settings)))
      const { bucket, meter, cell } = judges(settings)
      let at = start
      for (const { gapUs, cost } of list) {
        at += gapUs
        const [first, ...others] = [
          ...engines.map((engine) => answerOf(engine.take(at, cost))),
          ...[bucket, meter, cell].map((judge) => {
            const { steppedUs: _, ...answer } = judge.take(at, cost)
            return answer
          }),
        ]
        for (const other of others) expect(other).toEqual(first)
      }
    }),
    { numRuns: 500, seed: 42 },
  )
})

test('acceptance 54: level and tokens are the capacity at all times', () => {
  fc.assert(
    fc.property(small, arrivals(msGaps, fc.constantFrom(1, 1, 2)), (settings, list) => {
      const bucketEngine = new Engine(tokenBucket(settings))
      const meterEngine = new Engine(leakyMeter(settings))
      const { rate, bucket, meter } = judges(settings)
      let at = start
      for (const { gapUs, cost } of list) {
        for (const share of [3, 1]) {
          const then = BigInt(at + Math.floor(gapUs / share))
          const sum = tokensAt(rate, bucket.state, then).plus(levelAt(rate, meter.state, then))
          expect(sum.compare(whole(rate.burst))).toBe(0n)
        }
        at += gapUs
        const tokens = bucketEngine.take(at, cost)
        const level = meterEngine.take(at, cost)
        expect(bucket.take(at, cost).reason).toBe(tokens.reason)
        expect(meter.take(at, cost).reason).toBe(level.reason)
        const used = levelAt(rate, meter.state, BigInt(at))
        expect(BigInt(tokens.remaining) + used.ceil()).toBe(rate.burst)
        expect(BigInt(level.remaining) + used.ceil()).toBe(rate.burst)
      }
    }),
    { numRuns: 500, seed: 54 },
  )
})

test('the three names decide alike for any rate, cost and microsecond', () => {
  const any = fc.record({
    limit: fc.integer({ min: 1, max: 1_000 }),
    window: fc.constantFrom(1_000, 60_000, 3_600_000, 86_400_000, 2_592_000_000),
    burst: fc.integer({ min: 1, max: 1_000 }),
  })
  const gaps = fc.oneof(fc.constant(0), fc.nat(1_000_000), fc.nat(60_000_000), fc.nat(86_400_000_000))
  fc.assert(
    fc.property(
      any,
      arrivals(
        gaps,
        fc.oneof(
          fc.integer({ min: 1, max: 5 }),
          fc.nat(1_000).map((c) => c + 1),
        ),
      ),
      (settings, list) => {
        const [bucket, ...others] = [tokenBucket, gcra, leakyMeter].map((rule) => new Engine(rule(settings))) as [
          Engine,
          Engine,
          Engine,
        ]
        let at = start
        for (const { gapUs, cost } of list) {
          at += gapUs
          const said = answerOf(bucket.take(at, cost))
          for (const other of others) expect(answerOf(other.take(at, cost))).toEqual(said)
        }
      },
    ),
    { numRuns: 1_000 },
  )
})
