import {
  concurrency,
  createLimiter,
  type Events,
  fixedWindow,
  leakyQueue,
  type MemoryStore,
  memoryStore,
  quota,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

const at = (now: number) => ({ now })
const seeds = Array.from({ length: 5 }, (_, index) => index)
type Evicted = Events['evicted']

/** A limiter of 10 per hour on a store for two keys, and what it evicted. */
function small(seed: number, maxKeys = 2) {
  const store = memoryStore({ maxKeys, seed })
  const evicted: Evicted[] = []
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1h' }), {
    store,
    on: { evicted: (event) => evicted.push(event) },
  })
  return { store, limiter, evicted }
}

describe('the bound on keys', () => {
  test.each([1, 2, 100, 1_500])('maxKeys %d is never passed', (maxKeys) => {
    const store = memoryStore({ maxKeys, seed: 7 })
    const limiter = createLimiter(fixedWindow({ limit: 5, window: '1h' }), { store })
    let most = 0
    for (let index = 0; index < maxKeys * 3 + 50; index++) {
      limiter.take(`key:${index}`, at(0))
      most = Math.max(most, store.stats().keys)
    }
    expect(most).toBe(maxKeys)
    expect(store.stats()).toEqual({ keys: maxKeys, evicted: maxKeys * 2 + 50, evictedLimited: 0 })
  })

  test('is one for all limiters and policies of a store', () => {
    const store = memoryStore({ maxKeys: 50, seed: 7 })
    const rule = fixedWindow({ limit: 5, window: '1h' })
    const single = createLimiter(rule, { store, name: 'single' })
    const stack = createLimiter({ a: rule, b: rule }, { store, name: 'stack' })
    for (let index = 0; index < 200; index++) {
      single.take(`key:${index}`, at(0))
      stack.take({ a: `a:${index}`, b: `b:${index}` }, at(0))
      expect(store.stats().keys).toBeLessThanOrEqual(50)
    }
    single.close()
    stack.close()
    expect(store.stats().keys).toBe(0)
  })

  test('a bound that held permits have passed holds again when they are released', () => {
    const store = memoryStore({ maxKeys: 2, seed: 1 })
    const limiter = createLimiter(concurrency({ limit: 1, permitTtl: '1h' }), { store })
    for (const decision of ['a', 'b', 'c', 'd'].map((key) => limiter.take(key, at(0)))) decision.release()
    for (let index = 0; index < 20; index++) limiter.take(`later:${index}`, at(2)).release()
    expect(store.stats().keys).toBeLessThanOrEqual(2)
  })

  test('a key that was forgotten begins anew', () => {
    const { limiter } = small(1, 1)
    limiter.take('a', { now: 0, cost: 10 })
    limiter.take('b', at(0))
    expect(limiter.peek('a', at(0)).remaining).toBe(10)
  })
})

describe.each(seeds)('who is forgotten, seed %d', (seed) => {
  test('a key with nothing used goes first, silently', () => {
    const { store, limiter, evicted } = small(seed)
    limiter.take('limited', { now: 0, cost: 10 })
    limiter.take('full again', { now: 0, cost: 1 })
    limiter.take('new', at(1_000_000))
    expect(store.stats()).toEqual({ keys: 2, evicted: 0, evictedLimited: 0 })
    expect(evicted).toEqual([])
    expect(limiter.peek('limited', at(1_000_000)).remaining).toBe(2)
    expect(limiter.peek('new', at(1_000_000)).remaining).toBe(9)
  })

  test('then the key below its limit that is nearest to full', () => {
    const { store, limiter, evicted } = small(seed)
    limiter.take('little', { now: 0, cost: 2 })
    limiter.take('much', { now: 0, cost: 9 })
    limiter.take('new', { now: 0, cost: 10 })
    expect(evicted).toEqual([{ policy: 'default', key: 'little', limited: false }])
    expect(store.stats()).toEqual({ keys: 2, evicted: 1, evictedLimited: 0 })
    limiter.take('newer', { now: 0, cost: 10 })
    expect(evicted[1]).toEqual({ policy: 'default', key: 'much', limited: false })
  })

  test('a limited key only when all are, the one whose limit ends first, and that is counted and reported', () => {
    const store = memoryStore({ maxKeys: 2, seed })
    const evicted: Evicted[] = []
    const on = { evicted: (event: Evicted) => evicted.push(event) }
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1h', anchor: 'first' }), { store, on })
    limiter.take('earlier', at(0))
    limiter.take('later', at(1_000))
    limiter.take('new', at(2_000))
    expect(evicted).toEqual([{ policy: 'default', key: 'earlier', limited: true }])
    expect(store.stats()).toEqual({ keys: 2, evicted: 1, evictedLimited: 1 })
    expect(limiter.take('later', at(2_000)).allowed).toBe(false)
  })

  test('never one that holds permits, even if the bound is passed by them', () => {
    const store = memoryStore({ maxKeys: 2, seed })
    const limiter = createLimiter(concurrency({ limit: 1, permitTtl: '1h' }), { store })
    const held = ['a', 'b', 'c', 'd'].map((key) => limiter.take(key, at(0)))
    expect(held.map(({ allowed }) => allowed)).toEqual([true, true, true, true])
    for (const key of ['a', 'b', 'c', 'd']) expect(limiter.take(key, at(1)).allowed).toBe(false)
    expect(store.stats()).toEqual({ keys: 4, evicted: 0, evictedLimited: 0 })
  })

  test('the limiter that loses the key hears of it, not the one that came', () => {
    const store = memoryStore({ maxKeys: 1, seed })
    const rule = fixedWindow({ limit: 5, window: '1h' })
    const heard: string[] = []
    const lister = (who: string) => ({ on: { evicted: ({ key }: Evicted) => heard.push(`${who} lost ${key}`) } })
    const first = createLimiter(rule, { store, name: 'first', ...lister('first') })
    const second = createLimiter(rule, { store, name: 'second', ...lister('second') })
    first.take('k1', at(0))
    second.take('k2', at(0))
    expect(heard).toEqual(['first lost k1'])
  })
})

