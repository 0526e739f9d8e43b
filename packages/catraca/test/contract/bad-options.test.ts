import {
  concurrency,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  memoryStore,
  quota,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expect, test } from 'vitest'
import { expectFailure } from './failure.ts'

const wrong = (value: unknown) => value as never
const windowed = { fixedWindow, slidingLog, slidingCounter, tokenBucket, gcra, leakyMeter }
const limited: Record<string, (limit: unknown) => unknown> = {
  ...Object.fromEntries(
    Object.entries(windowed).map(([name, make]) => [
      name,
      (limit: unknown) => make({ limit: wrong(limit), window: '1m' }),
    ]),
  ),
  leakyQueue: (limit) => leakyQueue({ limit: wrong(limit), window: '1m', capacity: 5 }),
  quota: (limit) => quota({ limit: wrong(limit), period: 'day' }),
  concurrency: (limit) => concurrency({ limit: wrong(limit) }),
}

describe.each(Object.entries(limited))('limit of %s', (name, make) => {
  test.each([
    { limit: 0, shown: '0' },
    { limit: -1, shown: '-1' },
    { limit: 1.5, shown: '1.5' },
    { limit: Number.NaN, shown: 'NaN' },
    { limit: Number.POSITIVE_INFINITY, shown: 'Infinity' },
    { limit: 2 ** 53, shown: '9007199254740992' },
    { limit: '10', shown: '"10"' },
    { limit: null, shown: 'null' },
    { limit: undefined, shown: 'undefined' },
  ])('$shown is refused, with the range', ({ limit, shown }) => {
    const says = [`${name}.limit is ${shown}`, 'a whole number of', 'from 1 to']
    expectFailure(() => make(limit), { code: 'CATRACA_OPTION_INVALID', path: `${name}.limit`, says })
  })
})

describe.each(Object.entries(windowed))('window of %s', (name, make) => {
  test.each([
    { window: 0, shown: '0' },
    { window: -5, shown: '-5' },
    { window: 0.0004, shown: '0.0004' },
    { window: 0.0015, shown: '0.0015' },
    { window: '0.0001ms', shown: '"0.0001ms"' },
    { window: '0s', shown: '"0s"' },
    { window: '1 minute', shown: '"1 minute"' },
    { window: '-5s', shown: '"-5s"' },
    { window: '1w', shown: '"1w"' },
    { window: '1e3s', shown: '"1e3s"' },
    { window: ' 1s', shown: '" 1s"' },
    { window: '1s\n', shown: '"1s\\n"' },
    { window: '', shown: '""' },
    { window: '36501d', shown: '"36501d"' },
    { window: Number.NaN, shown: 'NaN' },
    { window: Number.POSITIVE_INFINITY, shown: 'Infinity' },
    { window: null, shown: 'null' },
    { window: ['1s'], shown: 'an array' },
  ])('$shown is refused, with examples', ({ window, shown }) => {
    const says = [`${name}.window is ${shown}`, '"250ms"', '1 µs', '36500d']
    const call = () => make({ limit: 1, window: wrong(window) })
    expectFailure(call, { code: 'CATRACA_DURATION_INVALID', path: `${name}.window`, says })
  })

  test('a missing window is named', () => {
    const says = [`${name}.window is undefined`, 'a duration']
    expectFailure(() => make(wrong({ limit: 1 })), { code: 'CATRACA_OPTION_INVALID', path: `${name}.window`, says })
  })

  test('an unknown option is refused, with the one that was probably meant', () => {
    const says = ['limit, window', 'did you mean window?']
    const call = () => make(wrong({ limit: 1, windw: '1s' }))
    expectFailure(call, { code: 'CATRACA_OPTION_UNKNOWN', path: `${name}.windw`, says })
    const far = expectFailure(() => make(wrong({ limit: 1, window: '1s', zzzzzzzz: 1 })), {
      code: 'CATRACA_OPTION_UNKNOWN',
      path: `${name}.zzzzzzzz`,
      says: ['allowed: limit, window'],
    })
    expect(far.message).not.toContain('did you mean')
  })

  test('options that are no object are refused', () => {
    for (const value of [undefined, null, 5, '1s', [1]]) {
      expectFailure(() => make(wrong(value)), {
        code: 'CATRACA_OPTION_INVALID',
        path: name,
        says: ['an object of options'],
      })
    }
  })
})

