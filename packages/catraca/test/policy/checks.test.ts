import { describe, expect, test } from 'vitest'
import { checks } from '../../src/policy/checks.ts'
import { budgetOf, findingsOf, type PolicyDocument, type PolicyEntry, readPolicies } from '../../src/policy.ts'
import { changed, designDocument } from '../guard/documents.ts'

type Said = readonly [level: string, path: string, message: string]

/** What one check says of a document. */
function said(code: string, document: PolicyDocument, authenticated = false): Said[] {
  const found = findingsOf(readPolicies(document), { authenticated })
  return found.filter((one) => one.code === code).map(({ level, path, message }) => [level, path, message])
}

function one(entry: Partial<PolicyEntry>, rest: Partial<PolicyDocument> = {}): PolicyDocument {
  const rule = { algorithm: 'token-bucket', limit: 60, window: '1m' }
  return { version: 1, ...rest, policies: { p: { per: 'client', rule, ...entry } } }
}

function warns(path: string, part: string): unknown[] {
  return [['warning', path, expect.stringContaining(part)]]
}

function notes(path: string, part: string): unknown[] {
  return [['note', path, expect.stringContaining(part)]]
}

const routes = ['POST /orders']
const service: PolicyEntry = { per: 'service', rule: { algorithm: 'token-bucket', limit: 1_000, window: '1s' } }

describe('acceptance 236: ADDRESS_KEY', () => {
  const code = 'CATRACA_CHECK_ADDRESS_KEY'

  test('speaks of verified callers that are counted by address', () => {
    for (const identity of ['client', 'user'] as const) {
      expect(said(code, one({ match: { identity }, per: 'address' }))).toEqual(
        warns('policies.p.per', 'by client, user or tenant'),
      )
    }
    expect(said(code, one({ match: { identity: 'client' }, per: ['address'] }))).toHaveLength(1)
  })

  test('speaks of a route for verified callers that another policy counts by address', () => {
    const document = one({ match: { identity: 'client', routes } })
    document.policies['q'] = { per: 'address', match: { routes }, rule: { algorithm: 'gcra', limit: 1, window: '1s' } }
    expect(said(code, document)).toEqual(warns('policies.q.per', 'verified callers by address'))
  })

  test('speaks when callers are verified and only addresses are counted', () => {
    expect(said(code, one({ per: 'address' }), true)).toEqual(warns('policies', 'add a policy per client'))
    expect(said(code, one({ per: 'address' }), false)).toEqual([])
    expect(said(code, one({ per: ['tenant', 'address'] }), true)).toEqual([])
  })

  test('is silent otherwise', () => {
    expect(said(code, designDocument, true)).toEqual([])
    expect(said(code, one({ match: { identity: 'anonymous' }, per: 'address' }))).toEqual([])
    expect(said(code, one({ match: { identity: 'client' }, per: 'address', mode: 'off' }))).toEqual([])
    expect(said(code, one({ match: { identity: 'client' }, per: ['client', 'address'] }))).toEqual([])
  })
})

describe('acceptance 236: TRUST', () => {
  const code = 'CATRACA_CHECK_TRUST'

  test('speaks when addresses are counted and the proxies are not stated', () => {
    expect(said(code, one({ per: 'address' }))).toEqual(
      warns('trust', 'write trust: { proxies: 1 }, or { proxies: 0 }'),
    )
    expect(said(code, one({ per: ['client', 'address'] }, { trust: { header: 'forwarded' } }))).toHaveLength(1)
  })

  test('is silent when they are, or when no address is counted', () => {
    expect(said(code, one({ per: 'address' }, { trust: { proxies: 0 } }))).toEqual([])
    expect(said(code, one({ per: 'address' }, { trust: { from: ['10.0.0.0/8'] } }))).toEqual([])
    expect(said(code, one({}))).toEqual([])
    expect(said(code, one({ per: 'address', mode: 'off' }))).toEqual([])
  })
})

