import { createGuard, type Guard, type Identity, type PolicyDocument, type Verdict } from 'catraca/http'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type * as GateModule from '../../src/resilience/verification-gate.ts'
import { changed } from './documents.ts'
import { type Asked, request } from './requests.ts'

/** A literal path into another project is an error of the compiler. */
const gateFile = new URL('../../src/resilience/verification-gate.ts', import.meta.url).href
const { VerificationGate } = (await import(gateFile)) as typeof GateModule

describe('the machine', () => {
  test('lets as many in as there is room, then one for each that ends, first come first served', () => {
    const gate = new VerificationGate<string>(100, 10)
    expect(Array.from('abcd').map((ticket) => gate.enter('x', 2, ticket, 0))).toEqual(['go', 'go', 'wait', 'wait'])
    expect(gate.enter('y', 2, 'e', 0)).toBe('go')
    expect(gate.leave('x', 2)).toEqual({ go: ['c'], refuse: [] })
    expect(gate.leave('x', 2)).toEqual({ go: ['d'], refuse: [] })
    gate.leave('x', 2)
    gate.leave('x', 2)
    gate.leave('y', 2)
    expect(gate.size).toBe(0)
  })

  test('nobody gets past one who waits', () => {
    const gate = new VerificationGate<string>(100, 10)
    expect(gate.enter('x', 1, 'a', 0)).toBe('go')
    expect(gate.enter('x', 1, 'b', 0)).toBe('wait')
    expect(gate.enter('x', 9, 'c', 0)).toBe('wait')
  })

  test('a failure leaves its place empty, and the last one out refuses whom nobody can let in', () => {
    const gate = new VerificationGate<string>(100, 10)
    for (const ticket of 'abcd') gate.enter('x', 2, ticket, 0)
    expect(gate.leave('x', 1)).toEqual({ go: [], refuse: [] })
    expect(gate.leave('x', 0)).toEqual({ go: [], refuse: ['c', 'd'] })
    expect(gate.size).toBe(0)
    expect(gate.enter('x', 0, 'e', 0)).toBe('refuse')
    expect(gate.leave('x', 1)).toEqual({ go: [], refuse: [] })
  })

  test('ends the wait of those whose time is over, and of those alone', () => {
    const gate = new VerificationGate<string>(100, 10)
    gate.enter('x', 1, 'a', 0)
    gate.enter('x', 1, 'b', 0)
    gate.enter('x', 1, 'c', 50)
    expect(gate.expire('x', 99)).toEqual([])
    expect(gate.expire('x', 100)).toEqual(['b'])
    expect(gate.expire('y', 100)).toEqual([])
    expect(gate.leave('x', 1)).toEqual({ go: ['c'], refuse: [] })
  })

  test('has an end of its queue', () => {
    const gate = new VerificationGate<string>(100, 1)
    expect(Array.from('abc').map((ticket) => gate.enter('x', 1, ticket, 0))).toEqual(['go', 'wait', 'refuse'])
  })

  test('a dear request takes the room its failure will take', () => {
    const gate = new VerificationGate<string>(100, 10)
    expect(gate.enter('x', 2, 'a', 0, 3)).toBe('refuse')
    expect(gate.enter('x', 5, 'b', 0, 3)).toBe('go')
    expect(gate.enter('x', 5, 'c', 0, 3)).toBe('wait')
    expect(gate.enter('x', 5, 'd', 0, 1)).toBe('wait')
    // The failure of 3 was charged: 2 are left, too few for the next, enough for the one behind it.
    expect(gate.leave('x', 2, 3)).toEqual({ go: ['d'], refuse: ['c'] })
  })

  test('asks for each that waits what is left for it', () => {
    const gate = new VerificationGate<string>(100, 10)
    gate.enter('x', 1, 'a', 0)
    gate.enter('x', 1, 'narrow', 0)
    gate.enter('x', 1, 'wide', 0)
    expect(gate.leave('x', (ticket) => (ticket === 'wide' ? 9 : 0))).toEqual({ go: ['wide'], refuse: ['narrow'] })
  })

  test('property: in flight + failures ≤ burst, first come first served, each answered exactly once', () => {
    const events = fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.record({ kind: fc.constant('enter'), units: fc.integer({ min: 1, max: 3 }) }) },
        { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('success', 'failure'), pick: fc.nat(20) }) },
        { weight: 1, arbitrary: fc.record({ kind: fc.constant('pass'), us: fc.nat(150) }) },
      ),
      { maxLength: 60 },
    )
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 1, max: 5 }), events, (burst, queue, list) => {
        const gate = new VerificationGate<number>(100, queue)
        const units: number[] = []
        const answers = new Map<number, 'go' | 'refuse'>()
        const order: number[] = []
        const inFlight: number[] = []
        let failed = 0
        let now = 0
        const answer = (ticket: number, entry: 'go' | 'refuse') => {
          expect(answers.has(ticket)).toBe(false)
          answers.set(ticket, entry)
          if (entry === 'go') {
            inFlight.push(ticket)
            order.push(ticket)
          }
        }
        const end = (at: number, failure: boolean) => {
          const [ticket] = inFlight.splice(at, 1) as [number]
          const weight = units[ticket] as number
          if (failure) failed += weight
          const { go, refuse } = gate.leave('x', burst - failed, weight)
          for (const one of go) answer(one, 'go')
          for (const one of refuse) answer(one, 'refuse')
        }
        const check = () => {
          const weight = inFlight.reduce((sum, ticket) => sum + (units[ticket] as number), 0)
          expect(weight + failed).toBeLessThanOrEqual(burst)
          expect(order).toEqual(order.toSorted((a, b) => a - b))
          expect(gate.size).toBe(inFlight.length === 0 ? 0 : 1)
        }
        for (const event of list) {
          if ('units' in event) {
            const ticket = units.push(event.units) - 1
            const entry = gate.enter('x', burst - failed, ticket, now, event.units)
            if (entry !== 'wait') answer(ticket, entry)
          } else if ('us' in event) {
            now += event.us
            for (const ticket of gate.expire('x', now)) answer(ticket, 'refuse')
          } else if (inFlight.length > 0) end(event.pick % inFlight.length, event.kind === 'failure')
          check()
        }
        while (inFlight.length > 0) {
          end(0, true)
          check()
        }
        expect(answers.size).toBe(units.length)
      }),
      { numRuns: 500 },
    )
  })
})