test('durations that are whole microseconds are accepted in every form', () => {
  for (const window of [0.001, 250, '0.001ms', '0.1ms', '250ms', '1.5s', '30s', '15m', '1h', '1d', '36500d'] as const) {
    expect(() => fixedWindow({ limit: 1, window })).not.toThrow()
  }
})

describe('other options', () => {
  test.each([
    {
      path: 'tokenBucket.burst',
      call: () => tokenBucket({ limit: 1, window: '1s', burst: 0 }),
      says: ['is 0', 'from 1 to'],
    },
    { path: 'gcra.burst', call: () => gcra({ limit: 1, window: '1s', burst: -1 }), says: ['is -1', 'from 1 to'] },
    { path: 'leakyMeter.burst', call: () => leakyMeter({ limit: 1, window: '1s', burst: 0.5 }), says: ['is 0.5'] },
    { path: 'leakyQueue.capacity', call: () => leakyQueue({ limit: 1, window: '1s', capacity: 0 }), says: ['is 0'] },
    {
      path: 'leakyQueue.capacity',
      call: () => leakyQueue(wrong({ limit: 1, window: '1s' })),
      says: ['is undefined', 'a whole number of places from 1 to'],
    },
    {
      path: 'fixedWindow.anchor',
      call: () => fixedWindow({ limit: 1, window: '1s', anchor: wrong('last') }),
      says: ['is "last"', '"clock", "first"'],
    },
    {
      path: 'quota.period',
      call: () => quota({ limit: 1, period: wrong('fortnight') }),
      says: ['is "fortnight"', '"day", "week", "month", "year"'],
    },
    { path: 'quota.period', call: () => quota(wrong({ limit: 1 })), says: ['is undefined', '"day"'] },
    {
      path: 'quota.timeZone',
      call: () => quota({ limit: 1, period: 'day', timeZone: 'Mars/Olympus' }),
      says: ['is "Mars/Olympus"', 'America/Sao_Paulo'],
    },
    { path: 'quota.timeZone', call: () => quota({ limit: 1, period: 'day', timeZone: '' }), says: ['is ""'] },
    {
      path: 'quota.anchor',
      call: () => quota({ limit: 1, period: 'month', anchor: '2027-02-29' }),
      says: ['is "2027-02-29"', 'a date that exists'],
    },
    {
      path: 'quota.anchor',
      call: () => quota({ limit: 1, period: 'day', anchor: '2027-01-01T24:00' }),
      says: ['T24:00'],
    },
    { path: 'memoryStore.maxKeys', call: () => memoryStore({ maxKeys: 0 }), says: ['is 0', 'keys from 1 to'] },
    { path: 'memoryStore.seed', call: () => memoryStore({ seed: -1 }), says: ['is -1', '4294967295'] },
  ])('$path: $says', ({ path, call, says }) => {
    expectFailure(call, { code: 'CATRACA_OPTION_INVALID', path, says })
  })

  test('a permitTtl of zero is refused', () => {
    const says = ['is 0', '"30s"']
    const call = () => concurrency({ limit: 1, permitTtl: 0 })
    expectFailure(call, { code: 'CATRACA_DURATION_INVALID', path: 'concurrency.permitTtl', says })
  })

  test.each([
    { name: 'tokenBucket', call: () => tokenBucket({ limit: 999_999_999_989, window: '36500d' }) },
    { name: 'slidingCounter', call: () => slidingCounter({ limit: 1_000_000_000_000, window: '36500d' }) },
    {
      name: 'tokenBucket',
      call: () => tokenBucket({ limit: 7, window: '0.013ms', burst: 1_000_000_000_000 }),
      fine: true,
    },
    { name: 'tokenBucket', call: () => tokenBucket({ limit: 1, window: '10007.000001s', burst: 1_000_000_000_000 }) },
  ])('$name: a rule that whole numbers cannot count exactly is refused when it is made', ({ name, call, fine }) => {
    if (fine) expect(call).not.toThrow()
    else expectFailure(call, { code: 'CATRACA_RULE_TOO_FINE', path: name, says: ['per', 'allowed: a smaller limit'] })
  })
})
