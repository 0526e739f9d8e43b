import {
  concurrency,
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  type Limiter,
  type Rule,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2027, 0, 1) })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Decisions as they come, each with the millisecond after the start at which it came. */
function watch(): { log: { name: string; ms: number; decision: Decision }[]; on: (name: string, p: Promise<Decision>) => void } {
  const start = Date.now()
  const log: { name: string; ms: number; decision: Decision }[] = []
  return {
    log,
    on: (name, promise) => void promise.then((decision) => log.push({ name, ms: Date.now() - start, decision })),
  }
}

const passed = (log: readonly { name: string; ms: number; decision: Decision }[]) =>
  log.filter(({ decision }) => decision.allowed).map(({ name, ms }) => `${name}@${ms}`)

describe.each([
  ['tokenBucket', tokenBucket],
  ['gcra', gcra],
  ['leakyMeter', leakyMeter],
])('wait under %s', (_, rule) => {
  test('acceptance 136: of 100 at once under (90; 10/s) 90 pass, two wait 100 and 200 ms, eight are refused', async () => {
    const limiter = createLimiter(rule({ limit: 10, window: '1s', burst: 90 }))
    const { log, on } = watch()
    for (let call = 0; call < 100; call++) on(`${call}`, limiter.wait('k', { maxWaitMs: 200 }))
    await vi.advanceTimersByTimeAsync(0)
    expect(log.filter(({ decision }) => decision.allowed)).toHaveLength(90)
    const refused = log.filter(({ decision }) => !decision.allowed)
    expect(refused).toHaveLength(8)
    expect(refused[0]?.decision).toMatchObject({ reason: 'limited', retryAfterMs: 300, charged: 0 })
    await vi.advanceTimersByTimeAsync(1_000)
    const waited = log.slice(98)
    expect(waited.map(({ name, ms }) => [name, ms])).toEqual([
      ['90', 100],
      ['91', 200],
    ])
    expect(waited.map(({ decision }) => [decision.allowed, decision.delayMs, decision.retryAfterMs])).toEqual([
      [true, 100, 0],
      [true, 200, 0],
    ])
  })

  test.each([
    [20, 20, 30, 4, 50, 6],
    [20, 100, 60, 20, 10, 20],
  ])('acceptance 137: (%i; %i/s), %i at once: %i wait in steps of %i ms, %i are refused', async (burst, limit, calls, waits, step, refusals) => {
    const limiter = createLimiter(rule({ limit, window: '1s', burst }))
    const { log, on } = watch()
    for (let call = 0; call < calls; call++) on(`${call}`, limiter.wait('k', { maxWaitMs: 200 }))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(log.filter(({ ms, decision }) => ms === 0 && decision.allowed)).toHaveLength(burst)
    expect(log.filter(({ decision }) => !decision.allowed)).toHaveLength(refusals)
    expect(log.filter(({ ms }) => ms > 0).map(({ ms }) => ms)).toEqual(
      Array.from({ length: waits }, (_, place) => (place + 1) * step),
    )
  })
})
