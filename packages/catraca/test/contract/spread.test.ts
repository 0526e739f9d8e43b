import { createLimiter, fixedWindow, memoryStore, slidingLog } from 'catraca'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type * as FixedWindowModule from '../../src/algorithms/fixed-window/fixed-window.ts'

/** A literal path into another project is an error of the compiler. */
const file = new URL('../../src/algorithms/fixed-window/fixed-window.ts', import.meta.url).href
const { variantFor, variantsOf } = (await import(file)) as typeof FixedWindowModule

const t0 = Date.UTC(2027, 0, 1)
const spread = fixedWindow({ limit: 5, window: '16s', offset: 'key' })

describe('an offset', () => {
  test('moves all windows by as much', () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1m', offset: '15s' }))
    const at = (seconds: number) => limiter.take('a', { now: t0 + seconds * 1_000 })
    expect([0, 14.999, 15, 74.999, 75].map((seconds) => at(seconds).allowed)).toEqual([true, false, true, false, true])
    expect(at(80).retryAfterMs).toBe(55_000)
  })

  test.each([
    ['1m', /allowed: less than the window of 1m/],
    ['90s', /allowed: less than the window of 1m/],
    ['soon', /fixedWindow.offset is "soon"/],
    ['0s', /fixedWindow.offset is "0s"/],
    [15_000, /allowed: "key", or a duration/],
    [null, /allowed: "key", or a duration/],
  ])('of %s is an error', (offset, words) => {
    expect(() => fixedWindow({ limit: 1, window: '1m', offset: offset as 'key' })).toThrow(words)
  })

  test.each(['15s', 'key'] as const)('of %s does not go with windows from the first request', (offset) => {
    expect(() => fixedWindow({ limit: 1, window: '1m', anchor: 'first', offset })).toThrow(
      expect.objectContaining({ code: 'CATRACA_OPTION_INVALID', path: 'fixedWindow.offset', value: offset }),
    )
  })

  test('is part of what must be equal for states to mean the same', () => {
    const make = (offset: '15s' | '20s' | undefined, limit = 1) =>
      fixedWindow({ limit, window: '1m', ...(offset !== undefined && { offset }) })
    expect(make('15s').kinship(make('15s', 7))).toBe('same')
    expect(make('15s').kinship(make('20s'))).toBe('none')
    expect(make('15s').kinship(make(undefined))).toBe('none')
    expect(make('15s').script.name).not.toBe(make('20s').script.name)
  })
})

describe('an offset per key', () => {
  test('is one of sixteen, evenly spread over the window and over the keys', () => {
    const variants = variantsOf(spread)
    expect(variants.map(({ options }) => options['offset'])).toEqual([
      undefined,
      ...Array.from({ length: 15 }, (_, index) => `${index + 1}s`),
    ])
    for (const other of [fixedWindow({ limit: 5, window: '16s' }), slidingLog({ limit: 1, window: '1s' })]) {
      expect(variantsOf(other)).toEqual([other])
    }
    for (const name of [(n: number) => `client:${n}`, (n: number) => `10.0.${n % 256}.${n >> 8}`, String]) {
      const counts = Array(16).fill(0)
      for (let n = 0; n < 16_000; n++) counts[variantFor(name(n))]++
      expect(Math.min(...counts)).toBeGreaterThan(800)
      expect(Math.max(...counts)).toBeLessThan(1_200)
    }
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (key) => variants[variantFor(key)] !== undefined))
  })

  test('is the same in every process: a change of the hash would move the windows of all keys', () => {
    expect(['', 'a', 'client:7', '10.0.0.1', 'ção'].map(variantFor)).toEqual([11, 3, 7, 14, 6])
  })

  test('holds for every verb of a limiter', () => {
    const store = memoryStore()
    const limiter = createLimiter(spread, { name: 'a', store })
    for (const key of ['a', 'b', 'client:7', '']) {
      const decision = limiter.take(key, { cost: 3, now: t0 })
      expect([decision.allowed, decision.remaining, decision.policy]).toEqual([true, 2, 'a'])
      expect(limiter.take(key, { cost: 3, now: t0 }).allowed).toBe(false)
      expect(limiter.refund(decision, 2)).toBe(2)
      expect(limiter.peek(key, { now: t0 }).remaining).toBe(4)
      limiter.block(key, '1s')
      expect(limiter.take(key, { now: t0 }).reason).toBe('blocked')
      limiter.unblock(key)
      limiter.reset(key)
      expect(limiter.peek(key, { now: t0 }).remaining).toBe(5)
    }
    limiter.close()
    expect(() => limiter.take('a')).toThrow(expect.objectContaining({ code: 'CATRACA_LIMITER_CLOSED' }))
    store.close()
  })

  test('holds in a stack, each policy by its own key', () => {
    const limiter = createLimiter({ log: slidingLog({ limit: 9, window: '1s' }), own: spread })
    const decision = limiter.take({ log: 'x', own: 'b' }, { cost: 4, now: t0 })
    expect(decision.policies.map(({ policy, remaining }) => [policy, remaining])).toEqual([
      ['log', 5],
      ['own', 1],
    ])
    expect(limiter.take({ log: 'y', own: 'b' }, { cost: 2, now: t0 }).policy).toBe('own')
    expect(limiter.peek({ log: 'y', own: 'c' }, { now: t0 }).policies.map(({ remaining }) => remaining)).toEqual([9, 5])
    limiter.close()
  })

  test('leaves policies that come after it their places', () => {
    const limiter = createLimiter({ own: spread, log: slidingLog({ limit: 9, window: '1h' }) })
    const left = (): number[] => limiter.peek({ own: 'b', log: 'x' }, { now: t0 }).policies.map((one) => one.remaining)
    limiter.take({ own: 'b', log: 'x' }, { cost: 4, now: t0 })
    expect(left()).toEqual([1, 5])
    limiter.reset({ log: 'x' })
    expect(left()).toEqual([1, 9])
    limiter.reset({ own: 'b' })
    expect(left()).toEqual([5, 9])
    limiter.close()
  })
})
