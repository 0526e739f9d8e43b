import { type Answer, createGuard, type Guard, type GuardOptions, type Verdict } from 'catraca/http'
import type { PolicyEntry } from 'catraca/policy'
import * as fc from 'fast-check'
import { parseList } from 'structured-headers'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Asked, ask, identityOf, passing, request } from './requests.ts'

/** The start of a minute. */
const t0 = Date.UTC(2026, 9, 17, 12)
const identity = { client: 'c', user: 'u' }

function guardOf(policies: Record<string, PolicyEntry>, options: Partial<GuardOptions<Asked>> = {}): Guard<Asked> {
  return createGuard<Asked>({ policies: { version: 1, policies }, identify: identityOf, random: () => 0, ...options })
}

function fields(list: readonly string[]): Record<string, string> {
  const all: Record<string, string> = {}
  for (let at = 0; at < list.length; at += 2) {
    const name = (list[at] as string).toLowerCase()
    expect(all).not.toHaveProperty(name)
    all[name] = list[at + 1] as string
  }
  return all
}

/** A list field as an object, read by another parser. */
function items(text: string | undefined): unknown[] {
  return parseList(text ?? '').map(([value, parameters]) => ({ name: value, ...Object.fromEntries(parameters) }))
}

function problem({ body }: Answer): Record<string, unknown> {
  return JSON.parse(String(body)) as Record<string, unknown>
}

const bucket = (limit: number, window: string, burst = limit) => ({ algorithm: 'token-bucket', limit, window, burst })

describe('what a refused caller is told', () => {
  // A window full at its start: the first place comes back a twentieth into the next.
  const perUser = guardOf({
    'per-user': { per: 'user', rule: { algorithm: 'sliding-counter', limit: 20, window: '1s' } },
  })
  passing(perUser, 20, { identity, now: t0 })
  const refused = ask(perUser, { identity, now: t0 })
  const answer = perUser.answerOf(refused)
  const sent = fields(answer.fields)

  test('acceptance 121: the policy and that nothing is left for two seconds, as structured fields', () => {
    expect(sent['ratelimit-policy']).toBe('"per-user";q=20;w=1')
    expect(sent['ratelimit']).toBe('"per-user";r=0;t=2')
    expect(items(sent['ratelimit-policy'])).toEqual([{ name: 'per-user', q: 20, w: 1 }])
    expect(items(sent['ratelimit'])).toEqual([{ name: 'per-user', r: 0, t: 2 }])
    expect(perUser.fieldsOf(refused)).toEqual(answer.fields.slice(0, 4))
  })

  test('acceptance 122: 429, Retry-After 2, and a problem document', () => {
    expect(answer.status).toBe(429)
    expect(sent['retry-after']).toBe('2')
    expect(sent['content-type']).toBe('application/problem+json')
    expect(problem(answer)).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Too many requests',
      status: 429,
      'violated-policies': ['per-user'],
      retryAfterSeconds: 2,
    })
  })

  test('acceptance 127: no cache may store it', () => {
    expect(sent['cache-control']).toBe('no-store')
    const service = guardOf({ all: { per: 'service', rule: bucket(1, '1m') } })
    passing(service, 1, { now: t0 })
    const full = service.answerOf(ask(service, { now: t0 }))
    expect(full.status).toBe(503)
    expect(fields(full.fields)['cache-control']).toBe('no-store')
  })

  test('the advice of the policy, in words and as data', () => {
    const advice = { batch: 'POST /v1/lotes/importar' }
    const guard = guardOf({ own: { per: 'client', rule: bucket(1, '1m'), advice } })
    passing(guard, 1, { identity, now: t0 })
    const told = problem(guard.answerOf(ask(guard, { identity, now: t0 })))
    expect(told['advice']).toEqual(advice)
    expect(told['detail']).toContain('batch: POST /v1/lotes/importar')
    expect(told['detail']).toMatch(/Try again in \d+ s/)
  })

  test('a cost that never fits has no time to come back at', () => {
    const guard = guardOf({ own: { per: 'client', rule: bucket(10, '1m') } })
    const big = guard.answerOf(ask(guard, { identity, units: 11, now: t0 }))
    expect(big.status).toBe(429)
    expect(fields(big.fields)).not.toHaveProperty('retry-after')
    expect(problem(big)).not.toHaveProperty('retryAfterMs')
  })
})

