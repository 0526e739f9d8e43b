import { createLimiter, fixedWindow, memoryStore, slidingCounter, slidingLog } from 'catraca'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

/** A multiple of every window here. */
const t0 = Date.UTC(2027, 0, 1)
const inTen = slidingCounter({ limit: 100, window: '10s', subWindows: 10 })

describe('a sliding counter in parts', () => {
  test('counts whole parts in full and the one that leaves by its share', () => {
    const limiter = createLimiter(inTen)
    limiter.take('a', { cost: 40, now: t0 + 500 })
    limiter.take('a', { cost: 20, now: t0 + 5_500 })
    const leftAt = (ms: number): number => limiter.peek('a', { now: t0 + ms }).remaining
    expect(leftAt(5_500)).toBe(40)
    expect(leftAt(9_999)).toBe(40)
    // The first part leaves in the eleventh second: 40 × 0.75 and 20.
    expect(leftAt(10_250)).toBe(50)
    expect(leftAt(11_000)).toBe(80)
    expect(leftAt(15_500)).toBe(90)
    expect(leftAt(16_000)).toBe(100)
  })

  test('is nearer to the log than one part: what was used ten seconds ago counts for a second more, not for ten', () => {
    const leftAfter = (rule: Parameters<typeof createLimiter>[0]): number => {
      const limiter = createLimiter(rule as typeof inTen)
      limiter.take('a', { cost: 100, now: t0 + 100 })
      return limiter.peek('a', { now: t0 + 11_000 }).remaining
    }
    expect(leftAfter(slidingLog({ limit: 100, window: '10s' }))).toBe(100)
    expect(leftAfter(inTen)).toBe(100)
    expect(leftAfter(slidingCounter({ limit: 100, window: '10s' }))).toBe(10)
  })

  test('tells a wait that is exact over several parts', () => {
    const limiter = createLimiter(inTen)
    for (let second = 0; second < 10; second++) limiter.take('a', { cost: 10, now: t0 + second * 1_000 })
    for (const cost of [1, 10, 11, 35, 100]) {
      const { retryAfterMs } = limiter.peek('a', { cost, now: t0 + 9_500 })
      const at = t0 + 9_500 + retryAfterMs
      expect(limiter.peek('a', { cost, now: at }).allowed).toBe(true)
      expect(limiter.peek('a', { cost, now: at - 0.001 }).allowed).toBe(false)
    }
  })

  test('gives back to the part that was charged, while it is whole', () => {
    const limiter = createLimiter(inTen)
    const early = limiter.take('a', { cost: 30, now: t0 })
    const late = limiter.take('a', { cost: 30, now: t0 + 4_000 })
    limiter.peek('a', { now: t0 + 5_000 })
    expect(limiter.refund(early, 10)).toBe(10)
    expect(limiter.peek('a', { now: t0 + 5_000 }).remaining).toBe(50)
    expect(limiter.refund(late)).toBe(30)
    // The newest part is the first one now: all is over eleven seconds after its start.
    expect(limiter.peek('a', { now: t0 + 5_000 }).resetAfterMs).toBe(6_000)
    const other = createLimiter(inTen)
    const charge = other.take('a', { cost: 30, now: t0 })
    other.take('a', { now: t0 + 10_000 })
    expect(other.refund(charge)).toBe(0)
  })

  test('keeps one array of parts + 2 numbers per key, however much is used', () => {
    const list = new Float64Array(0)
    const once = inTen.charge(list, 0, t0 * 1_000, 1, 0)
    expect(once.length).toBe(12)
    expect(inTen.charge(once, 0, (t0 + 60_000) * 1_000, 99, 0)).toBe(once)
    expect([...once.subarray(1)]).toEqual([99, ...Array(10).fill(0)])
  })

  test('of other numbers of parts are not kin: what is used there is used here, from now on', () => {
    expect(inTen.kinship(slidingCounter({ limit: 7, window: '10s', subWindows: 10 }))).toBe('same')
    for (const other of [
      slidingCounter({ limit: 100, window: '10s', subWindows: 5 }),
      slidingCounter({ limit: 100, window: '20s', subWindows: 10 }),
      slidingCounter({ limit: 100, window: '20s', subWindows: 20 }),
      slidingCounter({ limit: 100, window: '10s' }),
      fixedWindow({ limit: 100, window: '10s' }),
    ]) {
      expect([inTen.kinship(other), other.kinship(inTen)]).toEqual(['none', 'none'])
    }
  })

  test('takes over the counts of kin that count in longer ticks', () => {
    const coarse = slidingCounter({ limit: 1e9, window: '1d', subWindows: 6 })
    const fine = slidingCounter({ limit: 100, window: '1d', subWindows: 6 })
    expect([coarse.tickUs, fine.tickUs, fine.kinship(coarse)]).toEqual([1_000_000, 1, 'converts'])
    const from = coarse.charge(new Float64Array(0), 0, t0 / 1_000 + 7, 60, 0)
    const taken = fine.adopt(new Float64Array(0), 0, (t0 + 8_000) * 1_000, coarse, from, 0)
    expect([fine.originAt(taken, 0), fine.remaining(taken, 0, (t0 + 8_000) * 1_000)]).toEqual([t0 * 1_000, 40])
    expect(coarse.originAt(from, 0)).toBe(t0 / 1_000)
  })

  test('one part is the counter of two windows, with its state', () => {
    const one = slidingCounter({ limit: 100, window: '10s', subWindows: 1 })
    expect(one).toEqual(slidingCounter({ limit: 100, window: '10s' }))
    expect(one.width).toBe(3)
  })
})

