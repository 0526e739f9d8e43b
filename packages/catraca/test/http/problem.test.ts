import { concurrency, createLimiter, type Decision, quota, type Rule, slidingCounter, tokenBucket } from 'catraca'
import { describe, expect, test } from 'vitest'
import type * as DecisionModule from '../../src/core/decision.ts'
import type * as ReasonModule from '../../src/core/reason.ts'
import type * as ProblemModule from '../../src/http/problem.ts'

/** A literal path into another project is an error of the compiler. */
const [decisionFile, reasonFile, problemFile] = ['core/decision', 'core/reason', 'http/problem'].map(
  (file) => new URL(`../../src/${file}.ts`, import.meta.url).href,
) as [string, string, string]
const { Decision: MadeDecision } = (await import(decisionFile)) as typeof DecisionModule
const { reasonCode, reasons } = (await import(reasonFile)) as typeof ReasonModule
const { refusalProblem } = (await import(problemFile)) as typeof ProblemModule

const types = 'https://iana.org/assignments/http-problem-types#'
const bucket = tokenBucket({ limit: 600, window: '1m', burst: 90 })

function refused(rule: Rule, used: number, cost: number): Decision {
  const limiter = createLimiter(rule, { name: 'per-client' })
  if (used > 0) limiter.take('key', { cost: used, now: 0 })
  return limiter.take('key', { cost, now: 0 })
}

/** A decision for a reason that no limiter in memory gives. */
function forReason(reason: ReasonModule.Reason): Decision {
  const source = { name: 'per-client', rule: bucket, issuer: { release: () => {} } }
  return new MadeDecision(source, 'key', reasonCode(reason), 0, 1, 0, 0, 0, 0, 3_000_000)
}

describe('the problem document of a refusal', () => {
  test('acceptance 122: 429 with type, title and status, and what is needed to come back', () => {
    const problem = refusalProblem({ decision: refused(bucket, 90, 1), policies: ['per-client'], retryAfterMs: 2_345 })
    expect(problem).toEqual({
      type: `${types}quota-exceeded`,
      title: 'Too many requests',
      status: 429,
      detail: 'The limit is 600 per minute, bursts of up to 90. Try again in 3 s.',
      'violated-policies': ['per-client'],
      limit: 600,
      windowSeconds: 60,
      retryAfterSeconds: 3,
      retryAfterMs: 2_345,
    })
    expect(JSON.parse(JSON.stringify(problem))).toEqual(problem)
  })

  test('what the caller can do instead is a member, and named in the detail', () => {
    const decision = refused(bucket, 90, 1)
    const advice = { batch: 'POST /v1/lotes/importar' }
    const problem = refusalProblem({ decision, policies: ['a', 'b'], retryAfterMs: 2_345, advice })
    expect(problem.detail).toMatch(/ Try again in 3 s, or use batch: POST \/v1\/lotes\/importar\.$/)
    expect(problem).toMatchObject({ advice, 'violated-policies': ['a', 'b'] })
    const more = { ...advice, cache: 'GET /v1/cache' }
    expect(refusalProblem({ decision, policies: ['a'], retryAfterMs: 10, advice: more }).detail).toMatch(
      / Try again in 1 s, or use batch: POST \/v1\/lotes\/importar, or cache: GET \/v1\/cache\.$/,
    )
    expect(refusalProblem({ decision, policies: ['a'], retryAfterMs: 10, advice: {} })).not.toHaveProperty('advice')
  })

  test('a cost that never fits has no time to come back, and says so', () => {
    const decision = refused(bucket, 0, 91)
    for (const retryAfterMs of [Infinity, Number.MAX_SAFE_INTEGER]) {
      const problem = refusalProblem({ decision, policies: ['per-client'], retryAfterMs, advice: { batch: 'POST /b' } })
      expect(problem).toMatchObject({ status: 429, type: `${types}quota-exceeded`, limit: 600 })
      expect(problem).not.toHaveProperty('retryAfterSeconds')
      expect(problem).not.toHaveProperty('retryAfterMs')
      expect(problem.detail).toBe(
        'The limit is 600 per minute, bursts of up to 90. A request of 91 units never fits: at most 90 pass at once. Use batch: POST /b.',
      )
    }
  })

  test('a wait without end is not told as one', () => {
    const problem = refusalProblem({ decision: forReason('blocked'), policies: ['p'], retryAfterMs: Infinity })
    expect(problem).toMatchObject({ status: 429, detail: 'Requests from here are blocked.' })
    expect(problem).not.toHaveProperty('retryAfterMs')
  })

  test.each<[Rule, number | undefined, number]>([
    [slidingCounter({ limit: 5, window: '15m' }), 900, 5],
    [slidingCounter({ limit: 5, window: '250ms' }), 0.25, 5],
    [quota({ limit: 7, period: 'day' }), undefined, 7],
    [concurrency({ limit: 3 }), undefined, 3],
  ])('a window is told where the rule has one: %o', (rule, windowSeconds, limit) => {
    const problem = refusalProblem({ decision: refused(rule, limit, 1), policies: ['p'], retryAfterMs: 10 })
    expect(problem).toMatchObject({ status: 429, limit })
    expect(problem.windowSeconds).toBe(windowSeconds)
    expect('windowSeconds' in problem).toBe(windowSeconds !== undefined)
  })

  const kinds: Record<ReasonModule.DenialReason, [status: number, type: string]> = {
    limited: [429, 'quota-exceeded'],
    impossible: [429, 'quota-exceeded'],
    blocked: [429, 'abnormal-usage-detected'],
    concurrency: [429, 'quota-exceeded'],
    quota: [429, 'quota-exceeded'],
    'queue-full': [503, 'temporary-reduced-capacity'],
    ceiling: [503, 'temporary-reduced-capacity'],
    'store-closed': [503, 'temporary-reduced-capacity'],
    aborted: [429, 'quota-exceeded'],
  }

  test.each(reasons.filter((reason) => reason !== 'ok'))('acceptance 122: the status and type of %s', (reason) => {
    const [status, type] = kinds[reason]
    const problem = refusalProblem({ decision: forReason(reason), policies: ['p'], retryAfterMs: 3_300 })
    expect(problem).toMatchObject({ status, type: types + type, 'violated-policies': ['p'] })
    expect(problem.title).toBe(status === 429 ? 'Too many requests' : 'Service at capacity')
    if (reason !== 'impossible') expect(problem.detail).toMatch(/^\S.*\. Try again in 4 s\.$/)
  })

  test('a limit of all callers together answers 503 and does not tell its figures', () => {
    const problem = refusalProblem({
      decision: refused(bucket, 90, 1),
      policies: ['whole'],
      retryAfterMs: 2_000,
      status: 503,
    })
    expect(problem).toEqual({
      type: `${types}temporary-reduced-capacity`,
      title: 'Service at capacity',
      status: 503,
      detail: 'All callers together ask for more than the service can take. Try again in 2 s.',
      'violated-policies': ['whole'],
      retryAfterSeconds: 2,
      retryAfterMs: 2_000,
    })
  })
})
