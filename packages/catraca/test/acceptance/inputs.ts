/**
 * Arrival lists of the acceptance table as plain data: instants in whole milliseconds of lab time, in order. Decisions,
 * media and simulators are judged on the same lists, so other suites import them from here.
 */

/** `count` requests at one instant. */
export function atOnce(count: number, atMs: number): number[] {
  return Array.from({ length: count }, () => atMs)
}

/** Requests `stepMs` apart in [fromMs, toMs). */
export function every(stepMs: number, fromMs: number, toMs: number): number[] {
  return Array.from({ length: Math.ceil((toMs - fromMs) / stepMs) }, (_, index) => fromMs + index * stepMs)
}

/** Section 1.7, main pattern: 8 requests every 100 ms, from 200 ms to 1100 ms. */
export const patternA: readonly number[] = every(100, 200, 1_200).flatMap((instant) => atOnce(8, instant))
/** Section 1.7, the pattern that pins the comparison of the counter: 40 requests at 100 ms and 40 at 1050 ms. */
export const patternB: readonly number[] = [...atOnce(40, 100), ...atOnce(40, 1_050)]
/** Check 37: 20 requests within 200 ms, one per 10 ms. */
export const twentyIn200ms: readonly number[] = every(10, 0, 200)
/** Check 41: 50 per second for 100 s. */
export const fiftyPerSecond: readonly number[] = every(20, 0, 100_000)

/** Seeds of the random lists: 1 to `count`. */
export function seeds(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1)
}

/** Repeatable chance in [0, 1), Mulberry32. */
export function chance(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * A list of 40 to 240 arrivals over some seconds: bursts, steady stretches, pauses, and gaps of 50, 100, 200, 500 and
 * 1000 ms, which meet the boundaries of windows and whole tokens exactly.
 */
export function randomArrivals(seed: number): number[] {
  const next = chance(seed)
  const gaps = [0, 0, 0, 1, 7, 33, 50, 100, 100, 200, 500, 1_000]
  const count = 40 + Math.floor(next() * 200)
  const times: number[] = []
  let now = Math.floor(next() * 20) * 50
  while (times.length < count) {
    const gap = gaps[Math.floor(next() * gaps.length)] ?? 0
    const run = 1 + Math.floor(next() * 12)
    for (let index = 0; index < run && times.length < count; index++) {
      times.push(now)
      now += gap
    }
    if (next() < 0.1) now += Math.floor(next() * 3_000)
  }
  return times
}