const anonymous = { match: { identity: 'anonymous' }, per: 'address' }
const document: PolicyDocument = changed({
  'address-net': { per: 'address', rule: { algorithm: 'token-bucket', limit: 5_000, window: '1m', burst: 5_000 } },
  anonymous: { ...anonymous, rule: { algorithm: 'token-bucket', limit: 20, window: '1m', burst: 5 } },
  'per-client': {
    match: { identity: 'client' },
    per: 'client',
    rule: { algorithm: 'token-bucket', limit: 600, window: '1m', burst: 600 },
  },
  'in-flight': undefined,
})

const bearer = (token: string, rest: Asked = {}): Asked => ({ ...rest, headers: { authorization: token } })
const asked = (guard: Guard<Asked>, token: string, rest?: Asked) =>
  Promise.resolve(guard.ask(request(bearer(token, rest))))
const passed = (verdicts: Verdict[]) => verdicts.filter(({ allowed }) => allowed).length
const left = (guard: Guard<Asked>, policy: string, client?: string) =>
  guard
    .explain({ method: 'GET', path: '/events', attributes: { address: '192.0.2.1', client } })
    .find((one) => one.policy === policy)?.says.remaining

describe('through a guard', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: Date.UTC(2026, 9, 17, 12) })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** A guard whose verification takes 4 ms and finds the tokens that begin with `good`. */
  function slow(policies = document) {
    const calls: string[] = []
    const guard = createGuard<Asked>({
      policies,
      identify: async ({ headers }) => {
        const token = headers?.['authorization'] ?? ''
        calls.push(token)
        await new Promise((resolve) => setTimeout(resolve, 4))
        return token.startsWith('good') ? { client: token } : undefined
      },
    })
    return { guard, calls }
  }

  test('of 1,000 forged tokens at once exactly 5 reach the verification', async () => {
    const { guard, calls } = slow()
    const all = Promise.all(Array.from({ length: 1_000 }, (_, index) => asked(guard, `forged-${index}`)))
    await vi.advanceTimersByTimeAsync(300)
    const verdicts = await all
    expect(calls).toHaveLength(5)
    expect(passed(verdicts)).toBe(5)
    for (const verdict of verdicts.slice(5)) {
      expect(verdict.refusing.map(({ policy }) => policy.name)).toEqual(['anonymous'])
      expect(verdict.admitted).toEqual([])
      expect(verdict.decision?.retryAfterMs).toBeGreaterThan(0)
    }
    // Those that were not verified took nothing from the address.
    expect(left(guard, 'address-net')).toBeGreaterThanOrEqual(4_995)
  })

  test('200 first-time valid tokens at once all pass within the wait, and charge nothing to the unverified', async () => {
    const { guard, calls } = slow()
    const started = Date.now()
    let ended = 0
    const all = Promise.all(
      Array.from({ length: 200 }, (_, index) => asked(guard, `good-${index}`).finally(() => (ended = Date.now()))),
    )
    await vi.advanceTimersByTimeAsync(199)
    const verdicts = await all
    expect(passed(verdicts)).toBe(200)
    expect(calls).toHaveLength(200)
    // 5 at a time, 4 ms each.
    expect(ended - started).toBe((200 / 5) * 4)
    expect(left(guard, 'anonymous')).toBe(5)
  })

  test('whoever waits longer than 200 ms is refused, with a wait to come back after', async () => {
    const { guard } = slow()
    const all = Promise.all(Array.from({ length: 260 }, (_, index) => asked(guard, `good-${index}`)))
    await vi.advanceTimersByTimeAsync(300)
    const verdicts = await all
    // The 50th turn begins as the time of the rest is over.
    expect(passed(verdicts)).toBeGreaterThanOrEqual(250)
    expect(passed(verdicts)).toBeLessThan(260)
    expect(verdicts.at(-1)?.decision).toMatchObject({ allowed: false, reason: 'limited', retryAfterMs: 200 })
  })

  test('a client verified before loses none of 500 while 1,000 forged tokens come from its address', async () => {
    const { guard, calls } = slow()
    const first = asked(guard, 'good')
    await vi.advanceTimersByTimeAsync(4)
    expect((await first).allowed).toBe(true)
    const forged: Promise<Verdict>[] = []
    const good: Promise<Verdict>[] = []
    for (let index = 0; index < 1_000; index++) {
      forged.push(asked(guard, `forged-${index}`))
      if (index % 2 === 0) good.push(asked(guard, 'good'))
    }
    await vi.advanceTimersByTimeAsync(300)
    expect(passed(await Promise.all(good))).toBe(500)
    expect(passed(await Promise.all(forged))).toBe(5)
    expect(calls.filter((token) => token !== 'good')).toHaveLength(5)
  })

  test('addresses do not wait for each other', async () => {
    const { guard, calls } = slow()
    for (let index = 0; index < 20; index++) void asked(guard, `forged-${index}`, { peer: `192.0.2.${index % 2}` })
    await vi.advanceTimersByTimeAsync(300)
    expect(calls).toHaveLength(10)
  })

  test('a request on a route without such a limit lets nobody in elsewhere', async () => {
    const { guard, calls } = slow(
      changed({
        anonymous: {
          match: { identity: 'anonymous', routes: ['GET /a'] },
          per: 'address',
          rule: { algorithm: 'token-bucket', limit: 5, window: '1m', burst: 5 },
        },
      }),
    )
    const open = asked(guard, 'forged-open', { target: '/b' })
    for (let index = 0; index < 40; index++) void asked(guard, `forged-${index}`, { target: '/a' })
    await vi.advanceTimersByTimeAsync(300)
    expect((await open).allowed).toBe(true)
    expect(calls.filter((token) => token !== 'forged-open')).toHaveLength(5)
  })

  test('a dear request whose failure could not be charged is not verified', async () => {
    const { guard, calls } = slow()
    for (let index = 0; index < 40; index++) void asked(guard, `forged-${index}`, { units: 3 })
    await vi.advanceTimersByTimeAsync(300)
    expect(calls).toHaveLength(1)
  })

  test('a good token in one header does not make trying many in the other free', async () => {
    const seen: string[] = []
    const guard = createGuard<Asked>({
      policies: document,
      identify: async ({ headers = {} }) => {
        seen.push(headers['x-api-key'] ?? '')
        await new Promise((resolve) => setTimeout(resolve, 4))
        return headers['x-api-key'] === 'mine' ? { client: 'mine' } : undefined
      },
    })
    const both = (key: string) => guard.ask(request({ headers: { authorization: 'junk', 'x-api-key': key } }))
    const mine = both('mine')
    await vi.advanceTimersByTimeAsync(4)
    expect((await mine).allowed).toBe(true)
    for (let index = 0; index < 100; index++) void both(`forged-${index}`)
    await vi.advanceTimersByTimeAsync(300)
    expect(seen).toHaveLength(1 + 5)
  })

  test('a document without such a limit lets those pass that wait', async () => {
    const { guard } = slow()
    const all = Promise.all(Array.from({ length: 20 }, (_, index) => asked(guard, `forged-${index}`)))
    guard.replace(changed({ 'address-net': undefined, anonymous: undefined, 'in-flight': undefined }))
    await vi.advanceTimersByTimeAsync(300)
    expect(passed(await all)).toBe(20)
  })

  test('a document may be replaced while the verified wait for nobody', async () => {
    const guard = createGuard<Asked>({ policies: document, identify: ({ identity }) => identity })
    const synchronous = guard.ask(request(bearer('good', { identity: { client: 'c' } })))
    expect(synchronous).not.toBeInstanceOf(Promise)
    for (let index = 0; index < 20; index++) await asked(guard, `forged-${index}`)
    expect(left(guard, 'anonymous')).toBe(0)
    expect((await asked(guard, 'good', { identity: { client: 'c' } })).allowed).toBe(true)
    // A first-time good one is behind the failures of its address.
    expect((await asked(guard, 'new', { identity: { client: 'c' } })).allowed).toBe(false)
  })
})

