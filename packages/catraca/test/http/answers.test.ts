import { type CatracaError, createLimiter, type Decision, fixedWindow, type Rule, tokenBucket } from 'catraca'
import {
  type Answer,
  type AnswerOptions,
  createGuard,
  type Dialect,
  limitFieldNames,
  listFieldNames,
} from 'catraca/http'
import type { PolicyEntry } from 'catraca/policy'
import { parseList } from 'structured-headers'
import { describe, expect, test, vi } from 'vitest'
import type * as DecisionModule from '../../src/core/decision.ts'
import type * as RandomModule from '../../src/core/random.ts'
import type * as ReasonModule from '../../src/core/reason.ts'
import type * as AnswersModule from '../../src/http/answers.ts'
import { type Asked, ask, identityOf, passing } from '../guard/requests.ts'

/** A literal path into another project is an error of the compiler. */
const [answersFile, randomFile, decisionFile, reasonFile] = [
  'http/answers',
  'core/random',
  'core/decision',
  'core/reason',
].map((file) => new URL(`../../src/${file}.ts`, import.meta.url).href) as [string, string, string, string]
const { Answers } = (await import(answersFile)) as typeof AnswersModule
const { Decision: MadeDecision } = (await import(decisionFile)) as typeof DecisionModule
const { reasonCode } = (await import(reasonFile)) as typeof ReasonModule
const { seededRandom } = (await import(randomFile)) as typeof RandomModule

/** The start of a minute. */
const t0 = Date.UTC(2026, 9, 17, 12)
const identity = { client: 'c', user: 'u' }
const bucket = (limit: number, window: string, burst = limit) => ({ algorithm: 'token-bucket', limit, window, burst })

function answersOf(options: AnswerOptions = {}, diagnose?: (code: string, message: string) => void) {
  return new Answers(options, () => 0, diagnose)
}

/** The verdict on a request after `before` others. */
function verdictOf(policies: Record<string, PolicyEntry>, before = 0) {
  const guard = createGuard<Asked>({ policies: { version: 1, policies }, identify: identityOf })
  passing(guard, before, { identity, now: t0 })
  return ask(guard, { identity, now: t0 })
}

/** What counts all callers together, which none of them is told while it is admitted. */
const nobody: Record<string, PolicyEntry> = { all: { per: 'service', rule: bucket(9, '1m') } }