describe('acceptance 237: NO_GLOBAL', () => {
  const code = 'CATRACA_CHECK_NO_GLOBAL'

  test('speaks when only each caller is limited', () => {
    expect(said(code, changed({ 'whole-service': undefined }))).toEqual(warns('policies', 'add a policy per service'))
    expect(said(code, one({ ...service, mode: 'off' }))).toHaveLength(1)
  })

  test('a limit for some routes or some callers is none for all', () => {
    expect(said(code, one({ ...service, match: { routes } }))).toHaveLength(1)
    expect(said(code, one({ ...service, match: { identity: 'client' } }))).toHaveLength(1)
  })

  test('is silent with a limit for all', () => {
    expect(said(code, designDocument)).toEqual([])
    expect(said(code, one(service))).toEqual([])
    expect(said(code, one({ ...service, per: ['service'] }))).toEqual([])
  })
})

describe('acceptance 237: ONE_LIMIT', () => {
  const code = 'CATRACA_CHECK_ONE_LIMIT'

  test('speaks when every route has the same limit', () => {
    expect(said(code, one({}))).toEqual(warns('policies', 'the same limit for every route'))
    expect(said(code, one({ match: { routes }, mode: 'off' }))).toHaveLength(1)
  })

  test('is silent when some have their own', () => {
    expect(said(code, one({ match: { routes } }))).toEqual([])
    expect(said(code, designDocument)).toEqual([])
  })
})

describe('LOGIN_FAILURE', () => {
  const code = 'CATRACA_CHECK_LOGIN_FAILURE'
  const login = (route: string, entry: Partial<PolicyEntry> = {}): PolicyDocument =>
    one({ match: { routes: [route] }, ...entry })

  test('speaks of a login that does not say what happens', () => {
    for (const route of [
      'POST /login',
      '/v1/log-in',
      '/users/sign-in',
      '/Password',
      '/senha',
      '/otp',
      '/sms/send',
      '/oauth/token',
      '/recover',
      '/recuperar',
      '/2fa',
    ]) {
      expect(said(code, login(route)), route).toEqual(warns('policies.p', 'write onStoreFailure: closed'))
    }
    expect(said(code, { ...login('/login'), defaults: { onStoreFailure: 'local' } })).toHaveLength(1)
  })

  test('speaks of a login that lets everything pass', () => {
    expect(said(code, login('/login', { onStoreFailure: 'open' }))).toEqual(
      warns('policies.p.onStoreFailure', 'lets everything pass'),
    )
  })

  test('is silent when it is stated, in the policy or for all', () => {
    expect(said(code, login('/login', { onStoreFailure: 'closed' }))).toEqual([])
    expect(said(code, login('/login', { onStoreFailure: 'local' }))).toEqual([])
    expect(said(code, { ...login('/login'), defaults: { onStoreFailure: 'closed' } })).toEqual([])
    expect(said(code, login('/orders'))).toEqual([])
    expect(said(code, login('/login', { mode: 'off' }))).toEqual([])
  })
})

describe('acceptance 174: STORE_FAILURE', () => {
  const code = 'CATRACA_CHECK_STORE_FAILURE'

  test('speaks of policies that do not say what happens without the store', () => {
    expect(said(code, one({}))).toEqual(warns('defaults.onStoreFailure', 'does not answer (p)'))
    expect(said(code, one({}, { defaults: { expectedInstances: 2 } }))).toHaveLength(1)
  })

  test('is silent when each says it, or the document does for all; a login has its own check', () => {
    expect(said(code, one({ onStoreFailure: 'open' }))).toEqual([])
    expect(said(code, one({}, { defaults: { onStoreFailure: 'local' } }))).toEqual([])
    expect(said(code, one({ match: { routes: ['/login'] } }))).toEqual([])
    expect(said(code, one({ mode: 'off' }))).toEqual([])
  })
})

