import { createLimiter, fixedWindow, slidingLog } from 'catraca'
import { describe, expect, test } from 'vitest'
import { atOnce, randomArrivals, seeds } from './inputs.ts'
import { admitted, mostWithin, mostWithinClosed, run } from './run.ts'

const microsecond = 0.001

describe('windows aligned to the clock', () => {
  test('acceptance 1: instant 10 s belongs to the window that starts there', () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '10s' }))
    expect(limiter.take('key', { now: 0 }).allowed).toBe(true)
    const before = limiter.take('key', { now: 10_000 - microsecond })
    expect(before.allowed).toBe(false)
    expect(before.retryAfterMs).toBe(microsecond)
    const at = limiter.take('key', { now: 10_000 })
    expect(at.allowed).toBe(true)
    expect(at.resetAfterMs).toBe(10_000)
  })

  test('acceptance 2: limit 3 with arrivals at 8, 9, 9, 10, 11, 12 s admits all 6 within 4 s', () => {
    const times = [8_000, 9_000, 9_000, 10_000, 11_000, 12_000]
    const decisions = run(fixedWindow({ limit: 3, window: '10s' }), times)
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true, true, true])
    expect(decisions.map(({ limit, remaining }) => limit - remaining)).toEqual([1, 2, 3, 1, 2, 3])
    expect(mostWithinClosed(times, 4_000)).toBe(6)
  })

  test.each([
    { at: [59_600, 60_200], span: 600 },
    { at: [59_000, 60_000], span: 1_000 },
    { at: [59_000, 61_000], span: 2_000 },
  ])('acceptance 3: 100 + 100 at $at ms admits twice the limit within $span ms', ({ at, span }) => {
    const [first = 0, second = 0] = at
    const times = [...atOnce(100, first), ...atOnce(100, second)]
    const decisions = run(fixedWindow({ limit: 100, window: '1m' }), times)
    expect(decisions.filter(({ allowed }) => allowed).length).toBe(200)
    expect([decisions[99]?.remaining, decisions[199]?.remaining]).toEqual([0, 0])
    expect(second - first).toBe(span)
    const more = [...times.slice(0, 100), first, ...times.slice(100), second]
    expect(admitted(fixedWindow({ limit: 100, window: '1m' }), more).length).toBe(200)
  })

  test('acceptance 4: 600 per 60 s allows 1200 near a boundary, the log 600', () => {
    const times = [...atOnce(600, 59_900), ...atOnce(600, 60_000)]
    expect(admitted(fixedWindow({ limit: 600, window: '60s' }), times).length).toBe(1_200)
    expect(admitted(slidingLog({ limit: 600, window: '60s' }), times).length).toBe(600)
  })

  test('acceptance 5: 10 per 1 s keeps the burst at 20 and refuses half of a batch of 20', () => {
    const rule = fixedWindow({ limit: 10, window: '1s' })
    expect(admitted(rule, [...atOnce(10, 990), ...atOnce(10, 1_000)]).length).toBe(20)
    expect(admitted(rule, atOnce(20, 300)).length).toBe(10)
  })

  test('acceptance 7: counting refused requests changes the stored number, never who is admitted', () => {
    for (const seed of seeds(300)) {
      const times = randomArrivals(seed)
      const decisions = run(fixedWindow({ limit: 10, window: '1s' }), times)
      const everything = new Map<number, number>()
      const refusals = new Map<number, number>()
      const add = (counter: Map<number, number>, now: number): number => {
        const window = Math.floor(now / 1_000)
        counter.set(window, (counter.get(window) ?? 0) + 1)
        return counter.get(window) ?? 0
      }
      const rows = times.map((now, index) => {
        const { allowed = false, remaining = 0 } = decisions[index] ?? {}
        const withRefused = add(everything, now)
        const refused = allowed ? (refusals.get(Math.floor(now / 1_000)) ?? 0) : add(refusals, now)
        return { allowed, withRefused, stored: 10 - remaining, refused }
      })
      expect(rows.map(({ allowed }) => allowed)).toEqual(rows.map(({ withRefused }) => withRefused <= 10))
      expect(rows.map(({ withRefused }) => withRefused)).toEqual(rows.map(({ stored, refused }) => stored + refused))
      expect(rows.every(({ withRefused, stored }) => withRefused >= stored)).toBe(true)
    }
  })

  test('acceptance 9: aligned windows give 200 refused clients their limit back at one instant', () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1m' }))
    const clients = Array.from({ length: 200 }, (_, index) => ({ key: `client:${index}`, now: index * 250 }))
    for (const { key, now } of clients) limiter.take(key, { now })
    const renewals = clients.map(({ key, now }) => {
      const refusal = limiter.take(key, { now })
      expect(refusal.allowed).toBe(false)
      return now + refusal.retryAfterMs
    })
    expect(renewals).toEqual(atOnce(200, 60_000))
    for (const { key } of clients) expect(limiter.take(key, { now: 60_000 - microsecond }).allowed).toBe(false)
    for (const { key } of clients) expect(limiter.take(key, { now: 60_000 }).allowed).toBe(true)
  })

  test('acceptance 9: with an offset per key no 100 ms hold more than 60 of the 200', () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1m', offset: 'key' }))
    const now = 7_000
    const keys = Array.from({ length: 200 }, (_, index) => `client:${index}`)
    for (const key of keys) expect(limiter.take(key, { now }).allowed).toBe(true)
    const renewals = keys.map((key) => {
      const refusal = limiter.take(key, { now })
      expect(refusal.allowed).toBe(false)
      return now + refusal.retryAfterMs
    })
    const inBucket = new Map<number, number>()
    for (const at of renewals) {
      const bucket = Math.floor(at / 100)
      inBucket.set(bucket, (inBucket.get(bucket) ?? 0) + 1)
    }
    expect(Math.max(...inBucket.values())).toBeLessThanOrEqual(60)
    // Sixteen instants, a sixteenth of the window apart, all of them within one window.
    expect([...new Set(renewals)].toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 16 }, (_, index) => 7_500 + index * 3_750),
    )
    for (const [index, key] of keys.entries()) {
      const at = renewals[index] as number
      expect(limiter.peek(key, { now: at - microsecond }).allowed).toBe(false)
      expect(limiter.peek(key, { now: at }).allowed).toBe(true)
    }
  })
})

describe('windows from the first request', () => {
  const rule = fixedWindow({ limit: 100, window: '60s', anchor: 'first' })

  test('acceptance 8: the double burst moves to the end of the own window: 199 within 0.1 s', () => {
    const times = [10_000, ...atOnce(99, 69_900), ...atOnce(100, 70_000)]
    expect(admitted(rule, times)).toEqual(times)
    expect(mostWithinClosed(times, 100)).toBe(199)
    expect(mostWithin(times, 60_000)).toBe(199)
  })

  test('acceptance 8: 200 at the same first instant are 100', () => {
    expect(admitted(rule, atOnce(200, 10_000)).length).toBe(100)
  })
})
