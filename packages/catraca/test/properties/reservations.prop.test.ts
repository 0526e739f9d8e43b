import { createLimiter, type Decision, tokenBucket } from 'catraca'
import * as fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { mostWithin, type Passed } from './support/spans.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2027, 0, 1) })
})
afterEach(() => {
  vi.useRealTimers()
})

interface Act {
  readonly kind: 'take' | 'wait' | 'abort' | 'pause'
  readonly cost: number
  readonly which: number
  readonly ms: number
}

const settings = fc.record({
  limit: fc.constantFrom(1, 2, 3, 7, 10),
  windowMs: fc.constantFrom(10, 100, 700),
  burst: fc.integer({ min: 1, max: 8 }),
})
const acts = fc.array(
  fc.record({
    kind: fc.constantFrom('take', 'wait', 'wait', 'wait', 'abort', 'abort', 'pause'),
    cost: fc.integer({ min: 1, max: 4 }),
    which: fc.nat(12),
    ms: fc.constantFrom(0, 0, 1, 5, 10, 50, 100, 300, 1_000),
  }) as fc.Arbitrary<Act>,
  { minLength: 5, maxLength: 45, size: 'max' },
)

/** Plays acts to a limiter: when what passed starts, to the µs. */
async function startsOf(
  setting: { limit: number; windowMs: number; burst: number },
  list: readonly Act[],
): Promise<Passed[]> {
  const { limit, windowMs, burst } = setting
  const limiter = createLimiter(tokenBucket({ limit, window: windowMs, burst }))
  const starts: Passed[] = []
  const started = (decision: Decision): void => {
    if (decision.allowed)
      starts.push({ at: decision.nowUs + Math.round(decision.delayMs * 1_000), units: decision.cost })
  }
  const waiting: AbortController[] = []
  for (const { kind, cost, which, ms } of list) {
    if (kind === 'take') started(limiter.take('k', { cost }))
    else if (kind === 'wait') {
      const abort = new AbortController()
      waiting.push(abort)
      void limiter.wait('k', { cost, signal: abort.signal, maxWaitMs: 3_000 }).then(started)
    } else if (kind === 'abort') waiting[which % Math.max(1, waiting.length)]?.abort()
    else await vi.advanceTimersByTimeAsync(ms)
  }
  await vi.advanceTimersByTimeAsync(5_000)
  limiter.close()
  return starts
}

test('whatever is taken, reserved and given up, no span starts more than the burst and what the refill brings', async () => {
  await fc.assert(
    fc.asyncProperty(settings, acts, async (setting, list) => {
      const { limit, windowMs, burst } = setting
      const starts = await startsOf(setting, list)
      const windowUs = windowMs * 1_000
      const interval = Math.floor(windowUs / limit)
      for (const us of [1, interval, 2 * interval - 1, windowUs, 3 * windowUs + 1, 10 * windowUs]) {
        const bound = BigInt(burst) + (BigInt(limit) * BigInt(us)) / BigInt(windowUs)
        const most = mostWithin(starts, BigInt(us))
        expect(most <= bound, `${most} > ${bound} in ${us} µs: ${JSON.stringify(starts)}`).toBe(true)
      }
    }),
    { numRuns: Number(process.env['CATRACA_TRACES'] ?? 400) },
  )
})

test('who waits starts in the order of arrival, and later ones never earlier because somebody gave up', async () => {
  await fc.assert(
    fc.asyncProperty(settings, acts, async ({ limit, windowMs, burst }, list) => {
      const limiter = createLimiter(tokenBucket({ limit, window: windowMs, burst }))
      const times: { given: number; came: number }[] = []
      const waiting: AbortController[] = []
      let latest = 0
      for (const { kind, cost, which, ms } of list) {
        if (kind === 'wait') {
          const abort = new AbortController()
          const before = limiter.peek('k', { cost })
          const given = Date.now() + (before.allowed ? 0 : before.retryAfterMs)
          if (before.retryAfterMs === Infinity) continue
          // What is given up leaves its time to who comes next, never an earlier one than the line has at its end.
          if (waiting.every(({ signal }) => !signal.aborted)) {
            expect(given).toBeGreaterThanOrEqual(latest)
            latest = given
          }
          waiting.push(abort)
          void limiter.wait('k', { cost, signal: abort.signal, maxWaitMs: 60_000 }).then((decision) => {
            if (decision.allowed) times.push({ given, came: Date.now() })
          })
        } else if (kind === 'abort') waiting[which % Math.max(1, waiting.length)]?.abort()
        else await vi.advanceTimersByTimeAsync(ms)
      }
      await vi.advanceTimersByTimeAsync(60_000)
      for (const { given, came } of times) expect(came).toBe(Math.ceil(given))
      limiter.close()
    }),
    { numRuns: 200 },
  )
})

test('when all have given up, nothing is used but what was taken', async () => {
  await fc.assert(
    fc.asyncProperty(settings, acts, async ({ limit, windowMs, burst }, list) => {
      const make = () => createLimiter(tokenBucket({ limit, window: windowMs, burst }))
      const [limiter, alone] = [make(), make()]
      limiter.take('k', { cost: burst })
      alone.take('k', { cost: burst })
      const waiting: AbortController[] = []
      // At one instant nothing comes back by itself: every order of giving up must leave the same.
      for (const { kind, cost, which } of list) {
        if (kind === 'wait') {
          const abort = new AbortController()
          waiting.push(abort)
          void limiter.wait('k', { cost, signal: abort.signal, maxWaitMs: 1e9 })
        } else if (kind === 'abort') waiting[which % Math.max(1, waiting.length)]?.abort()
      }
      for (const abort of waiting.toSorted((a, b) => ((waiting.indexOf(a) * 7) % 5) - ((waiting.indexOf(b) * 7) % 5)))
        abort.abort()
      expect(limiter.peek('k').retryAfterMs).toBe(alone.peek('k').retryAfterMs)
      limiter.close()
    }),
    { numRuns: 300 },
  )
})