describe('acceptance 29: NEVER', () => {
  const code = 'CATRACA_CHECK_NEVER'
  const promise = { limit: 100, window: '10s' } as const
  const bucket = (limit: number, burst?: number): PolicyDocument =>
    one({ rule: { algorithm: 'token-bucket', limit, window: '10s', ...(burst && { burst }) }, never: promise })

  test('100 per 10 s with burst 40: limit 60 per 10 s, which is r = 6 and not 10', () => {
    expect(said(code, bucket(100, 40))).toEqual([
      [
        'warning',
        'policies.p.rule',
        'lets up to 140 pass in 10s, never asks for 100; with burst 40 allowed: limit 60 per 10s',
      ],
    ])
    expect(said(code, bucket(61, 40))).toHaveLength(1)
    expect(said(code, bucket(60, 40))).toEqual([])
  })

  test('a burst that is already too much', () => {
    expect(said(code, bucket(100))).toEqual(warns('policies.p.rule', 'allowed: a burst below 100'))
  })

  test('the numbers of plans and clients are held to it, too', () => {
    const rule = { algorithm: 'gcra', limit: 60, window: '10s', burst: 40 }
    const more = { plans: { pro: { limit: 61 }, free: { limit: 10 } }, clients: { acme: { burst: 41 } } }
    const document = one({ rule, never: promise, ...more }, { plans: { names: ['free', 'pro'], default: 'free' } })
    expect(said(code, document).map(([, path]) => path)).toEqual(['policies.p.plans.pro', 'policies.p.clients.acme'])
  })

  test.each([
    ['sliding-log', { limit: 100, window: '10s' }, undefined],
    ['sliding-log', { limit: 101, window: '10s' }, 101],
    ['sliding-log', { limit: 50, window: '5s' }, undefined],
    ['sliding-log', { limit: 50, window: '4s' }, 150],
    ['fixed-window', { limit: 50, window: '10s' }, undefined],
    ['fixed-window', { limit: 51, window: '10s' }, 102],
    ['fixed-window', { limit: 34, window: '5s' }, 102],
    ['sliding-counter', { limit: 51, window: '1m' }, 102],
    ['leaky-meter', { limit: 60, window: '10s', burst: 41 }, 101],
    ['quota', { limit: 51, period: 'day' }, 102],
    ['quota', { limit: 50, period: 'year' }, undefined],
  ])('%s %o: %s', (algorithm, options, most) => {
    const found = said(code, one({ rule: { algorithm, ...options }, never: promise }))
    expect(found).toEqual(most === undefined ? [] : warns('policies.p.rule', `lets up to ${most} pass in 10s`))
  })

  test('what limits no rate cannot promise one', () => {
    const rule = { algorithm: 'concurrency', limit: 5 }
    expect(said(code, one({ rule, never: promise }))).toEqual(
      warns('policies.p.rule', 'allowed: sliding-log with limit 100 and window 10s'),
    )
  })

  test('a queue speaks of its capacity', () => {
    const rule = { algorithm: 'leaky-queue', limit: 100, window: '10s', capacity: 40 }
    expect(said(code, one({ rule, never: promise }))).toEqual(
      warns('policies.p.rule', 'with capacity 40 allowed: limit 60 per 10s'),
    )
  })

  test('is silent without a promise', () => {
    expect(said(code, designDocument)).toEqual([])
    expect(
      said(code, one({ rule: { algorithm: 'gcra', limit: 1_000, window: '1s' }, never: promise, mode: 'off' })),
    ).toEqual([])
  })
})

describe('QUEUE_WAIT', () => {
  const code = 'CATRACA_CHECK_QUEUE_WAIT'
  const queue = (capacity: number): PolicyDocument =>
    one({ rule: { algorithm: 'leaky-queue', limit: 10, window: '1s', capacity } })

  test('a note up to 5 s, a warning above', () => {
    expect(said(code, queue(50))).toEqual(notes('policies.p.rule', 'the last in a full queue of 50 waits 5s'))
    expect(said(code, queue(51))).toEqual(warns('policies.p.rule', 'waits 5100ms: most callers will have left'))
  })

  test('is silent without a queue', () => expect(said(code, designDocument)).toEqual([]))
})

