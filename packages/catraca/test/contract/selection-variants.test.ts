import {
  concurrency,
  type Duration,
  fixedWindow,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { kindNames, make } from './kinds.ts'
import { Book, type Named } from './ledger.ts'

const seeds = Array.from({ length: 5 }, (_, index) => index)
const bucket = (limit: number, window: Duration, burst = limit) => tokenBucket({ limit, window, burst })
const variants = (...rules: Rule[]): Named[] => rules.map((rule) => ['policy', rule])

describe.each(kindNames)('variants of one policy: %s', (kind) => {
  const book = () => new Book(variants(make(kind, 100), make(kind, 200), make(kind, 40)))

  test('60 of 100 used, 200 allowed: 140 are left; 40 allowed: none', () => {
    const one = book()
    one.take(0, 'k', 60)
    expect([0, 1, 2].map((variant) => one.left(variant))).toEqual([40, 140, 0])
    expect(one.take(1, 'k', 100).remaining).toBe(40)
    expect(one.take(0, 'k', 1)).toMatchObject({ allowed: false, remaining: 0 })
    expect(one.take(1, 'k', 40).remaining).toBe(0)
    expect(one.keys).toBe(1)
  })

  test('looking moves nothing, wherever the key stands', () => {
    const one = book()
    one.take(0, 'k', 30)
    for (let turn = 0; turn < 3; turn++) {
      expect([0, 1, 2].map((variant) => one.left(variant))).toEqual([70, 170, 10])
      expect(one.keys).toBe(1)
    }
    expect(one.ledger.applySome([1, 0], ['k', 'other'], [1, 1], 0, false).stack[0]?.remaining).toBe(170)
  })

  test('a refusal moves the state too, and charges nothing', () => {
    const one = book()
    one.take(1, 'k', 60)
    expect(one.take(2, 'k', 1)).toMatchObject({ allowed: false, remaining: 0 })
    expect(one.take(2, 'k', 41)).toMatchObject({ reason: 'impossible' })
    expect([one.left(1), one.keys]).toEqual([140, 1])
  })

  test('a key never seen is of no variant, and other keys stay where they are', () => {
    const one = book()
    one.take(0, 'a', 10)
    one.take(1, 'b', 20)
    expect([one.left(0, 0, 'a'), one.left(1, 0, 'b'), one.left(2, 0, 'c')]).toEqual([90, 180, 40])
    one.take(1, 'a', 5)
    expect([one.left(1, 0, 'a'), one.left(1, 0, 'b'), one.keys]).toEqual([185, 180, 2])
  })

  test('a reset forgets the key under every variant, and what it was charged', () => {
    const one = book()
    const before = one.take(0, 'k', 30)
    one.take(1, 'k', 10)
    one.ledger.reset(2, 'k')
    expect([0, 1, 2].map((variant) => one.left(variant))).toEqual([100, 200, 40])
    one.take(0, 'k', 30)
    expect(one.refund(before)).toBe(0)
    expect(one.left(0)).toBe(70)
  })

  test('a policy of another name with the same rules keeps its own count', () => {
    const one = new Book([
      ['a', make(kind, 100)],
      ['b', make(kind, 200)],
      ['a', make(kind, 200)],
    ])
    one.take(0, 'k', 60)
    expect([one.left(1), one.left(2)]).toEqual([200, 140])
  })

  test('a selection of several policies moves each of them, whatever comes of it', () => {
    const one = new Book([
      ['a', make(kind, 10)],
      ['a', make(kind, 20)],
      ['b', make(kind, 10)],
      ['b', make(kind, 5)],
    ])
    one.takeAll({ 0: 4, 2: 4 })
    const refused = one.takeAll({ 1: 2, 3: 2 })
    expect(refused.stack.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 16],
      [false, 1],
    ])
    expect(one.takeAll({ 1: 3, 3: 1 }).stack.map(({ remaining }) => remaining)).toEqual([13, 0])
    expect(one.keys).toBe(2)
  })

  test('thousands of keys change their variant and are found again', () => {
    const one = new Book(variants(make(kind, 10), make(kind, 20)))
    for (let index = 0; index < 3_000; index++) one.take(0, `k${index}`, 1 + (index % 9))
    for (let index = 0; index < 3_000; index += 2) one.take(1, `k${index}`, 1)
    expect(one.keys).toBe(3_000)
    for (let index = 0; index < 3_000; index++) {
      const used = 1 + (index % 9) + (index % 2 === 0 ? 1 : 0)
      expect(one.left(1, 0, `k${index}`)).toBe(20 - used)
    }
  })
})