describe('bounds', () => {
  const setting = fc
    .record({
      limit: fc.integer({ min: 1, max: 40 }),
      parts: fc.constantFrom(2, 3, 5, 12),
      partUs: fc.constantFrom(7, 10, 1_000, 999_983),
    })
    .map(({ limit, parts, partUs }) => ({ limit, parts, partUs, windowUs: parts * partUs }))
  /** Gaps: none, a tick, to the last tick of a part, to the next part, any. */
  const gap = fc.oneof(fc.constantFrom('none', 'tick', 'last', 'edge', 'drip'), fc.integer({ min: 1, max: 3_000 }))

  test('limit in a window less a part, limit × (1 + e) + 1 in one that ends at the share e of a part', () => {
    fc.assert(
      fc.property(
        setting,
        fc.array(fc.record({ gap, greedy: fc.boolean() }), { minLength: 1, maxLength: 80 }),
        ({ limit, parts, partUs, windowUs }, steps) => {
          const rule = slidingCounter({ limit, window: windowUs / 1_000, subWindows: parts })
          const list: { at: number; units: number }[] = []
          let state: Float64Array = new Float64Array(0)
          let now = t0 * 1_000
          for (const { gap, greedy } of steps) {
            const into = now % partUs
            if (gap === 'tick') now++
            else if (gap === 'last') now += partUs - 1 - into
            else if (gap === 'edge') now += partUs - into
            else if (gap === 'drip') now += Math.ceil(partUs / (limit + 1))
            else if (gap !== 'none') now += Math.ceil((gap * partUs) / 1_000)
            const units = greedy ? rule.remaining(state, 0, now) : 1
            if (units === 0 || rule.wait(state, 0, now, units) > 0) continue
            state = rule.charge(state, 0, now, units, 0)
            list.push({ at: now, units })
          }
          const within = (start: number, end: number): number =>
            list.reduce((sum, { at, units }) => (at >= start && at < end ? sum + units : sum), 0)
          // A span that admits the most begins with an admission, or ends right after one.
          for (const { at } of list) {
            for (const start of [at, at + 1 - windowUs]) {
              const end = start + windowUs
              expect(within(start, start + windowUs - partUs)).toBeLessThanOrEqual(limit)
              expect(within(end - (windowUs - partUs), end)).toBeLessThanOrEqual(limit)
              expect(within(start, end)).toBeLessThanOrEqual(limit + (limit * (end % partUs || partUs)) / partUs + 1)
            }
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test('are reached: twice the limit in a window, the second half over its last part', () => {
    const limiter = createLimiter(inTen)
    limiter.take('a', { cost: 100, now: t0 + 999 })
    let passed = 0
    for (let ms = 1_000; ms < 10_999; ms++) {
      if (limiter.take('a', { now: t0 + ms }).allowed) passed++
      if (ms === 9_999) expect(passed).toBe(0)
    }
    expect(passed).toBe(100)
  })
})

describe('where it cannot be', () => {
  const thrown = (run: () => unknown): unknown => {
    try {
      run()
    } catch (error) {
      return error
    }
    return undefined
  }

  test.each([0, -1, 1.5, 61, '6', Number.NaN])('subWindows: %s is not allowed', (subWindows) => {
    expect(thrown(() => slidingCounter({ limit: 1, window: '1m', subWindows: subWindows as number }))).toMatchObject({
      code: 'CATRACA_OPTION_INVALID',
      path: 'slidingCounter.subWindows',
      value: subWindows,
    })
  })

  test('parts are whole µs', () => {
    const error = thrown(() => slidingCounter({ limit: 1, window: '1s', subWindows: 7 }))
    expect(error).toMatchObject({ code: 'CATRACA_OPTION_INVALID', path: 'slidingCounter.subWindows', value: 7 })
  })

  test('a memory store has it, beside rules of another kind', () => {
    const store = memoryStore()
    const limiter = createLimiter({ a: inTen, b: slidingLog({ limit: 1, window: '1s' }) }, { name: 'a', store })
    expect(limiter.take({ a: 'x', b: 'y' }, { now: t0 }).allowed).toBe(true)
    expect(limiter.take({ a: 'x', b: 'y' }, { now: t0 }).policy).toBe('b')
    expect(limiter.peek({ a: 'x', b: 'z' }, { now: t0 }).policies[0]?.remaining).toBe(99)
    store.close()
  })
})
