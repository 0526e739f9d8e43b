import { concurrency, fixedWindow, slidingCounter, slidingLog, tokenBucket } from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { kindNames, make } from './kinds.ts'
import { Book } from './ledger.ts'

describe.each(kindNames)('replacing policies: %s', (kind) => {
  test('equal rules keep their states, wherever they now stand in the list', () => {
    const book = new Book([
      ['a', make(kind, 10)],
      ['b', make(kind, 20)],
    ])
    book.takeAll({ 0: 3, 1: 7 })
    book.replace([
      ['b', make(kind, 20)],
      ['new', make(kind, 20)],
      ['a', make(kind, 10)],
    ])
    expect([0, 1, 2].map((member) => book.left(member))).toEqual([13, 20, 7])
    expect(book.takeAll({ 0: 13, 2: 7 }).stack.map(({ policy }) => policy)).toEqual(['b', 'a'])
  })

  test('other numbers go on from what is used, key by key', () => {
    const book = new Book([['a', make(kind, 100)]])
    for (const key of ['k', 'l']) book.take(0, key, 60)
    book.replace([['a', make(kind, 200)]])
    expect(book.left(0)).toBe(140)
    expect(book.take(0, 'k', 1).remaining).toBe(139)
    expect([book.keys, book.ledger.tables.length]).toEqual([2, 2])
    expect(book.left(0, 0, 'l')).toBe(140)
    book.replace([['a', make(kind, 100)]])
    expect([book.left(0), book.left(0, 0, 'l')]).toEqual([39, 40])
  })

  test('a name that goes takes its states along, also from a name that is given again', () => {
    const book = new Book([
      ['a', make(kind, 10)],
      ['b', make(kind, 10)],
    ])
    const [gone, kept] = book.takeAll({ 0: 3, 1: 3 }).stack as [never, never]
    book.replace([['b', make(kind, 10)]])
    expect([book.keys, book.left(0)]).toEqual([1, 7])
    expect([book.refund(gone), book.refund(kept)]).toEqual([0, 3])
    book.replace([
      ['b', make(kind, 10)],
      ['a', make(kind, 10)],
    ])
    expect([book.left(0), book.left(1), book.keys]).toEqual([10, 10, 1])
    expect(book.refund(gone)).toBe(0)
  })

  test('decisions from before are given back while their state lives', () => {
    const book = new Book([['a', make(kind, 10)]])
    const before = book.take(0, 'k', 4)
    book.replace([['a', make(kind, 10)]])
    expect(book.refund(before)).toBe(4)
    const after = book.take(0, 'k', 2)
    for (let turn = 0; turn < 3; turn++) book.replace([['a', make(kind, 10)]])
    expect(book.refund(after)).toBe(2)
    expect(book.left(0)).toBe(10)
  })

  test('another algorithm charges what is used now, and the way back finds the old state', () => {
    const other = kind === 'fixedWindow' ? make('slidingLog', 50) : make('fixedWindow', 50)
    const book = new Book([['a', make(kind, 100)]])
    book.take(0, 'k', 30)
    book.replace([['a', other]])
    expect(book.left(0)).toBe(20)
    expect(book.take(0, 'k', 5).remaining).toBe(15)
    book.replace([['a', make(kind, 100)]])
    expect(book.left(0)).toBe(65)
    expect(book.take(0, 'k', 66).allowed).toBe(false)
  })

  test('a reset forgets states under rules of before', () => {
    const book = new Book([['a', make(kind, 10)]])
    const before = book.take(0, 'k', 10)
    book.replace([['a', make(kind, 20)]])
    book.ledger.reset(0, 'k')
    expect([book.left(0), book.keys]).toEqual([20, 0])
    book.replace([['a', make(kind, 10)]])
    book.take(0, 'k', 10)
    expect(book.refund(before)).toBe(0)
  })
})

