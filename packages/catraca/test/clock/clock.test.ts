import { afterEach, describe, expect, test, vi } from 'vitest'
import type * as Clock from '../../src/core/clock.ts'

/** The clock is no public entry; a literal path into another project is an error of the compiler. */
const clockFile = new URL('../../src/core/clock.ts', import.meta.url).href
const importClock = (): Promise<typeof Clock> => import(clockFile) as Promise<typeof Clock>

/** Time as a fresh import sees it: both clocks in milliseconds, and how often the fine one was read. */
interface Time {
  wall: number
  fine: number
  reads: number
  /** Added to the fine clock at each read. */
  perRead: number
}

const realNow = Date.now
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Stubs both clocks. A bound function prints as native code, so that it passes for the clock of the platform. */
function stubTime(): Time {
  const time: Time = { wall: 1_800_000_000_000, fine: 5_000, reads: 0, perRead: 0 }
  vi.resetModules()
  vi.stubGlobal('performance', {
    now: () => {
      time.reads++
      time.fine += time.perRead
      return time.fine
    },
  })
  Date.now = readWall.bind(time)
  return time
}

function readWall(this: Time): number {
  return this.wall
}

function pass(time: Time, ms: number): void {
  time.wall += ms
  time.fine += ms
}

afterEach(() => {
  Date.now = realNow
  vi.unstubAllGlobals()
  vi.resetModules()
})

describe('the clock', () => {
  test('shows whole microseconds: the wall clock at its start, moved on by the monotonic one', async () => {
    const time = stubTime()
    const { nowUs } = await importClock()
    expect(nowUs()).toBe(1_800_000_000_000_000)
    await turn()
    time.fine += 0.0019
    expect(nowUs()).toBe(1_800_000_000_000_001)
    await turn()
    pass(time, 250)
    expect(nowUs()).toBe(1_800_000_000_250_001)
  })

  test('does not go back when the wall clock is set back by up to a second', async () => {
    const time = stubTime()
    const { nowUs } = await importClock()
    let last = nowUs()
    for (let step = 0; step < 50; step++) {
      await turn()
      time.fine += 3
      time.wall += step % 2 === 0 ? -400 : 406
      const now = nowUs()
      expect(now).toBe(last + 3_000)
      last = now
    }
  })

  test('follows the wall clock when the two drift apart by more than a second, and reports the step once', async () => {
    const time = stubTime()
    const { nowUs, onClockStep } = await importClock()
    const steps: number[] = []
    const stop = onClockStep((ms) => steps.push(ms))
    nowUs()
    await turn()
    pass(time, 1_000)
    time.wall += 3_600_000
    expect(nowUs()).toBe((1_800_000_000_000 + 1_000 + 3_600_000) * 1_000)
    await turn()
    pass(time, 1_000)
    nowUs()
    expect(steps).toEqual([3_600_000])
    stop()
    await turn()
    pass(time, 1_000)
    time.wall -= 7_200_000
    nowUs()
    expect(steps).toEqual([3_600_000])
  })
})

describe('decisions', () => {
  test('do not go back when Date steps back a little', async () => {
    const time = stubTime()
    const { createLimiter, tokenBucket } = await import('catraca')
    const limiter = createLimiter(tokenBucket({ limit: 1, window: '1s', burst: 1 }))
    expect(limiter.take('k').allowed).toBe(true)
    await turn()
    pass(time, 600)
    time.wall -= 700
    expect(limiter.take('k').retryAfterMs).toBe(400)
    await turn()
    pass(time, 400)
    time.wall -= 200
    expect(limiter.take('k').allowed).toBe(true)
  })

  test('a step of the clock is an event of every limiter that listens, with its source', async () => {
    const time = stubTime()
    const { createLimiter, tokenBucket } = await import('catraca')
    const seen: unknown[] = []
    const on = { 'clock.step': (event: unknown) => seen.push(event) }
    const limiter = createLimiter(tokenBucket({ limit: 1, window: '1s' }), { on })
    const closed = createLimiter(tokenBucket({ limit: 1, window: '1s' }), { on })
    closed.close()
    limiter.take('k')
    await turn()
    pass(time, 500)
    time.wall += 10_000
    expect(limiter.take('k').allowed).toBe(true)
    expect(seen).toEqual([{ stepMs: 10_000, source: 'clock' }])
  })
})

describe('one reading for several decisions', () => {
  test('in a busy turn serves at most 16 of them', async () => {
    const time = stubTime()
    const { nowUs } = await importClock()
    time.perRead = 0.001
    for (let turns = 0; turns < 5; turns++) {
      const uses = new Map<number, number>()
      for (let calls = 0; calls < 1_000; calls++) {
        const now = nowUs()
        uses.set(now, (uses.get(now) ?? 0) + 1)
      }
      expect(Math.max(...uses.values())).toBe(16)
      expect(uses.size).toBeGreaterThanOrEqual(Math.ceil(1_000 / 16))
      await turn()
    }
  })

  test('is never used in a later turn, busy or not', async () => {
    const time = stubTime()
    const { nowUs } = await importClock()
    for (let turns = 0; turns < 60; turns++) {
      pass(time, 5)
      const calls = turns % 3 === 0 ? 1 : 5 + turns
      const expected = 1_800_000_000_000_000 + (turns + 1) * 5_000
      for (let call = 0; call < calls; call++) expect(nowUs()).toBe(expected)
      await turn()
    }
  })

  test('is not shared when decisions come one per turn or far apart', async () => {
    const time = stubTime()
    const { nowUs } = await importClock()
    nowUs()
    for (let calls = 0; calls < 20; calls++) {
      await turn()
      pass(time, 1)
      const before = time.reads
      nowUs()
      expect(time.reads).toBe(before + 1)
    }
    for (let calls = 0; calls < 20; calls++) {
      pass(time, 1)
      const before = time.reads
      nowUs()
      expect(time.reads).toBe(before + 1)
    }
  })

  test('is one for all policies of a stack', async () => {
    const time = stubTime()
    const { createLimiter, fixedWindow } = await import('catraca')
    const rule = fixedWindow({ limit: 5, window: '1h', anchor: 'first' })
    const limiter = createLimiter({ a: rule, b: rule, c: rule })
    time.perRead = 1
    for (let calls = 0; calls < 4; calls++) {
      const before = time.reads
      const { policies } = limiter.take({ a: `${calls}`, b: `${calls}`, c: `${calls}` })
      expect(policies.map(({ resetAfterMs }) => resetAfterMs)).toEqual([3_600_000, 3_600_000, 3_600_000])
      expect(time.reads - before).toBeLessThanOrEqual(1)
      await turn()
    }
  })

  test('is one for the block of a key and its limit, so that a block ends between two decisions, not within one', async () => {
    const time = stubTime()
    const { createLimiter, fixedWindow } = await import('catraca')
    const rule = fixedWindow({ limit: 5, window: '1h', anchor: 'first' })
    const limiter = createLimiter({ a: rule, b: rule })
    const keys = { a: 'k', b: 'k' }
    limiter.block({ a: 'k' }, 10)
    await turn()
    time.perRead = 6
    let charged = 0
    for (let calls = 0; calls < 4; calls++) {
      const before = time.reads
      charged += limiter.take(keys).charged
      expect(time.reads - before).toBeLessThanOrEqual(1)
      await turn()
    }
    expect(limiter.peek(keys).policies.map(({ remaining }) => remaining)).toEqual([5 - charged, 5 - charged])
  })
})
