import {
  createLimiter,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expect, test } from 'vitest'
import { admitted } from './run.ts'

type Window = '1s' | '1m' | '1h'
const kinds: Record<string, (limit: number, window: Window) => Rule> = {
  fixedWindow: (limit, window) => fixedWindow({ limit, window }),
  'fixedWindow from the first': (limit, window) => fixedWindow({ limit, window, anchor: 'first' }),
  slidingLog: (limit, window) => slidingLog({ limit, window }),
  slidingCounter: (limit, window) => slidingCounter({ limit, window }),
  tokenBucket: (limit, window) => tokenBucket({ limit, window }),
  gcra: (limit, window) => gcra({ limit, window }),
  leakyMeter: (limit, window) => leakyMeter({ limit, window }),
  leakyQueue: (limit, window) => leakyQueue({ limit, window, capacity: limit }),
}
const limits = Array.from({ length: 1_000 }, (_, index) => index + 1)
const windows: Window[] = ['1s', '1m', '1h']
const instants = [
  Date.parse('2026-01-01T00:00Z'),
  Date.parse('2026-03-08T06:59:59.999Z') + 0.999,
  Date.parse('2026-07-04T12:34:56.789Z') + 0.123,
  Date.parse('2026-12-31T23:59:59.999Z') + 0.001,
]

describe('DESIGN section 5: a limit of N gives exactly N on a cold key at any instant of 2026', () => {
  test.each(Object.keys(kinds))('%s, limits 1 to 1000 per 1 s, 1 min, 1 h: N at once, not one more', (kind) => {
    const wrong: string[] = []
    for (const window of windows) {
      for (const limit of limits) {
        const limiter = createLimiter((kinds[kind] as (typeof kinds)[string])(limit, window))
        for (const now of instants) {
          const key = `${now}`
          const whole = limiter.take(key, { now, cost: limit })
          const more = limiter.take(key, { now })
          const cold = limiter.peek('cold', { now })
          if (!whole.allowed || more.allowed || whole.remaining !== 0 || cold.remaining !== limit) {
            wrong.push(`${limit} per ${window} at ${now}`)
          }
        }
      }
    }
    expect(wrong).toEqual([])
  })

  test.each(Object.keys(kinds))('%s, limits 1 to 1000 per 1 s, 1 min, 1 h, one by one', (kind) => {
    const wrong: string[] = []
    windows.forEach((window, index) => {
      const now = instants[index + 1] as number
      for (const limit of limits) {
        const limiter = createLimiter((kinds[kind] as (typeof kinds)[string])(limit, window))
        let passed = 0
        while (passed <= limit && limiter.take('key', { now }).allowed) passed++
        if (passed !== limit) wrong.push(`${limit} per ${window} gave ${passed}`)
      }
    })
    expect(wrong).toEqual([])
  })

  test('a bucket of seven per second gives seven per second for ever: 70 007 in 10 000 s', () => {
    const start = instants[2] as number
    const limiter = createLimiter(tokenBucket({ limit: 7, window: '1s' }))
    let passed = 0
    for (let now = start; now <= start + 10_000_000; ) {
      const decision = limiter.take('key', { now })
      if (decision.allowed) passed++
      else now = Math.round((now + decision.retryAfterMs) * 1_000) / 1_000
    }
    expect(passed).toBe(7 + 70_000)
  })

  test('a fixed window of seven per second gives seven in each of 10 000 windows', () => {
    const start = Date.parse('2026-07-04T12:34:56Z')
    const times = Array.from(
      { length: 10_000 * 8 },
      (_, index) => start + Math.floor(index / 8) * 1_000 + (index % 8) * 125,
    )
    expect(admitted(fixedWindow({ limit: 7, window: '1s' }), times).length).toBe(70_000)
  })
})
