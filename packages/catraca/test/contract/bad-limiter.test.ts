import { createLimiter, fixedWindow, memoryStore } from 'catraca'
import { describe, expect, test } from 'vitest'
import { expectFailure } from './failure.ts'

const wrong = (value: unknown) => value as never
const rule = () => fixedWindow({ limit: 5, window: '1m' })

describe('rules', () => {
  test.each([
    { rules: undefined, path: 'rules', says: ['is undefined'] },
    { rules: null, path: 'rules', says: ['is null'] },
    { rules: {}, path: 'rules', says: ['an object', 'at least one rule'] },
    { rules: 'tokenBucket', path: 'rules', says: ['"tokenBucket"'] },
    { rules: { a: null }, path: 'rules.a', says: ['is null', 'tokenBucket({'] },
    { rules: { a: { limit: 5, window: '1m' } }, path: 'rules.a', says: ['an object', 'tokenBucket({'] },
    { rules: { a: fixedWindow }, path: 'rules.a', says: ['a function'] },
  ])('$rules is refused', ({ rules, path, says }) => {
    expectFailure(() => createLimiter(wrong(rules)), { code: 'CATRACA_OPTION_INVALID', path, says })
  })
})

describe('names', () => {
  const names = [
    'with space',
    'quo"te',
    "quo'te",
    '9lives',
    '-a',
    'a,b',
    'a;b',
    'é',
    'a\n',
    '',
    'x'.repeat(65),
    '__proto__',
  ]

  test.each(names)('policy name %j is refused: headers could not carry it', (name) => {
    const rules = JSON.parse(`{${JSON.stringify(name)}: null}`) as Record<string, unknown>
    Object.defineProperty(rules, name, { value: rule(), enumerable: true })
    const says = ['a letter, then up to 63 letters, digits']
    expectFailure(() => createLimiter(wrong(rules)), { code: 'CATRACA_NAME_INVALID', path: `rules.${name}`, says })
  })

  test.each(names.filter((name) => name !== ''))('limiter name %j is refused', (name) => {
    const says = ['a letter, then up to 63 letters, digits']
    expectFailure(() => createLimiter(rule(), { name }), { code: 'CATRACA_NAME_INVALID', path: 'options.name', says })
  })

  test.each([null, 5, {}])('limiter name %j is refused', (name) => {
    expectFailure(() => createLimiter(rule(), { name: wrong(name) }), {
      code: 'CATRACA_NAME_INVALID',
      path: 'options.name',
      says: ['options.name is'],
    })
  })

  test('a name serves one limiter of a store at a time', () => {
    const store = memoryStore()
    const first = createLimiter(rule(), { name: 'api', store })
    const says = ['"api"', 'its own name']
    expectFailure(() => createLimiter(rule(), { name: 'api', store }), {
      code: 'CATRACA_NAME_TAKEN',
      path: 'name',
      says,
    })
    expect(() => createLimiter(rule(), { name: 'other', store })).not.toThrow()
    first.close()
    expect(() => createLimiter(rule(), { name: 'api', store })).not.toThrow()
  })

  test('a second limiter without a name on one store is refused', () => {
    const store = memoryStore()
    createLimiter(rule(), { store })
    const says = ['without a name', 'its own name']
    expectFailure(() => createLimiter(rule(), { store }), { code: 'CATRACA_NAME_TAKEN', path: 'name', says })
  })
})

describe('options', () => {
  test('an unknown option of a limiter is refused, with the one that was probably meant', () => {
    const says = ['name, store, on', 'did you mean store?']
    const call = () => createLimiter(rule(), wrong({ stor: memoryStore() }))
    expectFailure(call, { code: 'CATRACA_OPTION_UNKNOWN', path: 'options.stor', says })
  })

  test('an unknown option of a store is refused, with the one that was probably meant', () => {
    const says = ['maxKeys, seed', 'did you mean maxKeys?']
    const call = () => memoryStore(wrong({ maxkeys: 5 }))
    expectFailure(call, { code: 'CATRACA_OPTION_UNKNOWN', path: 'memoryStore.maxkeys', says })
  })

  test('options and on that are no objects are refused', () => {
    for (const value of [null, 5, 'x', []]) {
      const [options, on] = [
        () => createLimiter(rule(), wrong(value)),
        () => createLimiter(rule(), { on: wrong(value) }),
      ]
      expectFailure(options, { code: 'CATRACA_OPTION_INVALID', path: 'options', says: ['an object of options'] })
      expectFailure(on, { code: 'CATRACA_OPTION_INVALID', path: 'options.on', says: ['an object of options'] })
    }
  })

  test('an event that does not exist is refused in the option on, with the one that was probably meant', () => {
    const says = ['decision', 'did you mean decision?']
    const call = () => createLimiter(rule(), wrong({ on: { decison: () => {} } }))
    expectFailure(call, { code: 'CATRACA_OPTION_UNKNOWN', path: 'options.on.decison', says })
  })

  test('an event that does not exist is refused by limiter.on, with the one that was probably meant', () => {
    const call = () => createLimiter(rule()).on(wrong('nearlimit'), () => {})
    const error = expectFailure(call, {
      code: 'CATRACA_OPTION_UNKNOWN',
      path: 'on.nearlimit',
      says: ['did you mean nearLimit?'],
    })
    expect(error.message).toContain('evicted')
  })

  test('a listener that is no function is refused when the limiter is made, not at the first event', () => {
    const expected = { code: 'CATRACA_OPTION_INVALID', path: 'options.on.decision', says: ['a function'] } as const
    for (const value of ['x', null, {}]) {
      expectFailure(() => createLimiter(rule(), { on: { decision: wrong(value) } }), expected)
    }
  })

  test('a store that is none is refused when the limiter is made', () => {
    const expected = { code: 'CATRACA_OPTION_INVALID', path: 'options.store', says: ['memoryStore('] } as const
    for (const value of [null, {}, 'redis://', 5]) {
      expectFailure(() => createLimiter(rule(), { store: wrong(value) }), expected)
    }
  })
})
