import { createGuard } from 'catraca/http'
import { type Finding, findingsOf, type PolicyDocument, readPolicies } from 'catraca/policy'
import { describe, expect, test } from 'vitest'
import { designDocument } from './documents.ts'
import { type Asked, ask } from './requests.ts'

const t0 = Date.UTC(2026, 9, 17, 12)

function codesOf(document: PolicyDocument, level: Finding['level'] = 'warning', authenticated = false): string[] {
  return findingsOf(readPolicies(document), { authenticated })
    .filter((finding) => finding.level === level)
    .map(({ code }) => code)
}

/** The smallest document nothing is found in, with other policies beside its own. */
function good(policies: PolicyDocument['policies'] = {}, rest: Partial<PolicyDocument> = {}): PolicyDocument {
  return {
    version: 1,
    trust: { proxies: 0 },
    defaults: { onStoreFailure: 'local' },
    policies: {
      service: { per: 'service', rule: { algorithm: 'token-bucket', limit: 1_000, window: '1s' } },
      search: {
        match: { routes: ['GET /search'] },
        per: 'address',
        rule: { algorithm: 'token-bucket', limit: 5, window: '1s' },
      },
      ...policies,
    },
    ...rest,
  }
}

describe('checks', () => {
  test('are silent on a good document and on the design’s own', () => {
    expect(codesOf(good())).toEqual([])
    expect(codesOf(designDocument)).toEqual([])
  })

  test('acceptance 29: never more than 100 in 10 s with a burst of 40 asks for 6 per second', () => {
    const rule = (limit: number) => ({ algorithm: 'token-bucket', limit, window: '1s', burst: 40 })
    const never = { limit: 100, window: '10s' } as const
    const find = (limit: number) =>
      findingsOf(readPolicies(good({ api: { per: 'address', rule: rule(limit), never } }))).filter(
        ({ code }) => code === 'CATRACA_CHECK_NEVER',
      )
    expect(find(6)).toEqual([])
    const [found] = find(10)
    expect(found?.level).toBe('warning')
    expect(found?.message).toContain('lets up to 140 pass in 10s')
    expect(found?.message).toContain('limit 60 per 10s')
    expect(find(7)).toHaveLength(1)
  })

  test('acceptance 116: prints the sum and the oversell ratio, and warns above 1 without a global limit', () => {
    const document = (pro: number, mode: 'enforce' | 'observe'): PolicyDocument =>
      good(
        {
          'per-client': {
            match: { identity: 'client' },
            per: 'client',
            rule: { algorithm: 'token-bucket', limit: 60, window: '1m', burst: 10 },
            plans: { pro: { limit: 600, burst: 90 } },
          },
          service: { per: 'service', mode, rule: { algorithm: 'token-bucket', limit: 1_000, window: '1s' } },
        },
        {
          plans: { names: ['free', 'pro'], default: 'free' },
          capacity: { limit: 1_000, window: '1s', clients: { free: 500, pro } },
        },
      )
    const find = (pro: number, mode: 'enforce' | 'observe') =>
      findingsOf(readPolicies(document(pro, mode))).find(({ code }) => code === 'CATRACA_CHECK_OVERSOLD')
    // 500 × 1 + 100 × 10 = 1,500 per second.
    expect(find(100, 'observe')).toMatchObject({ level: 'warning' })
    expect(find(100, 'observe')?.message).toContain('1500 per second, 1.5 times the capacity of 1000')
    expect(find(100, 'enforce')).toMatchObject({ level: 'note' })
    expect(find(50, 'observe')).toMatchObject({ level: 'note' })
  })

  test('acceptance 118: 16.7, 15, 15 and 25 % are usual; far from it, a written burst is noted', () => {
    const notes = (limit: number, window: '1m' | '1s', burst?: number) =>
      codesOf(
        good({ api: { per: 'address', rule: { algorithm: 'token-bucket', limit, window, ...(burst && { burst }) } } }),
        'note',
      )
    for (const [limit, burst] of [
      [60, 10],
      [600, 90],
      [6_000, 900],
      [20, 5],
    ] as const) {
      expect(notes(limit, '1m', burst)).toEqual([])
    }
    expect(notes(600, '1m', 30)).toEqual(['CATRACA_CHECK_BURST'])
    expect(notes(600, '1m', 200)).toEqual(['CATRACA_CHECK_BURST'])
    expect(notes(600, '1m')).toEqual([])
    expect(notes(10, '1s', 20)).toEqual([])
  })

  test('acceptance 174: a policy that does not say what happens without the store is warned of', () => {
    const { defaults: _, ...silent } = good()
    expect(codesOf(silent as PolicyDocument)).toEqual(['CATRACA_CHECK_STORE_FAILURE'])
    const login = (onStoreFailure?: 'closed') =>
      good({
        login: {
          match: { routes: ['POST /login'] },
          per: 'address',
          rule: { algorithm: 'sliding-counter', limit: 5, window: '15m' },
          ...(onStoreFailure && { onStoreFailure }),
        },
      })
    expect(codesOf(login())).toEqual(['CATRACA_CHECK_LOGIN_FAILURE'])
    expect(codesOf(login('closed'))).toEqual([])
  })

  test('acceptance 236: an address for verified callers, and a missing number of proxies, are warned of', () => {
    const { trust: _, ...unstated } = good()
    expect(codesOf(unstated as PolicyDocument)).toEqual(['CATRACA_CHECK_TRUST'])
    const byAddress = good({
      client: {
        match: { identity: 'client' },
        per: 'address',
        rule: { algorithm: 'token-bucket', limit: 60, window: '1m' },
      },
    })
    expect(codesOf(byAddress)).toEqual(['CATRACA_CHECK_ADDRESS_KEY'])
    expect(codesOf(good(), 'warning', true)).toEqual(['CATRACA_CHECK_ADDRESS_KEY'])
  })

  test('acceptance 237: one limit for everything, and none for all together, are warned of', () => {
    const only: PolicyDocument = {
      ...good(),
      policies: { api: { per: 'address', rule: { algorithm: 'token-bucket', limit: 60, window: '1m' } } },
    }
    expect(codesOf(only)).toEqual(['CATRACA_CHECK_NO_GLOBAL', 'CATRACA_CHECK_ONE_LIMIT'])
    const { service: _, ...perCaller } = good().policies
    expect(codesOf({ ...good(), policies: perCaller })).toEqual(['CATRACA_CHECK_NO_GLOBAL'])
  })

  test('each has its switch', () => {
    const nothing: PolicyDocument = {
      version: 1,
      policies: { api: { per: 'address', rule: { algorithm: 'token-bucket', limit: 60, window: '1m' } } },
    }
    const codes = codesOf(nothing)
    expect(codes).toHaveLength(4)
    for (const code of codes) {
      expect(codesOf({ ...nothing, checks: { [code]: 'off' } })).toEqual(codes.filter((one) => one !== code))
    }
  })

  test('a queue in which the last waits too long', () => {
    const queue = (capacity: number) =>
      good({ jobs: { per: 'address', rule: { algorithm: 'leaky-queue', limit: 1, window: '1s', capacity } } })
    expect(codesOf(queue(5))).toEqual([])
    expect(codesOf(queue(5), 'note')).toEqual(['CATRACA_CHECK_QUEUE_WAIT'])
    expect(codesOf(queue(25))).toEqual(['CATRACA_CHECK_QUEUE_WAIT'])
  })
})

