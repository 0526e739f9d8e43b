import { createLimiter, fixedWindow } from 'catraca'
import { type FaultyStore, type FaultyStoreOptions, faultyStore } from 'catraca/testing'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const rule = fixedWindow({ limit: 4, window: '1d' })
const storeFailure = { expectedInstances: 2 }
const limiterOn = (store: FaultyStore) =>
  createLimiter(rule, { name: 'api', store, storeFailure, onStoreFailure: 'local' })

test('without faults it decides, for all instances together', async () => {
  const store = faultyStore()
  const [first, second] = [limiterOn(store), limiterOn(store.sibling())]
  const answers = [await first.take('a'), await second.take('a'), await first.take('a'), await second.take('a')]
  expect(answers.map(({ remaining, degraded }) => [remaining, degraded])).toEqual([
    [3, false],
    [2, false],
    [1, false],
    [0, false],
  ])
  expect((await first.take('a')).allowed).toBe(false)
  expect(store.trips).toBe(3)
})

test('an outage: the share of the instance decides, and the store again when it is over', async () => {
  const store = faultyStore()
  const limiter = limiterOn(store)
  store.faults = { gone: 1 }
  const answers = [await limiter.take('a'), await limiter.take('a'), await limiter.take('a')]
  expect(answers.map(({ allowed, degraded }) => [allowed, degraded])).toEqual([
    [true, true],
    [true, true],
    [false, true],
  ])
  expect(limiter.health).toBe('degraded')
  store.faults = {}
  await vi.advanceTimersByTimeAsync(1_100)
  expect(limiter.health).toBe('healthy')
  expect((await limiter.take('b')).degraded).toBe(false)
})

test('a slow store did what it was asked; one that refuses or is gone did not', async () => {
  const used = async (faults: FaultyStoreOptions['faults']) => {
    const store = faultyStore({ faults: faults ?? {} })
    const decision = limiterOn(store).take('a')
    await vi.advanceTimersByTimeAsync(50)
    expect((await decision).degraded).toBe(true)
    return 4 - (await limiterOn(store.sibling({})).peek('a')).remaining
  }
  expect([await used({ slow: 1 }), await used({ refuses: 1 }), await used({ gone: 1 })]).toEqual([1, 0, 0])
})

test('trips take as long as they are told', async () => {
  let over = false
  void limiterOn(faultyStore({ delayMs: 30 }))
    .take('a')
    .then(() => {
      over = true
    })
  await vi.advanceTimersByTimeAsync(29)
  expect(over).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(over).toBe(true)
})

test('the same seed fails the same trips, in the shares told', async () => {
  const failed = async (seed: number) => {
    const store = faultyStore({ faults: { refuses: 0.2 }, seed })
    const limiter = createLimiter(fixedWindow({ limit: 1_000, window: '1d' }), { name: 'api', store, storeFailure })
    let text = ''
    // As apart as probes are, so that no breaker stands between.
    for (let index = 0; index < 200; index++) {
      text += (await limiter.take('a')).degraded ? 'x' : '.'
      await vi.advanceTimersByTimeAsync(600)
    }
    return text
  }
  const first = await failed(7)
  expect(await failed(7)).toBe(first)
  expect(await failed(8)).not.toBe(first)
  // A binomial of 200 trips or more at 1/5: 40, give or take five deviations of 5.7.
  const count = first.split('x').length - 1
  expect(count).toBeGreaterThan(11)
  expect(count).toBeLessThan(69)
})

describe('mistakes', () => {
  test.each<[FaultyStoreOptions, RegExp]>([
    [{ delayMs: -1 }, /delayMs is -1/],
    [{ seed: Number.NaN }, /seed is NaN/],
    [{ faults: { gone: 2 } }, /faults.gone is 2/],
    [{ faults: { gone: 0.6, slow: 0.6 } }, /at most 1 together/],
    [{ faults: { lost: 1 } as object }, /faults.lost is unknown/],
    [{ delay: 1 } as object, /options.delay is unknown/],
  ])('%j', (options, words) => {
    expect(() => faultyStore(options)).toThrow(words)
  })
})
