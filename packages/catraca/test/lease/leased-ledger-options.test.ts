import {
  concurrency,
  createLimiter,
  type ErrorCode,
  leakyQueue,
  memoryStore,
  quota,
  type Rule,
  tokenBucket,
} from 'catraca'
import { describe, expect, test } from 'vitest'
import { leaseTerms } from '../../src/stores/lease/options.ts'
import { expectFailure } from '../contract/failure.ts'
import { FaultyStore } from '../failure/faulty-store.ts'
import { times } from '../redis/support.ts'
import { frozen, hundred, Process } from './setup.ts'

frozen()

function limiterOf(rule: Rule, lease: unknown): unknown {
  return createLimiter(rule, { name: 'api', store: new FaultyStore(), lease: lease as never })
}

describe('a lease is refused', () => {
  test.each([
    ['quota', quota({ limit: 10, period: 'day' }), 'billed'],
    ['concurrency', concurrency({ limit: 10 }), 'permits'],
    ['leakyQueue', leakyQueue({ limit: 10, window: '1s', capacity: 10 }), 'queue'],
  ] as const)('by %s', (_, rule, why) => {
    expectFailure(() => limiterOf(rule, { block: 5 }), {
      code: 'CATRACA_LEASE_REFUSED',
      path: 'options.lease',
      says: [why, 'leave it out'],
    })
  })

  test('by a stack that has one of them', () => {
    const rules = { rate: hundred, daily: quota({ limit: 10, period: 'day' }) }
    expectFailure(() => createLimiter(rules, { name: 'api', store: new FaultyStore(), lease: { block: 5 } }), {
      code: 'CATRACA_LEASE_REFUSED',
      path: 'options.lease',
      says: ['billed'],
    })
  })

  test('by a policy that must be exact', () => {
    expectFailure(() => leaseTerms(hundred, { block: 5 }, 'lease', true), {
      code: 'CATRACA_LEASE_REFUSED',
      path: 'lease',
      says: ['exact: true'],
    })
  })
})

describe('wrong options', () => {
  const rows: readonly (readonly [value: unknown, path: string, says: readonly string[], code?: ErrorCode])[] = [
    [{}, 'options.lease.block', ['1', '1000000']],
    [{ block: 0 }, 'options.lease.block', ['0', '1', '1000000']],
    [{ block: 1.5 }, 'options.lease.block', ['1.5']],
    [{ block: -1 }, 'options.lease.block', ['-1']],
    [{ block: Number.NaN }, 'options.lease.block', ['NaN']],
    [{ block: 1_000_001 }, 'options.lease.block', ['1000001']],
    [{ block: '20' }, 'options.lease.block', ['"20"']],
    [{ block: 20, ttl: '1ms' }, 'options.lease.ttl', ['"1ms"', '100ms to 1h']],
    [{ block: 20, ttl: 99 }, 'options.lease.ttl', ['99', '100ms to 1h']],
    [{ block: 20, ttl: '2h' }, 'options.lease.ttl', ['"2h"', '100ms to 1h']],
    [{ block: 20, ttl: 'soon' }, 'options.lease.ttl', ['"soon"'], 'CATRACA_DURATION_INVALID'],
    [{ block: 20, ttl: -1 }, 'options.lease.ttl', ['-1'], 'CATRACA_DURATION_INVALID'],
    [{ block: 20, size: 3 }, 'options.lease.size', ['block', 'ttl'], 'CATRACA_OPTION_UNKNOWN'],
    [20, 'options.lease', ['20']],
    [null, 'options.lease', ['null']],
    ['20', 'options.lease', ['"20"']],
  ]
  const cases = rows.map(([value, path, says, code = 'CATRACA_OPTION_INVALID']) => [value, path, says, code] as const)

  test.each(cases)('%j', (value, path, says, code) => {
    const error = expectFailure(() => limiterOf(hundred, value), { code, path, says })
    expect(error.message.length).toBeLessThan(300)
  })

  test('the edges are taken', () => {
    const ends = [
      { block: 1, ttl: '100ms' },
      { block: 1_000_000, ttl: '1h' },
      { block: 5, ttl: 250 },
    ]
    expect(ends.map((lease) => leaseTerms(hundred, lease, 'lease'))).toEqual([
      { block: 1, ttlUs: 100_000 },
      { block: 1_000_000, ttlUs: 3_600_000_000 },
      { block: 5, ttlUs: 250_000 },
    ])
    expect(leaseTerms(hundred, { block: 5 }, 'lease')).toEqual({ block: 5, ttlUs: 10_000_000 })
  })

  test('a memory store has nothing to lease from', () => {
    const options = { name: 'api', store: memoryStore(), lease: { block: 5 } }
    expectFailure(() => createLimiter(hundred, options as never), {
      code: 'CATRACA_OPTION_INVALID',
      path: 'options.lease',
      says: ['remote store'],
    })
  })
})

test('a limiter without a lease asks each time, as before', async () => {
  const { limiter, store } = new Process(tokenBucket({ limit: 30, window: '1h' }), undefined)
  for (let request = 0; request < 20; request++) {
    expect(limiter.tryTake('k')).toBeUndefined()
    expect(await limiter.take('k')).toMatchObject({ allowed: true, remaining: 29 - request })
  }
  const answers = await Promise.all(times(20, () => limiter.take('k')))
  expect(answers.filter(({ allowed }) => allowed).length).toBe(10)
  expect(store.sent).toEqual(times(40, () => 'apply'))
  expect(store.asked).toEqual([])
})