describe('a verification that fails', () => {
  const holding = {
    ...document,
    policies: {
      ...document.policies,
      'at-once': { per: 'address', rule: { algorithm: 'concurrency', limit: 2, permitTtl: '30s' } },
    },
  } satisfies PolicyDocument
  const broken = new Error('the directory is down')
  const thrown = {
    throws: () => {
      throw broken
    },
    rejects: () => Promise.reject(broken),
    'rejects in the manner of another library': () =>
      // A promise of another library is what is tested: an object with `then` and nothing more.
      // oxlint-disable-next-line unicorn/no-thenable
      ({ then: (_: unknown, no: (error: Error) => void) => no(broken) }) as unknown as Promise<Identity>,
  }

  test.each(Object.entries(thrown))(
    '%s: the error arrives, it is charged, and permits come back',
    async (_, identify) => {
      let calls = 0
      const guard = createGuard<Asked>({
        policies: holding,
        identify: () => {
          calls++
          return identify()
        },
      })
      for (let index = 0; index < 5; index++) {
        await expect((async () => guard.ask(request(bearer(`x-${index}`))))()).rejects.toBe(broken)
        expect(left(guard, 'anonymous')).toBe(4 - index)
        expect(left(guard, 'at-once')).toBe(2)
      }
      const verdict = await asked(guard, 'x-5')
      expect(verdict.allowed).toBe(false)
      expect(calls).toBe(5)
      expect(left(guard, 'at-once')).toBe(2)
    },
  )

  test('permits for unverified callers come back too', async () => {
    const guard = createGuard<Asked>({
      policies: changed({ anonymous: { ...anonymous, rule: { algorithm: 'concurrency', limit: 2, permitTtl: '1h' } } }),
      identify: thrown['throws'],
    })
    for (let index = 0; index < 5; index++) {
      expect(() => guard.ask(request(bearer(`x-${index}`)))).toThrow(broken)
    }
    expect(left(guard, 'anonymous')).toBe(2)
  })

  test.each(['credential', 'body'] as const)(
    '%s throws: permits come back, and nobody waits for ever',
    async (what) => {
      const fail = () => {
        throw broken
      }
      const guard = createGuard<Asked>({
        policies: {
          ...holding,
          policies: {
            ...holding.policies,
            object: { per: 'body:id', rule: { algorithm: 'fixed-window', limit: 9, window: '1m' } },
          },
        },
        identify: ({ identity }) => identity,
        ...(what === 'credential' && { credential: fail }),
      })
      for (let index = 0; index < 4; index++) {
        const one = {
          ...request(bearer(`x-${index}`, { identity: { client: 'c' } })),
          ...(what === 'body' && { body: fail }),
        }
        expect(() => guard.ask(one)).toThrow(broken)
      }
      expect(left(guard, 'at-once')).toBe(2)
      if (what === 'body') expect((await asked(guard, 'y', { identity: { client: 'c' } })).allowed).toBe(true)
    },
  )

  test.each([null, undefined, false])('%s is nobody', async (nobody) => {
    for (const identify of [() => nobody, () => Promise.resolve(nobody)]) {
      const guard = createGuard<Asked>({ policies: document, identify: identify as never })
      const verdicts: Verdict[] = []
      for (let index = 0; index < 20; index++) verdicts.push(await asked(guard, `x-${index}`))
      expect(passed(verdicts)).toBe(5)
      expect(verdicts[0]?.identity).toBe(undefined)
    }
  })
})

