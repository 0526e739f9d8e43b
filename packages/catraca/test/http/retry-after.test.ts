import { describe, expect, test } from 'vitest'
import type * as RandomModule from '../../src/core/random.ts'
import type * as RetryAfter from '../../src/http/retry-after.ts'

/** A literal path into another project is an error of the compiler. */
const [randomFile, retryFile] = ['core/random', 'http/retry-after'].map(
  (file) => new URL(`../../src/${file}.ts`, import.meta.url).href,
) as [string, string]
const { seededRandom } = (await import(randomFile)) as typeof RandomModule
const { retryAfterSeconds, spreadMs } = (await import(retryFile)) as typeof RetryAfter

describe('Retry-After', () => {
  test.each([
    [0, 1],
    [1, 1],
    [100, 1],
    [999, 1],
    [1_000, 1],
    [1_001, 2],
    [29_400, 30],
  ])('acceptance 124: %i ms are %i s', (ms, seconds) => {
    expect(retryAfterSeconds(ms)).toBe(seconds)
  })

  test.each([
    [1, 1, 90],
    [2, 1, 180],
    [5, 1, 350],
    [10, 1, 550],
    [30, 3, 800],
    [60, 6, 880],
    [3_600, 300, 990],
  ])(
    'acceptance 126: 1000 waits of %i s are spread over %i whole seconds or more, and %i milliseconds or more',
    (s, seconds, ms) => {
      const random = seededRandom(7)
      const told = Array.from({ length: 1_000 }, () => spreadMs(s * 1_000, random))
      expect(Math.min(...told)).toBeGreaterThanOrEqual(1_100 * s)
      expect(Math.max(...told)).toBeLessThanOrEqual(1_200 * s)
      const inSeconds = told.map(retryAfterSeconds)
      expect(Math.min(...inSeconds)).toBeGreaterThanOrEqual(s)
      expect(Math.max(...inSeconds)).toBeLessThanOrEqual(Math.ceil(1.2 * s))
      expect(new Set(inSeconds).size).toBeGreaterThanOrEqual(seconds)
      if (s < 30) expect(new Set(inSeconds).size).toBe(1)
      expect(new Set(told).size).toBeGreaterThanOrEqual(ms)
    },
  )

  test('the wait that is told is whole, never below the promise, and never past what numbers carry', () => {
    for (const waitMs of [0, 0.001, 0.5, 1, 999.999, 1e12, 2 ** 52, Number.MAX_SAFE_INTEGER, Infinity]) {
      for (const chance of [0, 0.5, 1 - 2 ** -32]) {
        const told = spreadMs(waitMs, () => chance)
        expect(Number.isSafeInteger(told)).toBe(true)
        expect(told).toBeGreaterThanOrEqual(Math.min(waitMs, Number.MAX_SAFE_INTEGER))
      }
    }
    expect(spreadMs(0, () => 0.9)).toBe(0)
  })
})
