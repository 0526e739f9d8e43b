import { createLimiter, type Events, fixedWindow } from 'catraca'
import { describe, expect, test } from 'vitest'

const rule = () => fixedWindow({ limit: 2, window: '1m' })
const megabyte = 'k'.repeat(1_000_000)
const short = [
  'plain',
  'a:b:c',
  'a:b',
  '"quoted"',
  "'",
  '{tag}',
  '}{',
  '😀',
  '\u0000',
  '\u0000\u0000',
  `\u0000${'0'.repeat(64)}`,
  '\ud800',
  '\udc00',
  '\ud801',
  '�',
  ' ',
  '\n',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'é',
  'e\u0301',
  'k'.repeat(128),
  'k'.repeat(129),
  `${'k'.repeat(200)}a`,
  `${'k'.repeat(200)}b`,
]
const strange = [...short, `a${megabyte}`, `${megabyte}a`, `${megabyte}b`, `${megabyte}\ud800`, `${megabyte}�`]

describe('a key is any text', () => {
  test('strange, long and similar keys are each counted on their own, and the same key again shares', () => {
    const limiter = createLimiter(rule())
    for (const key of strange) expect(limiter.take(key, { now: 0 }).remaining).toBe(1)
    for (const key of strange) expect(limiter.take(key, { now: 0 }).remaining).toBe(0)
    const copies = strange.map((key) => Buffer.from(key, 'utf16le').toString('utf16le'))
    for (const key of copies) expect(limiter.take(key, { now: 0 }).allowed).toBe(false)
  })

  test('a decision shows the key that was asked for, also where a hash of it is kept', () => {
    const limiter = createLimiter(rule())
    for (const key of short) expect(limiter.take(key, { now: 0 }).key).toBe(key)
  })

  test('reset, block and unblock find strange keys', () => {
    const limiter = createLimiter(rule())
    for (const key of short) {
      limiter.take(key, { now: 0, cost: 2 })
      limiter.block(key, '1h')
      expect(limiter.take(key, { now: 0 }).reason).toBe('blocked')
      limiter.unblock(key)
      expect(limiter.take(key, { now: 0 }).reason).toBe('limited')
      limiter.reset(key)
      expect(limiter.peek(key, { now: 0 }).remaining).toBe(2)
    }
  })
})

describe('the empty key', () => {
  test('is one ordinary key and one diagnosis, however often it comes', () => {
    const seen: Events['diagnosis'][] = []
    const limiter = createLimiter(rule(), { on: { diagnosis: (event) => seen.push(event) } })
    const allowed = [1, 2, 3].map(() => limiter.take('', { now: 0 }).allowed)
    expect(allowed).toEqual([true, true, false])
    expect(limiter.take('other', { now: 0 }).remaining).toBe(1)
    expect(seen).toEqual([
      {
        code: 'CATRACA_KEY_EMPTY',
        help: 'docs/errors/CATRACA_KEY_EMPTY.md',
        message: expect.stringContaining('empty key'),
      },
    ])
  })

  test('counts the same in a stack, with one diagnosis for all its policies', () => {
    const seen: string[] = []
    const limiter = createLimiter({ a: rule(), b: rule() }, { on: { diagnosis: ({ code }) => seen.push(code) } })
    const allowed = [1, 2, 3].map(() => limiter.take({ a: '', b: '' }, { now: 0 }).allowed)
    expect(allowed).toEqual([true, true, false])
    expect(seen).toEqual(['CATRACA_KEY_EMPTY'])
  })
})

describe('names from the prototype', () => {
  test('policies named constructor, toString and hasOwnProperty are ordinary policies', () => {
    const limiter = createLimiter({ constructor: rule(), toString: rule(), hasOwnProperty: rule() })
    const keys = { constructor: '__proto__', toString: 'constructor', hasOwnProperty: 'toString' }
    expect(limiter.take(keys, { now: 0 }).policies.map(({ policy, remaining }) => [policy, remaining])).toEqual([
      ['constructor', 1],
      ['toString', 1],
      ['hasOwnProperty', 1],
    ])
    expect(() => limiter.take({} as never)).toThrow('keys.constructor is')
    limiter.reset({ toString: 'constructor' } as never)
    expect(limiter.peek(keys, { now: 0 }).policies.map(({ remaining }) => remaining)).toEqual([1, 2, 1])
  })

  test('keys named like parts of Object.prototype are ordinary keys of a stack', () => {
    const limiter = createLimiter({ a: rule(), b: rule() })
    for (const key of ['__proto__', 'constructor', 'toString', 'valueOf']) {
      expect(limiter.take({ a: key, b: key }, { now: 0 }).policies.map(({ remaining }) => remaining)).toEqual([1, 1])
      limiter.block({ a: key }, '1m')
      expect(limiter.take({ a: key, b: key }, { now: 0 }).reason).toBe('blocked')
    }
  })
})