describe('several policies', () => {
  const three = {
    minute: { per: 'client', rule: bucket(10, '1m') },
    hour: { per: 'client', rule: { algorithm: 'sliding-log', limit: 12, window: '1h' } },
    all: { per: 'service', rule: bucket(2, '1m') },
  }

  test('stand in one field, but for those of everybody together', () => {
    const guard = guardOf(three)
    const sent = fields(guard.fieldsOf(ask(guard, { identity, now: t0 })))
    expect(items(sent['ratelimit-policy'])).toEqual([
      { name: 'minute', q: 10, w: 60 },
      { name: 'hour', q: 12, w: 3600 },
    ])
    expect(items(sent['ratelimit'])).toEqual([
      { name: 'minute', r: 9, t: 60 },
      { name: 'hour', r: 11, t: 3600 },
    ])
  })

  test('that all refuse are all told, with the longest wait', () => {
    const guard = guardOf({
      minute: { per: 'client', rule: bucket(1, '1m') },
      hour: { per: 'client', rule: bucket(1, '1h') },
    })
    passing(guard, 1, { identity, now: t0 })
    const answer = guard.answerOf(ask(guard, { identity, now: t0 }))
    expect(items(fields(answer.fields)['ratelimit'])).toEqual([
      { name: 'hour', r: 0, t: 3600 },
      { name: 'minute', r: 0, t: 60 },
    ])
    const seconds = Number(fields(answer.fields)['retry-after'])
    expect(seconds).toBeGreaterThanOrEqual(3_960)
    expect(seconds).toBeLessThanOrEqual(3_961)
    expect(problem(answer)['violated-policies']).toEqual(['minute', 'hour'])
  })

  test('only the service is at its limit: 503 and its own type, with nothing said of its numbers', () => {
    const guard = guardOf(three)
    passing(guard, 2, { identity, now: t0 })
    const answer = guard.answerOf(ask(guard, { identity, now: t0 }))
    expect(answer.status).toBe(503)
    expect(problem(answer)).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      status: 503,
      'violated-policies': ['all'],
    })
    expect(problem(answer)).not.toHaveProperty('limit')
    expect(Number(fields(answer.fields)['retry-after'])).toBe(33)
  })

  test('the caller and the service at their limits: 429 about the caller, with the longer wait', () => {
    const guard = guardOf({
      own: { per: 'client', rule: bucket(3, '1m') },
      all: { per: 'service', rule: bucket(3, '1h') },
    })
    passing(guard, 3, { identity, now: t0 })
    const answer = guard.answerOf(ask(guard, { identity, now: t0 }))
    expect(answer.status).toBe(429)
    expect(problem(answer)).toMatchObject({ limit: 3, windowSeconds: 60, retryAfterSeconds: 1320 })
    expect(problem(answer)['detail']).toMatch(/minute/)
    expect(fields(answer.fields)['retry-after']).toBe('1320')
  })

  test('where only the service counts, an admitted caller is told nothing, in no dialect', () => {
    const guard = guardOf({ all: { per: 'service', rule: bucket(2, '1m') } }, { headers: ['ietf', 'legacy'] })
    expect(guard.fieldsOf(ask(guard, { now: t0 }))).toEqual([])
  })
})

describe('dialects', () => {
  const own = { own: { per: 'client', rule: bucket(10, '10s') }, all: { per: 'service', rule: bucket(12, '1m') } }
  const legacy = ['RateLimit-Limit', '10', 'RateLimit-Remaining', '9', 'RateLimit-Reset', '1']
  const ietf = ['RateLimit-Policy', '"own";q=10;w=10', 'RateLimit', '"own";r=9;t=10']

  test.each([
    ['legacy', 'legacy', [...legacy, 'RateLimit-Policy', '10;w=10;burst=10']],
    ['ietf', ['ietf'], ietf],
    ['both', ['ietf', 'legacy'], [...ietf, ...legacy]],
    ['none', [], []],
  ] as const)('%s', (_, headers, expected) => {
    const guard = guardOf(own, { headers })
    // The service has the smaller share left; it is no business of the caller.
    passing(guard, 10, { identity: { client: 'other' }, now: t0 })
    expect(guard.fieldsOf(ask(guard, { identity, now: t0 }))).toEqual(expected)
  })

  test('legacy counts down to the time the request passes', () => {
    const guard = guardOf({ own: { per: 'client', rule: bucket(1, '90s') } }, { headers: 'legacy' })
    passing(guard, 1, { identity, now: t0 })
    const sent = fields(guard.answerOf(ask(guard, { identity, now: t0 })).fields)
    expect(sent).toMatchObject({ 'ratelimit-limit': '1', 'ratelimit-remaining': '0', 'ratelimit-reset': '90' })
    expect(sent).not.toHaveProperty('ratelimit')
  })

  test('others are wrong', () => {
    expect(() => guardOf(own, { headers: 'x' as 'ietf' })).toThrow(
      /options.headers holds "x"; allowed: ietf, legacy, x-ratelimit, x-ratelimit-epoch, none/,
    )
  })
})