describe('replacing policies', () => {
  test('decisions carry the policy that was asked last', () => {
    const book = new Book([['a', tokenBucket({ limit: 10, window: '1m' })]])
    const before = book.take(0, 'k', 1)
    book.replace([['a', tokenBucket({ limit: 10, window: '1m' })]])
    const after = book.take(0, 'k', 1)
    expect(after.source).not.toBe(before.source)
    expect(after.remaining).toBe(8)
  })

  test('holders release permits from before, under other numbers too', () => {
    const book = new Book([['a', concurrency({ limit: 2, permitTtl: '30s' })]])
    const [first, second] = [book.take(0, 'k', 1), book.take(0, 'k', 1)]
    book.replace([['a', concurrency({ limit: 3, permitTtl: '1h' })]])
    first.release()
    expect(book.left(0)).toBe(2)
    book.take(0, 'k', 2)
    expect(book.left(0)).toBe(0)
    second.release()
    expect(book.left(0)).toBe(1)
  })

  test('another algorithm of the same numbers is another rule', () => {
    const book = new Book([['a', slidingLog({ limit: 10, window: '1h' })]])
    book.take(0, 'k', 4)
    book.replace([['a', slidingCounter({ limit: 10, window: '1h' })]])
    expect(book.take(0, 'k', 1)).toMatchObject({ allowed: true, remaining: 5 })
    expect(book.take(0, 'l', 1).source.rule.algorithm).toBe('sliding-counter')
  })

  test('the only policy, asked the short way, is the new one', () => {
    const book = new Book([['a', fixedWindow({ limit: 5, window: '1h' })]])
    book.ledger.applyOne('k', 4, 0, true)
    book.replace([['a', fixedWindow({ limit: 7, window: '1h' })]])
    expect(book.ledger.applyOne('k', 1, 0, false).remaining).toBe(3)
    expect(book.ledger.applyOne('k', 3, 0, true)).toMatchObject({ allowed: true, remaining: 0 })
    expect(book.ledger.apply(['k'], 1, 0, true)).toMatchObject({ allowed: false, limit: 7 })
    expect(book.keys).toBe(1)
  })

  test('one of two equal variants that goes leaves its states to the other', () => {
    const rule = () => fixedWindow({ limit: 5, window: '1h' })
    const book = new Book([
      ['a', rule()],
      ['a', rule()],
    ])
    book.take(0, 'k', 1)
    book.take(1, 'l', 2)
    book.replace([['a', rule()]])
    expect([book.left(0), book.left(0, 0, 'l')]).toEqual([4, 3])
    expect(book.take(0, 'l', 1).remaining).toBe(2)
    expect(book.keys).toBe(2)
  })

  test('many reloads leave no more tables than hold keys', () => {
    const book = new Book([['a', fixedWindow({ limit: 1, window: '1h' })]])
    for (let limit = 2; limit < 50; limit++) {
      book.take(0, 'k', 1)
      book.take(0, `k${limit}`, 1)
      book.replace([
        ['a', fixedWindow({ limit, window: '1h' })],
        [`b${limit}`, slidingCounter({ limit, window: '1h' })],
      ])
      book.take(1, 'k', 1)
    }
    // Each reload left one key behind that did not come again.
    expect(book.ledger.tables.length).toBeLessThanOrEqual(52)
    for (let limit = 2; limit < 50; limit++) book.take(0, `k${limit}`, 1)
    book.take(0, 'k', 1)
    book.replace([['a', fixedWindow({ limit: 60, window: '1h' })]])
    expect(book.ledger.tables).toHaveLength(2)
    expect([book.left(0, 0, 'k7'), book.keys]).toEqual([58, 49])
  })

  test('the bound counts and reaches tables that are not asked any more', () => {
    const book = new Book([['a', fixedWindow({ limit: 5, window: '1h' })]], { maxKeys: 40, seed: 3 })
    for (let index = 0; index < 40; index++) book.take(0, `old ${index}`, 1)
    book.replace([['a', fixedWindow({ limit: 6, window: '1h' })]])
    for (let index = 0; index < 400; index++) {
      book.take(0, `new ${index}`, 3)
      expect(book.keys).toBeLessThanOrEqual(40)
    }
    expect(book.evicted.filter(({ key }) => key.startsWith('old'))).toHaveLength(40)
  })

  describe('in time', () => {
    beforeEach(() => vi.useFakeTimers())
    afterEach(() => vi.useRealTimers())

    test('the sweep empties tables that are not asked any more, and they are dropped', () => {
      const book = new Book([['a', fixedWindow({ limit: 5, window: '10s' })]])
      for (let index = 0; index < 500; index++) book.ledger.applyOne(`k${index}`, 1, undefined, true)
      book.replace([['a', tokenBucket({ limit: 5, window: '1h' })]])
      for (let index = 0; index < 10; index++) book.ledger.applyOne(`k${index}`, 1, undefined, true)
      expect(book.ledger.tables).toHaveLength(3)
      vi.advanceTimersByTime(120_000)
      expect(book.ledger.tables).toHaveLength(1)
      expect(book.keys).toBe(10)
    })
  })
})