describe('refusals', () => {
  const rules = [
    { algorithm: 'token-bucket', limit: 7, window: '1s', burst: 3 },
    { algorithm: 'gcra', limit: 7, window: '1s', burst: 3 },
    { algorithm: 'leaky-meter', limit: 7, window: '1s', burst: 3 },
    { algorithm: 'fixed-window', limit: 3, window: '1s' },
    { algorithm: 'sliding-counter', limit: 3, window: '1s' },
    { algorithm: 'sliding-log', limit: 3, window: '1s' },
    { algorithm: 'quota', limit: 3, period: 'day' },
  ]

  test.each(rules)('acceptance 125: $algorithm admits at the promised wait and not a millisecond before', (rule) => {
    const guard = createGuard<Asked>({ policies: good({ api: { per: 'address', rule } }) })
    let refused = ask(guard, { now: t0 })
    while (refused.allowed) refused = ask(guard, { now: t0 })
    const waitMs = refused.decision?.retryAfterMs as number
    expect(waitMs).toBeGreaterThan(1)
    expect(ask(guard, { now: t0 + waitMs - 1 }).allowed).toBe(false)
    expect(ask(guard, { now: t0 + waitMs }).allowed).toBe(true)
  })

  test('acceptance 127: no cache may keep a refusal', () => {
    const guard = createGuard<Asked>({
      policies: {
        version: 1,
        policies: {
          mine: { per: 'address', rule: { algorithm: 'token-bucket', limit: 2, window: '1d' } },
          ours: {
            match: { routes: ['/busy'] },
            per: 'service',
            rule: { algorithm: 'token-bucket', limit: 1, window: '1d' },
          },
        },
      },
    })
    const answers = [
      ask(guard, { target: '/busy', now: t0 }),
      ask(guard, { target: '/busy', now: t0 }),
      ask(guard, { now: t0 }),
      ask(guard, { now: t0 }),
    ]
      .filter(({ allowed }) => !allowed)
      .map((verdict) => guard.answerOf(verdict))
    expect(answers.map(({ status }) => status)).toEqual([503, 429])
    for (const { fields } of answers) expect(fields[fields.indexOf('Cache-Control') + 1]).toBe('no-store')
  })
})
