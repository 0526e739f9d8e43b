import { rateLimit } from 'catraca/fetch'
import { createGuard, type GuardOptions, type Verdict } from 'catraca/http'
import { describe, expect, test } from 'vitest'

const hour = { limit: 2, window: '1h' } as const
const address = () => '192.0.2.1'
const ok = () => new Response('ok')
const request = (init?: RequestInit) => new Request('http://localhost/', init)
const gcra = { algorithm: 'gcra', limit: 2, window: '1h' } as const
const guardOf = (options: Partial<GuardOptions<Request>> = {}) =>
  createGuard<Request>({ policies: { version: 1, policies: { one: { per: 'address', rule: gcra } } }, ...options })

describe('without a promise where none is needed', () => {
  test.each([
    ['one limit', rateLimit(hour, { address })],
    ['a guard', rateLimit(guardOf(), { address })],
  ])('%s', (_, limit) => {
    const handler = limit(ok)
    const [first, , third] = [handler(request()), handler(request()), handler(request())] as Response[]
    expect([first?.status, third?.status]).toEqual([200, 429])
    expect(first?.headers.get('RateLimit')).toMatch(/;r=1;/)
  })

  test('what the handler throws comes out as it was thrown', () => {
    const broken = new Error('a mistake')
    const handler = rateLimit(hour, { address })(() => {
      throw broken
    })
    expect(() => handler(request())).toThrow(broken)
  })
})

describe('the address', () => {
  const missing = expect.objectContaining({ code: 'CATRACA_ADDRESS_MISSING' })

  test('is not known by itself: a limit without it or a key is a mistake', () => {
    expect(() => rateLimit(hour)).toThrow(missing)
    expect(() => rateLimit(guardOf())).toThrow(missing)
    expect(() => rateLimit(hour, { address: 'x' as never })).toThrow(/address is "x"/)
    expect(() => rateLimit({ ...hour, key: () => 'a' })).not.toThrow()
  })

  test.each([undefined, '', null])('%j is an error of the request, and nobody is counted', (found) => {
    const handler = rateLimit(hour, { address: () => found as undefined })(ok)
    expect(() => handler(request())).toThrow(missing)
    expect(() => rateLimit(guardOf(), { address: () => found as undefined })(ok)(request())).toThrow(missing)
  })

  test('is not asked for where a key says whom to count', () => {
    const key = ({ headers }: Request) => headers.get('x-key') ?? undefined
    const handler = rateLimit({ ...hour, key })(ok)
    expect((handler(request({ headers: { 'x-key': 'a' } })) as Response).status).toBe(200)
    expect(() => handler(request())).toThrow(missing)
  })

  test('comes from what the platform gives beside the request, which the handler gets too', () => {
    const peer = (_: Request, info: { ip: string }) => info.ip
    const limited = rateLimit({ limit: 1, window: '1h' }, { address: peer })
    const handler = limited((_, decision, { ip }) => new Response(`${ip} ${decision?.remaining}`))
    const statuses = ['192.0.2.1', '192.0.2.1', '192.0.2.2'].map(
      (ip) => (handler(request(), { ip }) as Response).status,
    )
    expect(statuses).toEqual([200, 429, 200])
  })
})

describe('limits around each other', () => {
  test('each gets what the platform gives, the handler the decision of the innermost', async () => {
    const peer = (_: Request, info: { ip: string }) => info.ip
    const outer = rateLimit({ limit: 9, window: '1h', name: 'outer' }, { address: peer })
    const inner = rateLimit({ limit: 5, window: '1h', name: 'inner' }, { address: peer })
    const handler = outer(inner((_, decision, { ip }) => new Response(`${decision?.policy} ${ip}`)))
    const response = await handler(request(), { ip: '192.0.2.1' })
    expect(await response.text()).toBe('inner 192.0.2.1')
    expect(response.headers.get('RateLimit')).toMatch(/^"outer";.*, "inner";/)
  })
})

describe('answers that cannot be changed', () => {
  test('of redirects are copied', () => {
    const handler = rateLimit(hour, { address })(() => Response.redirect('http://localhost/other', 307))
    const { status, headers } = handler(request()) as Response
    expect([status, headers.get('Location')]).toEqual([307, 'http://localhost/other'])
    expect(headers.get('RateLimit')).toMatch(/;r=1;/)
    expect(headers.get('RateLimit-Policy')).toMatch(/;q=2;/)
  })

  test('that no class can make are left alone', () => {
    const headers = new Headers()
    Object.defineProperty(headers, 'set', {
      value: () => {
        throw new TypeError('immutable')
      },
    })
    const upgrade = { status: 101, statusText: '', headers, body: null }
    const handler = rateLimit(hour, { address })(() => upgrade)
    expect(handler(request())).toBe(upgrade)
  })
})