describe('what is used stays used', () => {
  test('in buckets of other rates, to the microsecond', () => {
    const book = new Book(variants(bucket(60, '1m', 10), bucket(6_000, '1m', 900)))
    book.take(1, 'k', 900)
    // 900 used of a bucket of 10 that leaks one per second: 890 must leak before one is free, and one more for it.
    expect(book.take(0, 'k', 1)).toMatchObject({ allowed: false, retryAfterMs: 891_000 })
    expect(book.take(0, 'k', 1, 890.999_999).allowed).toBe(false)
    expect(book.left(1, 1)).toBe(1)
    expect(book.left(1, 100)).toBe(100)
    expect(book.take(1, 'k', 100, 100).remaining).toBe(0)
  })

  test('parts of a unit count', () => {
    const book = new Book(variants(bucket(3, '1s'), bucket(10, '1s'), fixedWindow({ limit: 10, window: '1h' })))
    book.take(0, 'k', 3)
    // At 0.5 s one and a half are used.
    expect([0, 1, 2].map((variant) => book.left(variant, 0.5))).toEqual([1, 8, 8])
  })

  test('with a bucket that sees milliseconds only, and no tick drains twice', () => {
    const coarse = tokenBucket({ limit: 999_983, window: '30d', burst: 999_979 })
    const fine = tokenBucket({ limit: 1, window: '1s', burst: 1_000_000 })
    const book = new Book(variants(fine, coarse))
    book.take(0, 'k', 1_000_000, 10.5)
    for (let turn = 0; turn <= 100; turn++)
      expect(book.take(turn % 2, 'k', 1_000, 10.6 + turn / 4_000).allowed).toBe(false)
    expect(book.left(0, 12.4)).toBe(1)
    expect(book.left(0, 12.6)).toBe(2)
  })

  test('no time is lost or won between ticks of two lengths', () => {
    const seconds = tokenBucket({ limit: 999_999_937, window: '30d', burst: 3_000_000 })
    const book = new Book(variants(tokenBucket({ limit: 1, window: '1s', burst: 1_000_000 }), seconds))
    book.take(0, 'k', 1_000_000)
    // In turn for 1.5 s. The half second that a rule of whole seconds cannot see passes under it: per 3 s one at 1 per
    // second, two at 385.8.
    for (let turn = 1; turn <= 20; turn++) book.take(turn % 2, 'k', 1e7, turn * 1.5)
    expect(book.left(0, 30)).toBe(7_726)
    const coarse = tokenBucket({ limit: 999_983, window: '30d', burst: 999_979 })
    const fast = new Book(variants(tokenBucket({ limit: 1_000_000, window: '1s', burst: 1_000 }), coarse))
    let passed = 0
    for (let turn = 0; turn < 100; turn++) {
      const now = 0.0005 + turn / 1e6
      const cost = Math.max(1, fast.left(0, now))
      if (fast.take(0, 'k', cost, now).allowed) passed += cost
      fast.take(1, 'k', 1e6, now)
    }
    expect(passed).toBeLessThanOrEqual(1_100)
  })

  test('in sliding counters that tell time in ticks of two lengths', () => {
    const book = new Book(
      variants(slidingCounter({ limit: 1_000, window: '1h' }), slidingCounter({ limit: 10_000_000, window: '1h' })),
    )
    const charge = book.take(0, 'k', 900, 3_600)
    expect(book.left(1, 3_600)).toBe(9_999_100)
    expect(book.take(1, 'k', 5_000, 3_700).remaining).toBe(9_994_100)
    expect(book.refund(charge, 900, 3_700)).toBe(0)
    // Half of the window before counts.
    expect([book.left(0, 9_000), book.left(1, 9_000)]).toEqual([0, 9_997_050])
    expect(book.take(0, 'k', 1, 3_800).retryAfterMs).toBeGreaterThan(3_400_000)
  })

  test('a counter counts parts of the window before as units', () => {
    const book = new Book(variants(slidingCounter({ limit: 10, window: '1m' }), make('fixedWindow', 20)))
    book.take(0, 'k', 10, 30)
    // 10 × 59 ÷ 60 are used.
    expect(book.left(1, 61)).toBe(10)
  })

  test('in windows of one length, counts and boundaries with them', () => {
    for (const make of [fixedWindow, slidingCounter, slidingLog]) {
      const book = new Book(variants(make({ limit: 10, window: '1m' }), make({ limit: 20, window: '1m' })))
      book.take(0, 'k', 8, 50)
      expect(book.take(1, 'k', 2, 59).remaining).toBe(10)
      expect(book.left(1, 180)).toBe(20)
    }
    const first = (limit: number) => fixedWindow({ limit, window: '1m', anchor: 'first' })
    const book = new Book(variants(first(10), first(20)))
    book.take(0, 'k', 10, 50)
    expect(book.take(1, 'k', 11, 109.999_999).allowed).toBe(false)
    expect(book.take(1, 'k', 11, 110).remaining).toBe(9)
  })

  test('in quotas of one calendar', () => {
    const daily = (limit: number) => quota({ limit, period: 'day', timeZone: 'America/Sao_Paulo' })
    const book = new Book(variants(daily(10), daily(20), quota({ limit: 20, period: 'day' })))
    book.take(0, 'k', 10, 3_600)
    expect(book.left(1, 10_799)).toBe(10)
    expect(book.left(1, 10_800)).toBe(20)
    // Days of another zone are another calendar: what is used now is charged to its day.
    expect(book.left(2, 10_799)).toBe(10)
    book.take(2, 'k', 1, 10_799)
    expect(book.left(2, 10_800)).toBe(9)
  })

  test('a log keeps the instant of each request', () => {
    const log = (limit: number) => slidingLog({ limit, window: '10s' })
    const book = new Book(variants(log(5), log(6)))
    for (const now of [0, 3, 6]) book.take(0, 'k', 1, now)
    book.take(1, 'k', 1, 9)
    expect([10, 13, 16, 19].map((now) => book.left(1, now))).toEqual([3, 4, 5, 6])
    expect([10, 13, 16, 19].map((now) => book.left(0, now))).toEqual([2, 3, 4, 5])
  })
})

