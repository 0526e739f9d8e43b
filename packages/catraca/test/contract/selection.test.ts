import { concurrency, fixedWindow, slidingLog, tokenBucket } from 'catraca'
import { describe, expect, test, vi } from 'vitest'
import { kindNames, make } from './kinds.ts'
import { Book } from './ledger.ts'

const pairs = kindNames.flatMap((first) => kindNames.map((second) => [first, second] as const))

describe.each(pairs)('a selection of %s and %s', (outer, inner) => {
  const book = () =>
    new Book([
      ['outer', make(outer, 10)],
      ['unasked', make(inner, 1)],
      ['inner', make(inner, 4)],
    ])

  test('charges each member its own cost, and no other policy', () => {
    const one = book()
    const decision = one.takeAll({ 0: 5, 2: 1 })
    expect(decision).toMatchObject({ allowed: true, reason: 'ok' })
    expect(decision.stack.map(({ policy, cost, charged, remaining }) => [policy, cost, charged, remaining])).toEqual([
      ['outer', 5, 5, 5],
      ['inner', 1, 1, 3],
    ])
    expect([0, 1, 2].map((member) => one.left(member))).toEqual([5, 1, 3])
    expect(decision.policies.map(({ policy }) => policy)).toEqual(['outer', 'inner'])
  })

  test('charges none where one refuses', () => {
    const one = book()
    one.takeAll({ 0: 2, 2: 2 })
    const refused = one.takeAll({ 0: 1, 2: 3 })
    expect(refused).toMatchObject({ allowed: false, policy: 'inner', charged: 0, receipt: '' })
    expect(refused.stack.map(({ allowed, charged }) => [allowed, charged])).toEqual([
      [true, 0],
      [false, 0],
    ])
    expect([one.left(0), one.left(2)]).toEqual([8, 2])
    // The order in which members are given is theirs.
    const reversed = one.ledger.applySome([2, 0], ['k', 'k'], [1, 9], 0, true)
    expect(reversed.stack.map(({ policy, allowed }) => [policy, allowed])).toEqual([
      ['inner', true],
      ['outer', false],
    ])
    expect([one.left(0), one.left(2)]).toEqual([8, 2])
  })

  test('a cost above the capacity of one is impossible there, and only there', () => {
    const one = book()
    const refused = one.takeAll({ 0: 10, 2: 5 })
    expect(refused).toMatchObject({ allowed: false, reason: 'impossible', policy: 'inner', retryAfterMs: Infinity })
    expect(refused.stack.map(({ reason }) => reason)).toEqual(['ok', 'impossible'])
    expect([one.left(0), one.left(2), one.keys]).toEqual([10, 4, 0])
  })

  test('gives back what each was charged, a part or all, and no more', () => {
    const one = book()
    const [first, second] = one.takeAll({ 0: 5, 2: 3 }).stack as [never, never]
    expect([one.refund(first, 2), one.refund(second, 100)]).toEqual([2, 3])
    expect([one.left(0), one.left(2)]).toEqual([7, 4])
  })

  test('gives back no more than a member was charged, though others used more', () => {
    const one = book()
    const own = one.takeAll({ 0: 2, 2: 1 }).stack
    if (outer === 'leakyQueue' || inner === 'leakyQueue') return
    one.takeAll({ 0: 4, 2: 2 })
    expect(own.map((part) => one.refund(part, 100))).toEqual([2, 1])
    expect([one.left(0), one.left(2)]).toEqual([6, 2])
  })

  test('peeking counts nothing and adds no key', () => {
    const one = book()
    const seen = one.ledger.applySome([0, 2], ['k', 'k'], [10, 4], 0, false)
    expect(seen).toMatchObject({ allowed: true, charged: 0 })
    expect(seen.stack.map(({ remaining, charged }) => [remaining, charged])).toEqual([
      [10, 0],
      [4, 0],
    ])
    expect(one.keys).toBe(0)
  })

  test('what a refused one did not charge is not given back', () => {
    const one = book()
    one.takeAll({ 0: 5, 2: 4 })
    for (const part of one.takeAll({ 0: 3, 2: 1 }).stack) expect(one.refund(part)).toBe(0)
    expect([one.left(0), one.left(2)]).toEqual([5, 0])
  })
})