describe('acceptance 116: OVERSOLD', () => {
  const code = 'CATRACA_CHECK_OVERSOLD'
  const capacity = { limit: 100, window: '1s', clients: { free: 60, pro: 5, enterprise: 1 } } as const

  test('the sum and its ratio: 60 × 1 + 5 × 10 + 1 × 100 = 210 per second', () => {
    const document = changed({}, { capacity })
    expect(budgetOf(readPolicies(document))).toEqual({
      soldPerSecond: 210,
      capacityPerSecond: 100,
      ratio: 2.1,
      held: false,
    })
    expect(said(code, document)).toEqual(
      warns('capacity', 'all budgets together are 210 per second, 2.1 times the capacity of 100, and no policy holds'),
    )
  })

  test('a note when something holds all together to the capacity', () => {
    const whole = (limit: number, entry: object = {}): PolicyDocument =>
      changed({ 'whole-service': { ...service, rule: { ...service.rule, limit }, ...entry } }, { capacity })
    expect(said(code, whole(100))).toEqual(notes('capacity', '2.1 times the capacity of 100'))
    expect(said(code, whole(101))[0]?.[0]).toBe('warning')
    expect(said(code, whole(100, { mode: 'observe' }))[0]?.[0]).toBe('warning')
    expect(said(code, whole(100, { match: { routes } }))[0]?.[0]).toBe('warning')
    expect(said(code, whole(100, { match: { identity: 'anonymous' } }))[0]?.[0]).toBe('warning')
    expect(said(code, whole(100, { plans: { pro: { limit: 200 } } }))[0]?.[0]).toBe('warning')
    expect(said(code, whole(200, { cost: 2 }))[0]?.[0]).toBe('note')
  })

  test('a note up to 1', () => {
    expect(said(code, changed({}, { capacity: { ...capacity, limit: 210 } }))).toEqual(
      notes('capacity', '210 per second, 1 times the capacity of 210'),
    )
    expect(said(code, changed({}, { capacity: { ...capacity, limit: 209 } }))[0]?.[0]).toBe('warning')
  })

  test('the lowest of several rates is what a client has; the cost is taken into account', () => {
    // 60 per minute at 2 each are half a request per second.
    const half = { ...one({}).policies['p'], cost: 2 }
    expect(budgetOf(readPolicies(changed({ half }, { capacity })))?.soldPerSecond).toBe(33)
  })

  test('a quota counts only where nothing else limits the client', () => {
    const rule = { algorithm: 'quota', limit: 86_400, period: 'day' }
    const rest = { plans: { names: ['free'], default: 'free' }, capacity: { ...capacity, clients: { free: 7 } } }
    expect(budgetOf(readPolicies(one({ rule }, rest)))?.soldPerSecond).toBe(7)
  })

  test('a plan without numbers of its own has those of the rule', () => {
    const entry = { ...designDocument.policies['per-client'], plans: { free: { limit: 600 } } }
    expect(
      budgetOf(readPolicies(changed({ 'per-client': entry }, { capacity: { ...capacity, clients: { pro: 1 } } })))
        ?.soldPerSecond,
    ).toBe(1)
  })

  test('is silent without numbers to add up', () => {
    expect(said(code, designDocument)).toEqual([])
    expect(said(code, changed({}, { capacity: { limit: 100, window: '1s' } }))).toEqual([])
    expect(said(code, one(service, { capacity: { limit: 1, window: '1s', clients: {} } }))).toEqual([])
    const only = one({ rule: { algorithm: 'concurrency', limit: 5 } }, { plans: { names: ['free'], default: 'free' } })
    expect(said(code, { ...only, capacity: { limit: 1, window: '1s', clients: { free: 0 } } })).toEqual([])
  })
})