describe('windows of other lengths', () => {
  const hourly = fixedWindow({ limit: 100, window: '1h' })
  const minutely = fixedWindow({ limit: 10, window: '1m' })

  test('what is used now is charged to the window of now', () => {
    const book = new Book(variants(hourly, minutely))
    book.take(0, 'k', 7, 10)
    expect(book.take(1, 'k', 1, 59)).toMatchObject({ allowed: true, remaining: 2 })
    expect(book.left(1, 60)).toBe(10)
    expect(book.left(0, 59)).toBe(92)
  })

  test('a minute under a limit per minute does not clear the hour', () => {
    const book = new Book(variants(hourly, minutely))
    book.take(0, 'k', 100, 10)
    for (let minute = 1; minute < 59; minute++) {
      // What is used of the hour fills the minute, each time it comes from there.
      expect(book.take(1, 'k', 1, 60 * minute).allowed).toBe(false)
      expect(book.take(0, 'k', 1, 60 * minute + 30).allowed).toBe(false)
    }
    expect(book.take(0, 'k', 90, 3_600).allowed).toBe(true)
  })

  test('what waits for its return counts as a key, ends with its window and is given up at the bound', () => {
    const book = new Book(variants(hourly, minutely), { maxKeys: 3, seed: 1 })
    book.take(0, 'k', 50)
    book.take(1, 'k', 1)
    expect(book.keys).toBe(2)
    book.take(0, 'k', 1)
    expect(book.keys).toBe(2)
    for (let index = 0; index < 20; index++) {
      book.take(index % 2, 'k', 1, index)
      book.take(0, `other ${index}`, 1, index)
      expect(book.keys).toBeLessThanOrEqual(3)
    }
  })

  test('a window that has ended does not wait', () => {
    const book = new Book(variants(hourly, minutely))
    book.take(1, 'k', 10)
    book.take(0, 'k', 1, 61)
    expect(book.keys).toBe(1)
  })

  test('a charge is given back to where it was made', () => {
    const book = new Book(variants(hourly, minutely))
    const charge = book.take(0, 'k', 60)
    book.take(1, 'k', 1)
    expect(book.refund(charge, 50)).toBe(50)
    // 60 were carried over into the minute, and the minute does not know of the refund.
    expect(book.left(1)).toBe(0)
    book.take(0, 'k', 1, 60)
    expect(book.left(0, 60)).toBe(89)
  })

  test('what is used in both is not added up', () => {
    const book = new Book(variants(hourly, fixedWindow({ limit: 100, window: '1m' })))
    book.take(0, 'k', 50)
    book.take(1, 'k', 3)
    expect([book.left(0), book.take(0, 'k', 1).remaining, book.left(1)]).toEqual([47, 46, 46])
  })

  test.each([slidingLog, slidingCounter])('in logs and counters too: what is used is charged as of now', (make) => {
    const book = new Book(variants(make({ limit: 100, window: '1h' }), make({ limit: 10, window: '1m' })))
    book.take(0, 'k', 100)
    expect(book.take(1, 'k', 1, 60)).toMatchObject({ allowed: false })
    expect(book.take(1, 'k', 9, 240).allowed).toBe(true)
    expect(book.take(0, 'k', 1, 300).allowed).toBe(false)
  })

  test('looking at what waits does not change it', () => {
    const book = new Book(variants(slidingLog({ limit: 10, window: '1h' }), minutely))
    book.take(0, 'k', 3)
    book.take(1, 'k', 5)
    for (let turn = 0; turn < 3; turn++) expect(book.left(0)).toBe(2)
    expect(book.left(0, 60)).toBe(7)
  })

  test('windows by the clock and from the first request are not kin', () => {
    const first = fixedWindow({ limit: 20, window: '1m', anchor: 'first' })
    const book = new Book(variants(fixedWindow({ limit: 20, window: '1m' }), first))
    book.take(0, 'k', 10, 50)
    expect(book.take(1, 'k', 1, 59).remaining).toBe(9)
    expect([book.left(1, 118.999_999), book.left(1, 119)]).toEqual([9, 20])
  })

  test('kin of a state that waits take it up', () => {
    const larger = fixedWindow({ limit: 200, window: '1h' })
    const book = new Book(variants(hourly, minutely, larger))
    book.take(0, 'k', 100)
    book.take(1, 'k', 1)
    expect(book.left(2, 60)).toBe(100)
    book.take(2, 'k', 1, 60)
    expect(book.left(0, 60)).toBe(0)
  })
})