/** The decision on a request after `before` units were taken, half a minute into the first minute. */
function decisionOf(rule: Rule, before = 0, now = t0 + 30_000): Decision {
  const limiter = createLimiter(rule, { name: 'per-user' })
  if (before > 0) limiter.take('key', { cost: before, now })
  return limiter.take('key', { now })
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

/** A list field read by another parser. */
function items(text: string | undefined): unknown[] {
  return parseList(text ?? '').map(([value, parameters]) => ({ name: value, ...Object.fromEntries(parameters) }))
}

function json({ body }: Answer): Record<string, unknown> {
  return JSON.parse(String(body)) as Record<string, unknown>
}

const pro = tokenBucket({ limit: 600, window: '1m', burst: 90 })
const hundred = fixedWindow({ limit: 100, window: '1m' })

describe('dialects', () => {
  const legacy = ['RateLimit-Limit', '90', 'RateLimit-Remaining', '89', 'RateLimit-Reset', '1']
  const ietf = ['RateLimit-Policy', '"per-user";q=90;w=9', 'RateLimit', '"per-user";r=89;t=9']
  const x = ['X-RateLimit-Limit', '90', 'X-RateLimit-Remaining', '89', 'X-RateLimit-Reset']

  test.each<[Dialect | Dialect[], string[]]>([
    ['ietf', ietf],
    ['legacy', [...legacy, 'RateLimit-Policy', '600;w=60;burst=90']],
    ['x-ratelimit', [...x, '1']],
    ['x-ratelimit-epoch', [...x, String(t0 / 1_000 + 31)]],
    ['none', []],
    [['none'], []],
    [[], []],
    // The policy field is that of the structured fields: the two have different grammars.
    [
      ['ietf', 'legacy'],
      [...ietf, ...legacy],
    ],
    [
      ['legacy', 'ietf'],
      [...ietf, ...legacy],
    ],
    [
      ['ietf', 'x-ratelimit'],
      [...ietf, ...x, '1'],
    ],
    [
      ['legacy', 'x-ratelimit'],
      [...legacy, 'RateLimit-Policy', '600;w=60;burst=90', ...x, '1'],
    ],
    [
      ['ietf', 'legacy', 'x-ratelimit-epoch'],
      [...ietf, ...legacy, ...x, String(t0 / 1_000 + 31)],
    ],
  ])('%j', (headers, expected) => {
    expect(answersOf({ headers }).fieldsOfOne(decisionOf(pro))).toEqual(expected)
  })

  test('acceptance 120: the classic fields after one request, and the policy with its burst', () => {
    const sent = fields(answersOf({ headers: 'legacy' }).fieldsOfOne(decisionOf(pro)))
    expect(sent).toEqual({
      'ratelimit-limit': '90',
      'ratelimit-remaining': '89',
      'ratelimit-reset': '1',
      'ratelimit-policy': '600;w=60;burst=90',
    })
    expect(parseList(sent['ratelimit-policy'] as string)).toEqual([
      [
        600,
        new Map([
          ['w', 60],
          ['burst', 90],
        ]),
      ],
    ])
  })

  test('acceptance 123: a window of 100 that is used up for 30 s more: 429, 100, 0 and 30', () => {
    const refused = decisionOf(hundred, 100)
    const answer = answersOf({ headers: 'legacy' }).refusalOfOne(refused)
    expect(answer.status).toBe(429)
    expect(fields(answer.fields)).toMatchObject({
      'ratelimit-limit': '100',
      'ratelimit-remaining': '0',
      'ratelimit-reset': '30',
      'ratelimit-policy': '100;w=60',
      // 30 s, and a tenth of them so that those refused together do not come back together.
      'retry-after': '33',
    })
  })

  test.each<[string, PolicyEntry['rule'], string | undefined]>([
    ['window', { algorithm: 'fixed-window', limit: 100, window: '1m' }, '100;w=60'],
    ['window of a second and a half', { algorithm: 'sliding-log', limit: 4, window: '1.5s' }, '4;w=2'],
    ['window under a second', { algorithm: 'sliding-log', limit: 4, window: '999ms' }, undefined],
    ['bucket of a short window', bucket(1, '100ms', 50), undefined],
    ['meter', { algorithm: 'leaky-meter', limit: 2, window: '1s', burst: 7 }, '2;w=1;burst=7'],
    ['quota of a day', { algorithm: 'quota', limit: 9, period: 'day' }, '9;w=86400'],
    ['quota of a month', { algorithm: 'quota', limit: 9, period: 'month' }, undefined],
    ['concurrency', { algorithm: 'concurrency', limit: 30 }, undefined],
  ])('the older policy field of a %s', (_, rule, expected) => {
    const sent = fields(answersOf({ headers: 'legacy' }).fields(verdictOf({ own: { per: 'client', rule } })))
    expect(sent['ratelimit-policy']).toBe(expected)
    expect(sent).toHaveProperty('ratelimit-limit')
  })

  test('reset as a time is never before the request passes, and less than a second after', () => {
    for (const now of [t0, t0 + 0.001, t0 + 1, t0 + 29_999.999, t0 + 59_999.999]) {
      for (const rule of [hundred, tokenBucket({ limit: 3, window: '1s', burst: 3 })]) {
        const refused = decisionOf(rule, rule.limit, now)
        const sent = fields(answersOf({ headers: 'x-ratelimit-epoch' }).fieldsOfOne(refused))
        const early = Number(sent['x-ratelimit-reset']) * 1_000 - (now + refused.retryAfterMs)
        // Given times are cut to whole microseconds.
        expect(early).toBeGreaterThan(-0.002)
        expect(early).toBeLessThan(1_000)
      }
    }
  })

  test('a wait without end has no end to tell: reset is when nothing is used any more', () => {
    const { source, key, state, nowUs, lead, level, prior } = decisionOf(hundred, 99, t0)
    const endless = new MadeDecision(
      source,
      key,
      state | reasonCode('blocked'),
      nowUs,
      1,
      0,
      lead,
      level,
      prior,
      Infinity,
    )
    expect(fields(answersOf({ headers: 'x-ratelimit-epoch' }).fieldsOfOne(endless))).toEqual({
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(t0 / 1_000 + 60),
    })
  })
})

describe('several policies', () => {
  const three = {
    wide: { per: 'client', rule: bucket(50, '1m') },
    narrow: { per: 'client', rule: bucket(10, '1m') },
    middle: { per: 'client', rule: { algorithm: 'fixed-window', limit: 20, window: '1h' } },
    all: { per: 'service', rule: bucket(2, '1m') },
  }

  test('admitted: least share first; those of everybody together are not told', () => {
    const verdict = verdictOf(three)
    const sent = fields(answersOf({ headers: ['ietf', 'x-ratelimit'] }).fields(verdict))
    expect(items(sent['ratelimit'])).toEqual([
      { name: 'narrow', r: 9, t: 60 },
      { name: 'middle', r: 19, t: 3600 },
      { name: 'wide', r: 49, t: 60 },
    ])
    expect(items(sent['ratelimit-policy'])).toEqual([
      { name: 'narrow', q: 10, w: 60 },
      { name: 'middle', q: 20, w: 3600 },
      { name: 'wide', q: 50, w: 60 },
    ])
    expect(sent).toMatchObject({ 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '9' })
    const older = fields(answersOf({ headers: 'legacy' }).fields(verdict))
    expect(older['ratelimit-policy']).toBe('10;w=60;burst=10, 20;w=3600, 50;w=60;burst=50')
    expect(older['ratelimit-limit']).toBe('10')
  })

  test('refused: longest wait first, of equal ones as they stand in the document', () => {
    const verdict = verdictOf(
      {
        minute: { per: 'client', rule: bucket(1, '1m') },
        hour: { per: 'client', rule: bucket(1, '1h') },
        again: { per: 'user', rule: bucket(1, '1m') },
        idle: { per: 'client', rule: bucket(9, '1m') },
      },
      1,
    )
    const answers = answersOf({ headers: ['ietf', 'legacy'] })
    const sent = fields(answers.refusal(verdict).fields)
    expect(items(sent['ratelimit'])).toEqual([
      { name: 'hour', r: 0, t: 3600 },
      { name: 'minute', r: 0, t: 60 },
      { name: 'again', r: 0, t: 60 },
    ])
    expect(sent['ratelimit-reset']).toBe('3600')
    // Nothing of one answer is left in the next.
    expect(answers.fields(verdictOf(nobody))).toEqual([])
  })

  test('acceptance 204: a quota stands beside the rate with what is left of it, and when it ends', () => {
    const verdict = verdictOf({
      rate: { per: 'client', rule: bucket(10, '1s') },
      daily: { per: 'client', rule: { algorithm: 'quota', limit: 500_000, period: 'day' } },
    })
    const sent = fields(answersOf().fields(verdict))
    expect(items(sent['ratelimit-policy'])[1]).toEqual({ name: 'daily', q: 500_000, w: 86_400 })
    // Noon: half a day is left.
    expect(items(sent['ratelimit'])[1]).toEqual({ name: 'daily', r: 499_999, t: 43_200 })
  })
})

describe('scripts of other origins', () => {
  const name = 'access-control-expose-headers'

  test('may read what is sent, where that is asked for, and nothing more is named', () => {
    const answers = answersOf({ headers: ['ietf', 'legacy'], exposeHeaders: true })
    const sent = fields(answers.fieldsOfOne(decisionOf(pro)))
    expect(sent[name]).toBe('RateLimit-Policy, RateLimit, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset')
    const refused = fields(answersOf({ exposeHeaders: true }).refusalOfOne(decisionOf(hundred, 100)).fields)
    expect(refused[name]).toBe('RateLimit-Policy, RateLimit, Retry-After')
    const never = createLimiter(hundred).take('key', { cost: 101, now: t0 })
    expect(fields(answersOf({ exposeHeaders: true, headers: 'none' }).refusalOfOne(never).fields)).not.toHaveProperty(
      name,
    )
    expect(answersOf({ exposeHeaders: true }).fields(verdictOf(nobody))).toEqual([])
  })

  test('is not the default', () => {
    expect(fields(answersOf().refusalOfOne(decisionOf(hundred, 100)).fields)).not.toHaveProperty(name)
    expect(fields(answersOf().fieldsOfOne(decisionOf(hundred)))).not.toHaveProperty(name)
  })

  test('read Catraca-Answer too', () => {
    for (const answer of ['queue', 'stale', 'degrade', 'accept', 'mark'] as const) {
      const verdict = verdictOf({ own: { per: 'client', rule: bucket(600, '1m', 10) } })
      verdict.answer = answer
      expect(fields(answersOf({ exposeHeaders: true }).fields(verdict))).toMatchObject({
        [name]: 'RateLimit-Policy, RateLimit, Catraca-Answer',
        'catraca-answer': answer,
      })
    }
    for (const answer of ['pass', 'reject', 'told'] as const) {
      const verdict = verdictOf({ own: { per: 'client', rule: bucket(600, '1m', 10) } })
      verdict.answer = answer
      expect(fields(answersOf().fields(verdict))).not.toHaveProperty('catraca-answer')
    }
  })

  test('all lists that can meet others are known, and all limit fields', () => {
    const answers = answersOf({ exposeHeaders: true, headers: ['ietf', 'legacy', 'x-ratelimit'] })
    const names = Object.keys(fields(answers.refusalOfOne(decisionOf(hundred, 100)).fields))
    expect(names.filter((one) => listFieldNames.includes(one)).toSorted()).toEqual(
      ['access-control-expose-headers', 'ratelimit', 'ratelimit-policy', 'vary'].toSorted(),
    )
    expect(names.filter((one) => one.includes('ratelimit')).toSorted()).toEqual(limitFieldNames.toSorted())
  })
})

describe('the language of a refusal', () => {
  const advice = { batch: 'POST /v1/lotes/importar', cache: 'GET /v1/cache' }
  const refused = verdictOf({ own: { per: 'client', rule: bucket(600, '1m', 1), advice } }, 1)

  test('acceptance 129: limit, window, seconds, and an action, in the language of Accept-Language', () => {
    const answers = answersOf()
    const figures = { status: 429, limit: 600, windowSeconds: 60, retryAfterSeconds: 1 }
    const portuguese = answers.refusal(refused, 'pt-BR,pt;q=0.9,en;q=0.8')
    expect(json(portuguese)).toMatchObject({
      ...figures,
      title: 'Requisições demais',
      detail:
        'O limite é de 600 por minuto, com rajadas de até 1. Tente de novo em 1 s ou use batch: POST /v1/lotes/importar ou cache: GET /v1/cache.',
    })
    expect(fields(portuguese.fields)).toMatchObject({
      'content-type': 'application/problem+json',
      'content-language': 'pt',
      vary: 'Accept-Language',
    })
    const english = answers.refusal(refused, 'en')
    expect(json(english)).toMatchObject({
      ...figures,
      title: 'Too many requests',
      detail:
        'The limit is 600 per minute, bursts of up to 1. Try again in 1 s, or use batch: POST /v1/lotes/importar, or cache: GET /v1/cache.',
    })
    expect(fields(english.fields)).toMatchObject({ 'content-language': 'en', vary: 'Accept-Language' })
  })

  test('the default is that of the option, of verdicts and of single decisions', () => {
    expect(json(answersOf().refusal(refused))['title']).toBe('Too many requests')
    const inPortuguese = answersOf({ language: 'pt' })
    expect(json(inPortuguese.refusal(refused, 'fr'))['title']).toBe('Requisições demais')
    const one = inPortuguese.refusalOfOne(decisionOf(hundred, 100))
    expect(json(one)['detail']).toBe('O limite é de 100 por minuto, contados pelo relógio. Tente de novo em 33 s.')
    expect(fields(one.fields)['content-language']).toBe('pt')
    expect(json(inPortuguese.refusalOfOne(decisionOf(hundred, 100), 'en'))['title']).toBe('Too many requests')
  })

  test('the service is at its limit, in Portuguese', () => {
    const answer = answersOf().refusal(verdictOf({ all: { per: 'service', rule: bucket(1, '1m') } }, 1), 'pt')
    expect(json(answer)).toMatchObject({
      status: 503,
      title: 'Serviço no limite da capacidade',
      detail: 'Todos os clientes juntos pedem mais do que o serviço suporta. Tente de novo em 66 s.',
    })
  })
})

describe('a body of one’s own', () => {
  const refused = decisionOf(hundred, 100)
  const plain = answersOf().refusalOfOne(refused)

  test('acceptance 131: {"error":"rate limit exceeded"}', () => {
    const answer = answersOf({ body: () => ({ error: 'rate limit exceeded' }) }).refusalOfOne(refused)
    expect(answer.status).toBe(429)
    expect(String(answer.body).trim()).toBe('{"error":"rate limit exceeded"}')
    const sent = fields(answer.fields)
    expect(sent).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store', 'retry-after': '33' })
    expect(sent).not.toHaveProperty('content-language')
  })

  test('is made from all that is known of the refusal', () => {
    const body = vi.fn(() => 'slow down')
    const answer = answersOf({ body }).refusalOfOne(refused, 'pt')
    expect(fields(answer.fields)['content-type']).toBe('text/plain; charset=utf-8')
    expect(answer.body).toBe('slow down')
    expect(body).toHaveBeenCalledWith({
      decision: refused,
      policies: ['per-user'],
      retryAfterMs: 33_000,
      status: 429,
      problem: json(answersOf().refusalOfOne(refused, 'pt')),
      acceptLanguage: 'pt',
    })
  })

  test('may have a media type', () => {
    const answer = answersOf({ body: () => ({ contentType: 'text/html', body: '<p>' }) }).refusalOfOne(refused)
    expect(fields(answer.fields)['content-type']).toBe('text/html')
    expect(answer.body).toBe('<p>')
  })

  const circle: { self?: unknown } = {}
  circle.self = circle

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    [
      'throws no error',
      () => {
        throw 'broken'
      },
    ],
    ['gives nothing', () => undefined],
    ['gives null', () => null],
    ['gives a number', () => 7],
    ['gives a promise', () => Promise.reject(new Error('broken'))],
    ['gives a circle', () => circle],
    ['gives what JSON cannot write', () => ({ units: 1n })],
    ['gives an object that is nothing', () => ({ toJSON: () => undefined })],
    ['gives a media type of two lines', () => ({ contentType: 'text/html\r\nSet-Cookie: a=b', body: '' })],
    ['gives an empty media type', () => ({ contentType: '', body: '' })],
  ])('that %s is reported once, and the problem document is sent', (_, body) => {
    const diagnose = vi.fn()
    const answers = answersOf({ body: body as () => string }, diagnose)
    expect(answers.refusalOfOne(refused)).toEqual(plain)
    expect(answers.refusalOfOne(refused)).toEqual(plain)
    expect(diagnose).toHaveBeenCalledTimes(1)
    expect(diagnose).toHaveBeenCalledWith('CATRACA_BODY_UNUSABLE', expect.stringMatching(/the option body .+: .+/))
  })
})