describe('a selection', () => {
  test('of one member is the decision of that member, charged or not', () => {
    const book = new Book([
      ['a', tokenBucket({ limit: 10, window: '1m' })],
      ['b', slidingLog({ limit: 5, window: '1m' })],
    ])
    for (const member of [0, 1]) {
      const taken = book.take(member, 'k', 2)
      expect(taken.stack).toEqual([taken])
      expect(taken).toMatchObject({ policy: 'ab'[member], cost: 2, charged: 2 })
      const seen = book.peek(member, 'k')
      expect(seen.stack).toEqual([seen])
      expect(seen.charged).toBe(0)
    }
  })

  test('permits are released by the member that holds them, each once', () => {
    const book = new Book([
      ['rate', fixedWindow({ limit: 9, window: '1h' })],
      ['busy', concurrency({ limit: 5 })],
    ])
    const held = [book.takeAll({ 0: 1, 1: 3 }), book.takeAll({ 0: 2, 1: 2 })]
    expect(book.takeAll({ 0: 1, 1: 1 })).toMatchObject({ allowed: false, reason: 'concurrency', policy: 'busy' })
    held[0]?.stack[1]?.release()
    held[0]?.stack[1]?.release()
    expect([book.left(0), book.left(1)]).toEqual([6, 3])
    held[1]?.stack[1]?.release()
    expect([book.left(0), book.left(1)]).toEqual([6, 5])
  })

  test('reads the clock once for all members', () => {
    vi.useFakeTimers({ now: 1_000 })
    try {
      const book = new Book([
        ['a', fixedWindow({ limit: 9, window: '1h' })],
        ['b', slidingLog({ limit: 9, window: '1h' })],
      ])
      const decision = book.ledger.applySome([0, 1], ['k', 'k'], [1, 2], undefined, true)
      expect(decision.stack.map(({ nowUs }) => nowUs)).toEqual([1e6, 1e6])
    } finally {
      vi.useRealTimers()
    }
  })

  test.each(kindNames)('a clock that was far ahead is noticed in each member, and counts are kept: %s', (kind) => {
    const book = new Book([
      ['a', make(kind, 10)],
      ['b', make('tokenBucket', 10)],
      ['c', make(kind, 3)],
    ])
    const day = 86_400
    book.takeAll({ 0: 4, 1: 4, 2: 3 }, 10 * day)
    const refused = book.takeAll({ 0: 1, 1: 1, 2: 1 }, 5)
    expect(refused.stack.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 6],
      [true, 6],
      [false, 0],
    ])
    expect(book.rebasedMs).toHaveLength(3)
    expect(book.takeAll({ 0: 1, 1: 1, 2: 1 }, 5).allowed).toBe(false)
    expect(book.rebasedMs).toHaveLength(3)
    expect([0, 1, 2].map((member) => book.left(member, 5))).toEqual([6, 6, 0])
  })

  test.each(kindNames)('a key that makes room for one member may move the state of another: %s', (kind) => {
    const book = new Book(
      [
        ['a', make(kind, 9)],
        ['b', make('fixedWindow', 9)],
      ],
      { maxKeys: 3, seed: 1 },
    )
    book.take(1, 'little', 1)
    book.take(1, 'much', 8)
    book.take(1, 'k', 3)
    // The first member's key is new and displaces `little`, so that of the second takes another place.
    expect(book.takeAll({ 0: 1, 1: 2 }).stack.map(({ remaining }) => remaining)).toEqual([8, 4])
    expect(book.evicted.map(({ key }) => key)).toEqual(['little'])
    expect([book.left(1), book.left(1, 0, 'much'), book.left(1, 0, 'little')]).toEqual([4, 1, 9])
  })

  test('a reset of one policy leaves the others', () => {
    const book = new Book([
      ['a', make('fixedWindow', 9)],
      ['b', make('fixedWindow', 9)],
    ])
    book.takeAll({ 0: 1, 1: 2 })
    book.ledger.reset(0, 'k')
    expect([book.left(0), book.left(1)]).toEqual([9, 7])
  })

  test('a listener may ask the next question while one is under way', () => {
    const rule = fixedWindow({ limit: 5, window: '1h' })
    const book = new Book(
      [
        ['a', rule],
        ['b', rule],
        ['c', rule],
      ],
      { maxKeys: 3, seed: 1 },
    )
    let deeper = 0
    book.onEvicted = () => {
      if (deeper++ < 2) book.takeAll({ 0: 2, 1: 2, 2: 2 }, 0, `listener ${deeper}`)
    }
    for (let index = 0; index < 20; index++) {
      const decision = book.takeAll({ 0: 1, 1: 2, 2: 3 }, 0, `k${index}`)
      expect(decision.stack.map(({ key, cost, remaining }) => [key, cost, remaining])).toEqual([
        [`k${index}`, 1, 4],
        [`k${index}`, 2, 3],
        [`k${index}`, 3, 2],
      ])
      if (index % 5 === 0) deeper = 0
    }
    // The last one's keys are all there, or were given up for one another.
    expect(book.keys).toBeLessThanOrEqual(3)
  })

  test('a listener that asks for the very key that came does not make it two', () => {
    const rule = fixedWindow({ limit: 5, window: '1h' })
    const book = new Book([['a', rule]], { maxKeys: 2_000, seed: 1 })
    for (let index = 0; index < 2_000; index++) book.take(0, `k${index}`, 1)
    let asked = false
    book.onEvicted = () => {
      if (asked) return
      asked = true
      book.take(0, 'new', 2)
    }
    expect(book.take(0, 'new', 1).remaining).toBe(2)
    expect(book.left(0, 0, 'new')).toBe(2)
    expect(book.keys).toBeLessThanOrEqual(2_000)
  })
})