describe('charges and permits after a move', () => {
  test.each(['fixedWindow', 'fixedWindow first', 'slidingLog', 'slidingCounter', 'quota'])(
    'a charge under one variant is given back under another of the same windows: %s',
    (kind) => {
      const book = new Book(variants(make(kind, 10), make(kind, 20)))
      const charge = book.take(0, 'k', 6)
      book.take(1, 'k', 1)
      expect(book.refund(charge, 4)).toBe(4)
      expect(book.left(1)).toBe(17)
    },
  )

  test('a bucket does not: its levels are of other units; also not after the return', () => {
    const book = new Book(variants(bucket(10, '1h'), bucket(20, '1h', 30)))
    const charge = book.take(0, 'k', 6)
    book.take(1, 'k', 1)
    expect(book.refund(charge)).toBe(0)
    const later = book.take(0, 'k', 1)
    expect(book.refund(charge)).toBe(0)
    expect(book.refund(later)).toBe(1)
    expect(book.left(0)).toBe(3)
    const fine = new Book(variants(bucket(1, '1h', 100), bucket(1_000, '1h', 100)))
    const deep = fine.take(0, 'k', 50)
    fine.take(1, 'k', 1)
    expect(fine.refund(deep)).toBe(0)
  })

  test('permits keep their ids and are released wherever they are', () => {
    const short = concurrency({ limit: 3, permitTtl: '30s' })
    const long = concurrency({ limit: 5, permitTtl: '1h' })
    const book = new Book(variants(short, long))
    const [a, b] = [book.take(0, 'k', 1), book.take(1, 'k', 2)]
    expect(book.left(0)).toBe(0)
    a.release()
    a.release()
    expect([book.left(0), book.left(1)]).toEqual([1, 3])
    book.take(0, 'k', 1).release()
    expect(book.left(0)).toBe(1)
    b.release()
    expect([book.left(0), book.left(1)]).toEqual([3, 5])
  })

  test('permits keep their end, a longer one and a shorter one', () => {
    const short = concurrency({ limit: 3, permitTtl: '30s' })
    const long = concurrency({ limit: 3, permitTtl: '1h' })
    const book = new Book(variants(short, long))
    book.take(1, 'long', 3)
    expect(book.take(0, 'long', 1, 60)).toMatchObject({ allowed: false, retryAfterMs: 3_540_000 })
    expect(book.take(0, 'long', 1, 3_599.999_999).allowed).toBe(false)
    expect(book.take(0, 'long', 1, 3_600).allowed).toBe(true)
    book.take(0, 'short', 3)
    expect(book.take(1, 'short', 1, 29)).toMatchObject({ allowed: false, retryAfterMs: 1_000 })
    expect(book.take(1, 'short', 3, 30).allowed).toBe(true)
    expect(book.rebasedMs).toEqual([])
  })

  test.each(seeds)('permits that moved are never given up at the bound, seed %d', (seed) => {
    const book = new Book(
      variants(concurrency({ limit: 1, permitTtl: '1h' }), concurrency({ limit: 2, permitTtl: '2h' })),
      { maxKeys: 2, seed },
    )
    for (const key of ['a', 'b', 'c']) book.take(0, key, 1)
    for (const key of ['a', 'b', 'c']) book.take(1, key, 1)
    for (let index = 0; index < 30; index++) book.take(index % 2, `k${index}`, 1).release()
    for (const key of ['a', 'b', 'c']) expect(book.take(1, key, 1, 1).allowed).toBe(false)
  })
})