describe('the request', () => {
  test('is the same object where nothing is to be said', () => {
    const seen: Request[] = []
    const handler = rateLimit(guardOf(), { address })((one: Request) => {
      seen.push(one)
      return ok()
    })
    const plain = request()
    void handler(plain)
    expect(seen[0]).toBe(plain)
    const forged = request({ headers: { 'catraca-answer': 'mark', 'x-own': '1' } })
    void handler(forged)
    expect(seen[1]).not.toBe(forged)
    expect([...(seen[1] as Request).headers]).toEqual([['x-own', '1']])
  })

  test('keeps its body and its signal where something is said', async () => {
    const guard = guardOf()
    const ask = guard.ask.bind(guard)
    guard.ask = (asked) => Object.assign(ask(asked) as Verdict, { told: 'degrade' as const })
    const leaving = new AbortController()
    const handler = rateLimit(guard, { address })(async (one: Request) => {
      const body = await one.text()
      leaving.abort()
      return new Response(`${one.method} ${one.headers.get('catraca-answer')} ${body} ${one.signal.aborted}`)
    })
    const posted = request({ method: 'POST', body: 'text', signal: leaving.signal })
    expect(await (await handler(posted)).text()).toBe('POST degrade text true')
    // Somebody read the body before.
    const read = request({ method: 'POST', body: 'text' })
    await read.text()
    expect(await (await handler(read)).text()).toBe('POST degrade  false')
  })
})

describe('policies that look into the body', () => {
  const policies = {
    version: 1,
    policies: { one: { per: 'body:id', rule: { algorithm: 'gcra', limit: 1, window: '1h' } } },
  } as const
  const handler = () =>
    rateLimit(guardOf({ policies }), { address })(async (one: Request) => new Response(`${(await one.text()).length}`))
  const post = (body: string) => request({ method: 'POST', body })

  test('see it, and so does the handler', async () => {
    const limited = handler()
    const answers = [
      await limited(post('{"id":1}')),
      await limited(post('{"id":2}')),
      await limited(post('{"id":"1"}')),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(await (answers[0] as Response).text()).toBe('8')
  })

  test.each([
    ['no JSON', '{"id":'],
    ['JSON that is no object', '7'],
    ['longer than 1 MiB', `{"id":1,"rest":"${'x'.repeat(1_048_576)}"}`],
  ])('%s counts as one without the value, and the handler has all of it', async (_, body) => {
    const limited = handler()
    const first = await limited(post(body))
    expect([first.status, await first.text()]).toEqual([200, String(body.length)])
    expect((await limited(post('{}'))).status).toBe(429)
    expect((await limited(post('{"id":1}'))).status).toBe(200)
  })

  test('just 1 MiB is read', async () => {
    const limited = handler()
    const rest = 'x'.repeat(1_048_576 - '{"id":1,"rest":""}'.length)
    expect((await limited(post(`{"id":1,"rest":"${rest}"}`))).status).toBe(200)
    expect((await limited(post('{"id":1}'))).status).toBe(429)
  })

  test('nothing to read, or read before, is one without the value', async () => {
    const limited = handler()
    expect((await limited(request())).status).toBe(200)
    const read = post('{"id":1}')
    await read.text()
    expect((await limited(read)).status).toBe(429)
  })
})

describe('permits', () => {
  const held = () =>
    guardOf({
      policies: {
        version: 1,
        policies: { flight: { per: 'address', rule: { algorithm: 'concurrency', limit: 1, permitTtl: '1h' } } },
      },
    })
  const free = (guard: ReturnType<typeof held>) =>
    guard.explain({ method: 'GET', path: '/', attributes: { address: '192.0.2.1' } })[0]?.says.remaining

  test('come back when the handler throws, or rejects', async () => {
    const guard = held()
    const limit = rateLimit(guard, { address })
    const broken = new Error('a mistake')
    const throws = limit(() => {
      throw broken
    })
    expect(() => throws(request())).toThrow(broken)
    expect(free(guard)).toBe(1)
    await expect(limit(() => Promise.reject(broken))(request())).rejects.toBe(broken)
    expect(free(guard)).toBe(1)
  })

  test('come back when nobody begins to read the answer and the caller leaves', () => {
    const guard = held()
    const leaving = new AbortController()
    void rateLimit(guard, { address })(ok)(request({ signal: leaving.signal }))
    expect(free(guard)).toBe(0)
    leaving.abort()
    expect(free(guard)).toBe(1)
  })

  test('come back at once with an answer without a body', () => {
    const guard = held()
    void rateLimit(guard, { address })(() => new Response(null, { status: 204 }))(request())
    expect(free(guard)).toBe(1)
  })

  test('come back when the answer is cancelled, and its source is cancelled with it', async () => {
    const guard = held()
    let cancelled: unknown
    const body = new ReadableStream({ cancel: (reason) => void (cancelled = reason) }, { highWaterMark: 0 })
    const response = rateLimit(guard, { address })(() => new Response(body))(request()) as Response
    await response.body?.cancel('enough')
    expect([free(guard), cancelled]).toEqual([1, 'enough'])
  })

  test('come back when the source of the answer breaks', async () => {
    const guard = held()
    const broken = new Error('a mistake')
    const body = new ReadableStream({ pull: () => Promise.reject(broken) }, { highWaterMark: 0 })
    const response = rateLimit(guard, { address })(() => new Response(body))(request()) as Response
    expect(free(guard)).toBe(0)
    await expect(response.text()).rejects.toBe(broken)
    expect(free(guard)).toBe(1)
  })

  test('a promise of any library will do', async () => {
    const guard = held()
    // oxlint-disable-next-line unicorn/no-thenable -- what is tested
    const thenable = { then: (resolve: (response: Response) => void) => resolve(new Response(null)) }
    const handler = rateLimit(guard, { address })(() => thenable as Promise<Response>)
    expect((await handler(request())).headers.get('RateLimit-Policy')).toMatch(/^"flight"/)
    expect(free(guard)).toBe(1)
  })
})