describe('acceptance 118: BURST', () => {
  const code = 'CATRACA_CHECK_BURST'
  const bucket = (limit: number, burst: number | undefined, window = '1m'): PolicyDocument =>
    one({ rule: { algorithm: 'token-bucket', limit, window, ...(burst && { burst }) } })

  test('16.7, 15, 15 and 25 % are usual (D12)', () => {
    for (const [limit, burst] of [
      [60, 10],
      [600, 90],
      [6_000, 900],
      [20, 5],
      [100, 10],
    ]) {
      expect(said(code, bucket(limit as number, burst))).toEqual([])
    }
    const { anonymous, 'per-client': perClient } = designDocument.policies
    expect(said(code, { ...designDocument, policies: { anonymous, 'per-client': perClient } as never })).toEqual([])
  })

  test('a note outside', () => {
    expect(said(code, bucket(100, 9))).toEqual(
      notes('policies.p.rule.burst', 'is 9 % of the limit per minute; 10 to 25 % is usual'),
    )
    expect(said(code, bucket(100, 26))).toEqual(notes('policies.p.rule.burst', 'is 26 %'))
    expect(said(code, bucket(600, 10, '1h'))).toEqual(notes('policies.p.rule.burst', 'is 100 %'))
  })

  test('also of plans and clients', () => {
    const entry = { ...one({}).policies['p'], plans: { pro: { burst: 50 } }, clients: { acme: { burst: 1 } } }
    expect(said(code, one(entry, { plans: { names: ['pro'], default: 'pro' } })).map(([, path]) => path)).toEqual([
      'policies.p.plans.pro.burst',
      'policies.p.clients.acme.burst',
    ])
  })

  test('is silent for a burst that nobody wrote, and for windows shorter than a minute', () => {
    expect(said(code, bucket(100, undefined))).toEqual([])
    expect(said(code, bucket(10, 20, '1s'))).toEqual([])
    expect(said(code, bucket(100, 90, '59s'))).toEqual([])
  })
})

describe('MISSING', () => {
  const code = 'CATRACA_CHECK_MISSING'

  test('a note for each part that a request can lack', () => {
    expect(
      said(code, one({ per: ['user', 'body:eventId', 'address'] })).map(([, path, message]) => [
        path,
        message.split(' ')[2],
      ]),
    ).toEqual([
      ['policies.p.per[0]', 'user'],
      ['policies.p.per[1]', 'body:eventId'],
    ])
    expect(said(code, one({ per: 'header:x-a' }))).toEqual(
      notes('policies.p.per', 'requests without header:x-a share one bucket'),
    )
  })

  test('says of credentials and plans who has none, and of what callers make up that they can', () => {
    const told = (per: string | string[], more: Partial<PolicyEntry> = {}): string[] => {
      const document: PolicyDocument = {
        version: 1,
        hashSecret: 'a secret of the whole fleet',
        plans: { names: ['free'], default: 'free' },
        policies: { p: { per, rule: { algorithm: 'fixed-window', limit: 1, window: '1s' }, ...more } },
      }
      return said(code, document).map(([, , message]) => message)
    }
    const madeUp = /; and callers who make up [\w:-]+ have a bucket for each$/
    expect(told('api-key')).toEqual([expect.stringMatching(/^requests without a credential share .*make up api-key/)])
    expect(told('plan')).toEqual(['callers whom nobody verified share one bucket under the rest of the key'])
    for (const part of ['header:x-a', 'cookie:a', 'query:a', 'api-key']) {
      expect(told(part)).toEqual([expect.stringMatching(madeUp)])
      for (const other of ['address', 'user']) {
        for (const message of told([part, other])) expect(message).not.toMatch(madeUp)
      }
      expect(told(part, { match: { identity: 'client' } })[0]).not.toMatch(madeUp)
    }
    expect(told('plan', { match: { identity: 'client' } })).toEqual([])
    for (const per of ['route', 'path:id']) expect(told(per, { match: { routes: ['/a/:id'] } })).toEqual([])
  })

  test('is silent for a part that is always there', () => {
    for (const [per, identity] of [
      ['client', 'client'],
      ['user', 'user'],
      ['address', undefined],
      ['service', undefined],
    ] as const) {
      expect(said(code, one({ per, ...(identity && { match: { identity } }) }))).toEqual([])
    }
    expect(said(code, one({ per: 'user', mode: 'off' }))).toEqual([])
  })
})