test('the status of a caller that is exempt says so', async () => {
  const guard = createGuard<Asked>({
    policies: { ...document, exempt: { clients: ['vip'], routes: ['GET /health'] } },
    identify: ({ identity }) => identity,
  })
  const reasons = async (asked: Asked) => (await guard.status(request(asked))).map(({ notAsked }) => notAsked)
  expect(new Set(await reasons({ identity: { client: 'vip' } }))).toEqual(new Set(['exempt']))
  expect(new Set(await reasons({ target: '/health' }))).toEqual(new Set(['exempt']))
  expect(await reasons({ identity: { client: 'c' } })).toContain(undefined)
})

describe('the status of the limits', () => {
  const policies: PolicyDocument = {
    version: 1,
    policies: {
      anonymous: {
        match: { identity: 'anonymous' },
        per: 'address',
        rule: { algorithm: 'token-bucket', limit: 20, window: '1m', burst: 5 },
      },
      client: {
        match: { identity: 'client' },
        per: 'client',
        rule: { algorithm: 'fixed-window', limit: 9, window: '1m' },
      },
    },
  }
  const headers = (index: number) => ({ authorization: `Bearer ${index}` })
  const statusOf = async (guard: Guard<Asked>, asked: Asked): Promise<number> => {
    return guard.answerOf(await guard.ask(request({ target: '/rate-limit', ...asked }))).status
  }

  test('tries no more credentials than requests can, and those of both together', async () => {
    for (const fails of [() => undefined, () => Promise.resolve(undefined)]) {
      const identify = vi.fn(fails)
      const guard = createGuard<Asked>({ policies, identify, statusPath: '/rate-limit' })
      const statuses: number[] = []
      for (let index = 0; index < 20; index++) statuses.push(await statusOf(guard, { headers: headers(index) }))
      expect(statuses).toEqual([...Array(5).fill(200), ...Array(15).fill(429)])
      expect((await guard.ask(request({ headers: headers(20) }))).answer).toBe('reject')
      expect(identify).toHaveBeenCalledTimes(5)
      expect(guard.counts.answers.reject).toBe(16)
      // Who shows nothing, or shows what was valid before, is told at any time.
      expect(await statusOf(guard, {})).toBe(200)
    }
  })

  test('of a valid caller costs nothing, however often', async () => {
    const identify = ({ headers: shown }: Asked): Identity | undefined =>
      shown?.['authorization'] === undefined ? undefined : { client: 'acme' }
    const guard = createGuard<Asked>({ policies, identify, statusPath: '/rate-limit' })
    for (let index = 0; index < 20; index++) expect(await statusOf(guard, { headers: headers(1) })).toBe(200)
    const told = guard.answerOf(await guard.ask(request({ target: '/rate-limit', headers: headers(1) })))
    expect(JSON.parse(String(told.body))).toMatchObject({ policies: [{ policy: 'client', used: 0, remaining: 9 }] })
  })

  test('fails as a request does where verification throws, and that is charged', async () => {
    const identify = vi.fn(() => {
      throw new Error('the directory is away')
    })
    const guard = createGuard<Asked>({ policies, identify, statusPath: '/rate-limit' })
    const outcomes: string[] = []
    for (let index = 0; index < 8; index++) {
      outcomes.push(await statusOf(guard, { headers: headers(index) }).then(String, ({ message }: Error) => message))
    }
    expect(outcomes).toEqual([...Array(5).fill('the directory is away'), '429', '429', '429'])
  })
})