describe('a clock far ahead', () => {
  test.each(kindNames)('a state that moves is taken as of now, once noticed: %s', (kind) => {
    const book = new Book(variants(make(kind, 10), make(kind, 20)))
    book.take(0, 'k', 10, 864_000)
    expect(book.take(1, 'k', 1, 5)).toMatchObject({ allowed: true, remaining: 9 })
    expect(book.rebasedMs).toHaveLength(1)
    expect(book.take(0, 'k', 1, 5).allowed).toBe(false)
    expect(book.rebasedMs).toHaveLength(1)
  })
})

describe('the bound on keys', () => {
  test.each(seeds)('is one for all variants, and holds while keys change theirs, seed %d', (seed) => {
    const book = new Book(variants(make('fixedWindow', 5), make('fixedWindow', 9), bucket(5, '1h')), {
      maxKeys: 50,
      seed,
    })
    for (let index = 0; index < 2_000; index++) {
      const key = `k${(index * 37) % 121}`
      const variant = (index >> 2) % 3
      const decision = book.take(variant, key, 1)
      expect(book.keys).toBeLessThanOrEqual(50)
      if (decision.allowed) expect(book.peek(variant, key).remaining).toBe(decision.remaining)
    }
    book.ledger.close()
    expect(book.keys).toBe(0)
  })

  test.each(seeds)('holds when all that changes is where keys stand, seed %d', (seed) => {
    const book = new Book(variants(make('fixedWindow', 5), bucket(5, '1h')), { maxKeys: 50, seed })
    for (let index = 0; index < 50; index++) book.take(0, `k${index}`, 1)
    for (let turn = 0; turn < 6; turn++) {
      for (let index = 0; index < 50; index++) {
        book.take(turn % 2, `k${index}`, 1)
        expect(book.keys).toBeLessThanOrEqual(50)
      }
    }
  })
})

describe('the sweep', () => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => vi.useRealTimers())

  test('leaves permits that moved until their own end', () => {
    const book = new Book(
      variants(concurrency({ limit: 1, permitTtl: '30s' }), concurrency({ limit: 1, permitTtl: '1h' })),
    )
    const held = book.ledger.applySome([1], ['k'], [1], undefined, true)
    expect(held.allowed).toBe(true)
    book.ledger.applySome([0], ['k'], [1], undefined, true)
    vi.advanceTimersByTime(3_500_000)
    expect(book.ledger.applySome([0], ['k'], [1], undefined, true).allowed).toBe(false)
    vi.advanceTimersByTime(100_000)
    expect(book.ledger.applySome([0], ['k'], [1], undefined, true).allowed).toBe(true)
  })

  test('reaches every variant and what waits', () => {
    const book = new Book(
      variants(
        fixedWindow({ limit: 5, window: '10s' }),
        fixedWindow({ limit: 9, window: '10s' }),
        fixedWindow({ limit: 9, window: '20s' }),
      ),
    )
    for (let index = 0; index < 900; index++) {
      book.ledger.applySome([index % 3], [`k${index}`], [2], undefined, true)
      if (index % 5 === 0) book.ledger.applySome([(index + 1) % 3], [`k${index}`], [1], undefined, true)
    }
    expect(book.keys).toBeGreaterThan(900)
    vi.advanceTimersByTime(180_000)
    expect(book.store.stats()).toEqual({ keys: 0, evicted: 0, evictedLimited: 0 })
    expect(vi.getTimerCount()).toBe(0)
    expect(book.ledger.tables).toHaveLength(3)
  })
})