describe('the switch', () => {
  /** A document of which every check has something to say, together with the one of a service that is sold. */
  const talkative: PolicyDocument[] = [
    {
      version: 1,
      policies: {
        queue: {
          per: 'address',
          match: { identity: 'client' },
          rule: { algorithm: 'leaky-queue', limit: 1, window: '1m', capacity: 9 },
        },
        promise: {
          per: 'user',
          rule: { algorithm: 'gcra', limit: 9, window: '1m', burst: 9 },
          never: { limit: 9, window: '1m' },
          lease: { block: 2 },
        },
      },
    },
    changed(
      { login: { ...designDocument.policies['login'], onStoreFailure: 'open' } },
      { capacity: { limit: 1, window: '1s', clients: { pro: 1 } } },
    ),
  ]

  for (const { code } of checks) {
    test(`checks: { ${code}: off }`, () => {
      const spoken = talkative.flatMap((document) => said(code, document))
      expect(spoken.length).toBeGreaterThan(0)
      expect(talkative.flatMap((document) => said(code, { ...document, checks: { [code]: 'on' } }))).toEqual(spoken)
      const others = (document: PolicyDocument): unknown[] =>
        findingsOf(readPolicies(document)).filter((found) => found.code !== code)
      for (const document of talkative) {
        const off: PolicyDocument = { ...document, checks: { [code]: 'off' } }
        expect(findingsOf(readPolicies(off))).toEqual(others(document))
      }
    })
  }

  test('a code that is none is an error, with the nearest one', () => {
    expect(() => readPolicies({ ...designDocument, checks: { CATRACA_CHECK_BRST: 'off' } })).toThrow(
      /did you mean CATRACA_CHECK_BURST\?/,
    )
    expect(() => readPolicies({ ...designDocument, checks: { CATRACA_NAME_TAKEN: 'off' } })).toThrow(
      /CATRACA_OPTION_UNKNOWN/,
    )
  })
})

test('warnings stand before notes, and each names its page', () => {
  const found = findingsOf(
    readPolicies(one({ rule: { algorithm: 'leaky-queue', limit: 9, window: '1s', capacity: 1 } })),
  )
  const levels = found.map(({ level }) => level)
  expect(levels).toEqual(levels.toSorted().toReversed())
  expect(new Set(levels).size).toBe(2)
  for (const { code, help } of found) expect(help).toBe(`docs/errors/${code}.md`)
})

describe('LEASE', () => {
  const code = 'CATRACA_CHECK_LEASE'
  const six = { storeFailure: { expectedInstances: 6 } } as const
  const rule = { algorithm: 'token-bucket', limit: 1_560, window: '1m', burst: 10 }

  test('says the bounds, as a note up to a tenth of the limit and as a warning above', () => {
    const words =
      'lets instances hold up to 26 of a key each: up to 156 more than the rule admits can pass, and a caller can be ' +
      'refused while others hold up to 130'
    expect(said(code, one({ rule, lease: { block: 20 } }, six))).toEqual([['note', 'policies.p.lease', words]])
    expect(said(code, one({ rule: { ...rule, limit: 1_500 }, lease: { block: 20 } }, six))).toEqual([
      ['warning', 'policies.p.lease', `${words}; that is 10.4 % of the limit: a smaller block, or none`],
    ])
    expect(said(code, one({ rule }, six))).toEqual([])
  })

  test('looks at the smallest limit of the policy', () => {
    const plans = { names: ['free', 'pro'], default: 'free' }
    const document = one({ rule, lease: { block: 20 }, plans: { free: { limit: 100 } } }, { ...six, plans })
    expect(said(code, document)).toEqual(warns('policies.p.lease', 'that is 156 % of its smallest limit, 100'))
  })

  test('of a lease that ends with the window only what can be refused counts', () => {
    const windows = { algorithm: 'fixed-window', limit: 1_300, window: '1m' }
    expect(said(code, one({ rule: windows, lease: { block: 20 } }, six))).toEqual(
      notes('policies.p.lease', 'up to 0 more than the rule admits can pass'),
    )
  })

  test('where instances are counted the bounds are for each of them', () => {
    const live = { storeFailure: { expectedInstances: 'live' } } as const
    expect(said(code, one({ rule, lease: { block: 20 } }, live))).toEqual(
      notes(
        'policies.p.lease',
        'up to 26 more than the rule admits can pass, and a caller can be refused while others hold up to 26, for each instance',
      ),
    )
  })
})