describe('Retry-After of many that are refused together', () => {
  test.each([
    [1, 1, 90],
    [30, 3, 800],
    [60, 6, 880],
    [3_600, 300, 990],
  ])(
    'acceptance 126: 1000 waits of %i s have %i values in the header field, and %i in the body',
    (s, inHeader, inBody) => {
      const answers = new Answers({}, seededRandom(11))
      const limiter = createLimiter(tokenBucket({ limit: 1, window: s * 1_000, burst: 1 }), { name: 'p' })
      limiter.take('key', { now: t0 })
      const refused = limiter.take('key', { now: t0 })
      expect(refused.retryAfterMs).toBe(s * 1_000)
      const told = Array.from({ length: 1_000 }, () => answers.refusalOfOne(refused))
      const seconds = told.map((answer) => Number(fields(answer.fields)['retry-after']))
      expect(Math.min(...seconds)).toBeGreaterThanOrEqual(s)
      expect(Math.max(...seconds)).toBeLessThanOrEqual(Math.ceil(1.2 * s))
      expect(new Set(seconds).size).toBeGreaterThanOrEqual(inHeader)
      expect(new Set(told.map((answer) => json(answer)['retryAfterMs'])).size).toBeGreaterThanOrEqual(inBody)
    },
  )
})

describe('options', () => {
  test.each<[object, string, RegExp]>([
    [{ headers: 'draft-6' }, 'options.headers', /holds "draft-6"; allowed: ietf, legacy, x-ratelimit/],
    [{ headers: ['ietf', 7] }, 'options.headers', /holds 7/],
    [{ headers: 7 }, 'options.headers', /is 7; allowed: one or a list of/],
    [{ headers: 'toString' }, 'options.headers', /holds "toString"/],
    [{ headers: ['ietf', 'none'] }, 'options.headers', /is ietf, none; allowed: none alone/],
    [{ headers: ['x-ratelimit', 'x-ratelimit-epoch'] }, 'options.headers', /allowed: one of x-ratelimit and/],
    [{ cacheable: true }, 'options.cacheable', /allowed: include, omit/],
    [{ exposeHeaders: 'yes' }, 'options.exposeHeaders', /allowed: true, false/],
    [{ language: 'de' }, 'options.language', /allowed: en, pt/],
    [{ body: {} }, 'options.body', /allowed: a function/],
  ])('%j is an error that names the place', (options, path, words) => {
    let error: unknown
    try {
      answersOf(options)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ code: 'CATRACA_OPTION_INVALID', path })
    expect((error as CatracaError).message).toMatch(words)
  })

  test('the same form twice is no contradiction', () => {
    expect(answersOf({ headers: ['none', 'none'] }).fieldsOfOne(decisionOf(pro))).toEqual([])
  })

  test('limit fields come off shared answers only where that is asked for', () => {
    expect(answersOf().omitsCacheable).toBe(false)
    expect(answersOf({ cacheable: 'include' }).omitsCacheable).toBe(false)
    expect(answersOf({ cacheable: 'omit' }).omitsCacheable).toBe(true)
  })
})