test('the same seed forgets the same keys', () => {
  const lost = (seed: number): string[] => {
    const { limiter, evicted } = small(seed, 20)
    for (let index = 0; index < 200; index++) limiter.take(`key:${index % 90}`, { now: index, cost: 1 + (index % 7) })
    return evicted.map(({ key }) => key)
  }
  expect(lost(3)).toEqual(lost(3))
  expect(lost(3)).not.toEqual(lost(4))
})

describe('keys that ended', () => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => vi.useRealTimers())
  const fill = (store: MemoryStore, keys: number, now?: number) => {
    const limiter = createLimiter(fixedWindow({ limit: 5, window: '1s' }), { store })
    const options = now === undefined ? {} : { now }
    for (let index = 0; index < keys; index++) limiter.take(`key:${index}`, options)
    return limiter
  }

  test.each([1, 255, 1_024, 1_025, 20_000])(
    '%d of them leave memory within two minutes, without being asked for',
    (keys) => {
      const store = memoryStore()
      fill(store, keys)
      expect(store.stats().keys).toBe(keys)
      vi.advanceTimersByTime(120_000)
      expect(store.stats()).toEqual({ keys: 0, evicted: 0, evictedLimited: 0 })
      expect(vi.getTimerCount()).toBe(0)
    },
  )

  test('leave by the time that callers give, not by the clock', () => {
    const store = memoryStore()
    const limiter = fill(store, 500, 0)
    vi.advanceTimersByTime(120_000)
    expect(store.stats().keys).toBe(500)
    limiter.peek('other', at(30_000))
    vi.advanceTimersByTime(120_000)
    expect(store.stats().keys).toBe(0)
  })

  test('what still counts stays', () => {
    const store = memoryStore()
    const limiter = createLimiter(fixedWindow({ limit: 5, window: '1h', anchor: 'first' }), { store })
    for (let index = 0; index < 3_000; index++) limiter.take(`key:${index}`)
    vi.advanceTimersByTime(3_599_000)
    expect(store.stats().keys).toBe(3_000)
    expect(limiter.peek('key:2999').remaining).toBe(4)
    vi.advanceTimersByTime(62_000)
    expect(store.stats().keys).toBe(0)
  })

  test.each([
    fixedWindow({ limit: 10, window: '1h', anchor: 'first' }),
    slidingLog({ limit: 10, window: '1h' }),
    slidingCounter({ limit: 10, window: '1h' }),
    tokenBucket({ limit: 10, window: '1h' }),
    leakyQueue({ limit: 10, window: '1h', capacity: 10 }),
    quota({ limit: 10, period: 'day' }),
    concurrency({ limit: 10, permitTtl: '1h' }),
  ])('never leave while anything of them is used: $algorithm', (rule) => {
    const store = memoryStore()
    const limiter = createLimiter(rule, { store })
    const { resetAfterMs } = limiter.take('k', { now: 0, cost: 10 })
    for (const share of [0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.95]) {
      limiter.peek('k', { now: resetAfterMs * share })
      vi.advanceTimersByTime(2_000)
      for (let index = 0; index < 5; index++) limiter.take(`${share}:${index}`, { now: resetAfterMs * share })
      expect(limiter.peek('k', { now: resetAfterMs * share }).resetAfterMs).toBeGreaterThan(0)
    }
    expect(limiter.peek('k', { now: resetAfterMs - 0.001 }).resetAfterMs).toBe(0.001)
    expect(limiter.peek('k', { now: resetAfterMs }).remaining).toBe(10)
    limiter.close()
    store.close()
  })

  test('leave at least as fast as new ones come, also when no timer runs', () => {
    const store = memoryStore()
    const limiter = createLimiter(fixedWindow({ limit: 5, window: '1s', anchor: 'first' }), { store })
    let most = 0
    for (let index = 0; index < 60_000; index++) {
      limiter.take(`key:${index}`, at(index))
      most = Math.max(most, store.stats().keys)
    }
    // A key counts for 1 s and may stay up to 10 s longer; at 1000 new keys per second these are 11 000 at a time.
    expect(most).toBeLessThan(16_000)
  })

  test('a closed store has no timer and no keys', () => {
    const store = memoryStore()
    fill(store, 10)
    store.close()
    expect(vi.getTimerCount()).toBe(0)
    expect(store.stats().keys).toBe(0)
  })
})
