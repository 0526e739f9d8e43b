import {
  concurrency,
  createLimiter,
  type Decision,
  type Events,
  fixedWindow,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expect, test } from 'vitest'

const ten = { limit: 10, window: '1m' } as const

describe('decision', () => {
  test('is emitted once for every take and tryTake, admitted or refused, with the decision itself', () => {
    const seen: Decision[] = []
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1m' }), {
      on: { decision: ({ decision }) => seen.push(decision) },
    })
    const decisions = [limiter.take('k', { now: 0 }), limiter.take('k', { now: 0 }), limiter.tryTake('k', { now: 0 })]
    limiter.block('k', '1h')
    decisions.push(limiter.take('k', { now: 0 }))
    expect(seen).toEqual(decisions)
    expect(seen.map(({ reason }) => reason)).toEqual(['ok', 'limited', 'limited', 'blocked'])
  })

  test('is not emitted by peek, refund, release, reset and errors', () => {
    const seen: unknown[] = []
    const limiter = createLimiter(fixedWindow(ten))
    const decision = limiter.take('k', { now: 0 })
    limiter.on('decision', (event) => seen.push(event))
    limiter.peek('k', { now: 0 })
    limiter.refund(decision)
    limiter.release(decision)
    limiter.reset('k')
    expect(() => limiter.take('k', { cost: 0 })).toThrow('cost')
    expect(seen).toEqual([])
  })
})

describe('nearLimit', () => {
  test('is emitted for admitted requests from exactly 80 % used on', () => {
    const seen: Events['nearLimit'][] = []
    const limiter = createLimiter(fixedWindow(ten), { name: 'api', on: { nearLimit: (event) => seen.push(event) } })
    const decisions = Array.from({ length: 12 }, () => limiter.take('k', { now: 0 }))
    expect(seen.map(({ usedShare }) => usedShare)).toEqual([0.8, 0.9, 1])
    expect(seen.map(({ policy }) => policy)).toEqual(['api', 'api', 'api'])
    expect(seen.map(({ decision }) => decision)).toEqual(decisions.slice(7, 10))
  })

  test('names each policy of a stack that is near its own limit', () => {
    const seen: [string, number][] = []
    const limiter = createLimiter(
      {
        user: fixedWindow({ limit: 5, window: '1m' }),
        tenant: fixedWindow(ten),
        day: quota({ limit: 100, period: 'day' }),
      },
      { on: { nearLimit: ({ policy, usedShare }) => seen.push([policy, usedShare]) } },
    )
    limiter.take({ user: 'a', tenant: 't', day: 't' }, { now: 0, cost: 3 })
    expect(seen).toEqual([])
    limiter.take({ user: 'b', tenant: 't', day: 't' }, { now: 0, cost: 5 })
    expect(seen).toEqual([
      ['user', 1],
      ['tenant', 0.8],
    ])
  })
})

describe('clock.step', () => {
  const steps: Record<string, { rule: Rule; now: number }> = {
    fixedWindow: { rule: fixedWindow(ten), now: 600_000 },
    'fixedWindow first': { rule: fixedWindow({ ...ten, anchor: 'first' }), now: 600_000 },
    slidingLog: { rule: slidingLog(ten), now: 600_000 },
    slidingCounter: { rule: slidingCounter(ten), now: 600_000 },
    tokenBucket: { rule: tokenBucket(ten), now: 600_000 },
    concurrency: { rule: concurrency({ limit: 10, permitTtl: '1m' }), now: 600_000 },
    quota: { rule: quota({ limit: 10, period: 'day' }), now: 86_400_000 },
  }

  test.each(Object.entries(steps))(
    '%s: a state more than 60 s ahead is moved back, keeps its count, and is reported',
    (_, { rule, now }) => {
      const seen: Events['clock.step'][] = []
      const limiter = createLimiter(rule, { on: { 'clock.step': (event) => seen.push(event) } })
      limiter.take('k', { now, cost: 4 })
      expect(limiter.take('k', { now: now - 60_000 }).remaining).toBe(5)
      expect(seen).toEqual([])
      expect(limiter.take('k', { now: now - 60_000.001 }).remaining).toBe(4)
      expect(seen).toEqual([{ stepMs: 60_000.001, source: 'state' }])
      expect(limiter.take('k', { now: now - 60_000.001, cost: 4 }).remaining).toBe(0)
      expect(limiter.take('k', { now: now - 60_000.001 }).allowed).toBe(false)
      expect(seen.length).toBe(1)
    },
  )

  test('is reported by a refusal too, and then not again', () => {
    const seen: number[] = []
    const limiter = createLimiter(tokenBucket(ten), { on: { 'clock.step': ({ stepMs }) => seen.push(stepMs) } })
    limiter.take('k', { now: 1_000_000, cost: 10 })
    const refused = limiter.take('k', { now: 0 })
    expect(refused).toMatchObject({ allowed: false, retryAfterMs: 6_000 })
    expect(limiter.take('k', { now: 5_999.999 }).allowed).toBe(false)
    expect(limiter.take('k', { now: 6_000 }).allowed).toBe(true)
    expect(seen).toEqual([1_000_000])
  })
})

describe('listeners', () => {
  test('given as an option and added later both hear, until they are stopped', () => {
    const heard: string[] = []
    const limiter = createLimiter(fixedWindow(ten), { on: { decision: () => heard.push('option') } })
    const stop = limiter.on('decision', () => heard.push('later'))
    limiter.take('k')
    stop()
    limiter.take('k')
    expect(heard).toEqual(['option', 'later', 'option'])
  })

  test('after close nothing is heard', () => {
    const heard: unknown[] = []
    const limiter = createLimiter(fixedWindow(ten), { on: { decision: (event) => heard.push(event) } })
    limiter.close()
    expect(() => limiter.take('k')).toThrow('closed')
    expect(heard).toEqual([])
  })

  test('a listener that throws throws into the call, after the charge was taken', () => {
    const limiter = createLimiter(fixedWindow(ten))
    const stop = limiter.on('decision', () => {
      throw new Error('listener failed')
    })
    expect(() => limiter.take('k', { now: 0 })).toThrow('listener failed')
    stop()
    expect(limiter.peek('k', { now: 0 }).remaining).toBe(9)
  })
})
