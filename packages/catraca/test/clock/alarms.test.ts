import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { alarmAfter } from '../../src/core/alarms.ts'

describe('alarms', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2027, 0, 1) })
  })
  afterEach(() => vi.useRealTimers())

  test('ring at their times, in the order in which they were set at one time, and never before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ us: fc.integer({ min: 0, max: 20_000 }), cancelled: fc.boolean() }), { maxLength: 60 }),
        (list) => {
          const start = Date.now()
          const rang: { place: number; ms: number }[] = []
          const cancels = list.map(({ us }, place) =>
            alarmAfter(us, () => rang.push({ place, ms: Date.now() - start })),
          )
          list.forEach(({ cancelled }, place) => cancelled && cancels[place]?.())
          vi.advanceTimersByTime(25)
          const expected = list
            .map(({ us, cancelled }, place) => ({ us, place, cancelled }))
            .filter(({ cancelled }) => !cancelled)
            .toSorted((a, b) => a.us - b.us || a.place - b.place)
          expect(rang).toEqual(expected.map(({ us, place }) => ({ place, ms: Math.ceil(us / 1_000) })))
          expect(vi.getTimerCount()).toBe(0)
        },
      ),
      { numRuns: 200 },
    )
  })

  test('one timer is armed for all, and none once the last was cancelled', () => {
    const cancels = Array.from({ length: 1_000 }, (_, place) => alarmAfter(1_000_000 - place * 100, () => {}))
    expect(vi.getTimerCount()).toBe(1)
    for (const cancel of cancels) cancel()
    for (const cancel of cancels) cancel()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('sleeps once: the timer is armed for the whole millisecond after its time', () => {
    const armed = vi.spyOn(globalThis, 'setTimeout')
    let rang = 0
    alarmAfter(1_500, () => rang++)
    vi.advanceTimersByTime(2)
    expect(rang).toBe(1)
    expect(armed.mock.calls.map(([, ms]) => ms)).toEqual([2])
    armed.mockRestore()
  })

  test('one that rings may cancel another of the same instant, and set one that rings later', () => {
    const rang: string[] = []
    const cancel = { other: () => {} }
    alarmAfter(1_000, () => {
      cancel.other()
      rang.push('first')
      alarmAfter(0, () => rang.push('set then'))
    })
    cancel.other = alarmAfter(1_000, () => rang.push('cancelled'))
    alarmAfter(1_000, () => rang.push('third'))
    vi.advanceTimersByTime(1)
    expect(rang.slice(0, 2)).toEqual(['first', 'third'])
    vi.advanceTimersByTime(1)
    expect(rang).toEqual(['first', 'third', 'set then'])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('one beyond what a timer can be armed for rings at its time', () => {
    let rang = 0
    alarmAfter(2 ** 31 * 1_000 + 5_000_000, () => rang++)
    vi.advanceTimersByTime(2 ** 31 - 1)
    expect(rang).toBe(0)
    vi.advanceTimersByTime(5_001)
    expect(rang).toBe(1)
  })
})

test('the timer keeps the process alive', () => {
  const armed = vi.spyOn(globalThis, 'setTimeout')
  alarmAfter(50_000_000, () => {})()
  const cancel = alarmAfter(60_000_000, () => {})
  const timers = armed.mock.results.map(({ value }) => value as NodeJS.Timeout)
  expect(timers.at(-1)?.hasRef()).toBe(true)
  cancel()
  armed.mockRestore()
})

test('what was set under fake timers does not hold up what is set after them', async () => {
  vi.useFakeTimers({ now: Date.UTC(2020, 0, 1) })
  const cancel = alarmAfter(1_000_000_000, () => {})
  vi.useRealTimers()
  await new Promise<void>((resolve) => {
    alarmAfter(1_000, resolve)
  })
  cancel()
})