describe('Retry-After', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: t0 })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** The answer of a guard to a caller that has to wait that long, to the millisecond. */
  function told(waitMs: number, random: () => number): { seconds: number; ms: number } {
    const guard = guardOf({ own: { per: 'client', rule: bucket(1, `${waitMs}ms`) } }, { random })
    passing(guard, 1, { identity, now: t0 })
    const verdict = ask(guard, { identity, now: t0 })
    expect(verdict.decision?.retryAfterMs).toBe(waitMs)
    const answer = guard.answerOf(verdict)
    const { retryAfterMs: ms, retryAfterSeconds } = problem(answer) as Record<string, number>
    expect(fields(answer.fields)['retry-after']).toBe(String(retryAfterSeconds))
    return { seconds: Number(retryAfterSeconds), ms: Number(ms) }
  }

  test('acceptance 124: whole seconds, rounded up, at least 1; the smallest spread adds a tenth first', () => {
    const waits = [1, 100, 999, 1_000, 1_001, 29_400]
    const tenth = waits.map((wait) => told(wait, () => 0))
    expect(tenth.map(({ seconds }) => seconds)).toEqual([1, 1, 2, 2, 2, 33])
    // Before it is spread, the wait itself: what the header field says is never less.
    const plain = waits.map((wait) => Math.max(1, Math.ceil(wait / 1_000)))
    expect(plain).toEqual([1, 1, 1, 1, 2, 30])
    for (const [at, { seconds }] of tenth.entries()) expect(seconds).toBeGreaterThanOrEqual(plain[at] as number)
  })

  test('is later by 10 to 20 %, and never below the wait', () => {
    expect(told(10_000, () => 0)).toEqual({ ms: 11_000, seconds: 11 })
    expect(told(10_000, () => 0.999_999_9)).toEqual({ ms: 12_000, seconds: 12 })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 86_400_000 }),
        fc.oneof(fc.constantFrom(0, 0.999_999_999_999), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
        (wait, random) => {
          const { ms, seconds } = told(wait, () => random)
          expect(ms).toBeGreaterThanOrEqual(wait * 1.1)
          // The factor is not exact in floating point: a millisecond more at most.
          expect(ms).toBeLessThanOrEqual(Math.ceil(wait * 1.2) + 1)
          expect(seconds * 1_000).toBeGreaterThanOrEqual(ms)
          expect(seconds).toBe(Math.max(1, Math.ceil(ms / 1_000)))
        },
      ),
      { numRuns: 200 },
    )
  })

  const rules: PolicyEntry['rule'][] = [
    bucket(7, '1m', 4),
    { algorithm: 'gcra', limit: 7, window: '1m', burst: 4 },
    { algorithm: 'leaky-meter', limit: 7, window: '1m', burst: 4 },
    { algorithm: 'leaky-queue', limit: 7, window: '1m', capacity: 4 },
    { algorithm: 'fixed-window', limit: 7, window: '1m' },
    { algorithm: 'sliding-log', limit: 7, window: '1m' },
    { algorithm: 'sliding-counter', limit: 7, window: '1m' },
    { algorithm: 'quota', limit: 7, period: 'day', timeZone: 'America/Sao_Paulo' },
  ]

  test.each(rules)(
    'acceptance 125: $algorithm: who comes back then passes, and a millisecond earlier does not',
    async (rule) => {
      for (const early of [true, false]) {
        const guard = guardOf({ own: { per: 'client', rule } })
        const at = async (now: number): Promise<Verdict> => {
          const verdict = guard.ask(request({ identity, now }))
          // A queue lets the admitted start later.
          if (verdict instanceof Promise) await vi.advanceTimersByTimeAsync(600_000)
          return verdict
        }
        let now = t0 + 13_217
        let verdict = await at(now)
        for (let count = 0; count < 20 && verdict.allowed; count++) verdict = await at((now += 531))
        expect(verdict.allowed).toBe(false)
        const wait = verdict.decision?.retryAfterMs as number
        expect(wait).toBeGreaterThan(1)
        expect((await at(now + wait - (early ? 1 : 0))).allowed).toBe(!early)
        if (early) expect((await at(now + wait)).allowed).toBe(true)
      }
    },
  )
})
