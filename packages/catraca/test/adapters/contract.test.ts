import type { ServerResponse } from 'node:http'
import type { RateLimitOptions } from 'catraca/express'
import { type AnyGuard, createGuard, type GuardOptions, type PolicyDocument } from 'catraca/http'
import { rateLimit as nodeLimit } from 'catraca/node'
import { parseList } from 'structured-headers'
import { afterEach, describe, expect, test } from 'vitest'
import { FakeRemoteStore } from '../guard/remote-store.ts'
import { type Incoming, kinds, type Running, type Setup, send, start, Wire } from './servers.ts'

const running: Running[] = []
afterEach(async () => {
  for (const server of running.splice(0)) await server.close()
})

const names = (text: string | undefined) => parseList(text ?? '').map(([name]) => name)

describe.each(kinds)('%s', (kind) => {
  async function serve(setup: Setup): Promise<Running> {
    const server = await start(kind, setup)
    running.push(server)
    return server
  }
  const simple = (options: Partial<RateLimitOptions<Incoming>> = {}, rest: Partial<Setup> = {}) =>
    serve({ limits: [{ what: { limit: 2, window: '1h', random: () => 0, ...options } }], ...rest })
  const get = (server: Running, target = '/', headers: Record<string, string> = {}, method = 'GET') =>
    send(server, method, `${server.base}${target}`, { headers })
  async function statuses(
    server: Running,
    count: number,
    target = '/',
    headers: Record<string, string> = {},
    method = 'GET',
  ) {
    const all: number[] = []
    for (let index = 0; index < count; index++) all.push((await get(server, target, headers, method)).status)
    return all
  }

  describe('simple form', () => {
    test('passes up to the limit, then 429; every answer says what the limit is', async () => {
      let seen: unknown
      const server = await simple(
        {},
        {
          handler: (request, response) => {
            seen = request.rateLimit
            response.end('ok')
          },
        },
      )
      const first = await get(server)
      expect([first.status, first.body]).toEqual([200, 'ok'])
      expect(first.headers).toMatchObject({
        'ratelimit-policy': '"default";q=2;w=3600',
        ratelimit: '"default";r=1;t=3600',
      })
      expect(seen).toMatchObject({ allowed: true, limit: 2, remaining: 1 })
      expect((await get(server)).headers['ratelimit']).toBe('"default";r=0;t=3600')
      const { status, headers, body } = await get(server)
      expect(status).toBe(429)
      expect(headers).toMatchObject({
        'ratelimit-policy': '"default";q=2;w=3600',
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
        'content-length': String(body.length),
      })
      expect(headers['ratelimit']).toMatch(/^"default";r=0;t=\d+$/)
      expect(Number(headers['retry-after'])).toBeGreaterThan(0)
      expect(JSON.parse(body)).toMatchObject({
        status: 429,
        title: 'Too many requests',
        'violated-policies': ['default'],
      })
      expect(server.reached()).toBe(2)
    })

    test('HEAD is refused without a body, and the connection goes on', async () => {
      const server = await simple({ limit: 1 })
      const wire = new Wire(server.port)
      wire.send('HEAD', `${server.base}/`)
      expect((await wire.receive('HEAD')).status).toBe(200)
      wire.send('HEAD', `${server.base}/`)
      const refused = await wire.receive('HEAD')
      expect(refused.status).toBe(429)
      expect(Number(refused.headers['content-length'])).toBeGreaterThan(0)
      wire.send('GET', `${server.base}/`)
      expect((await wire.receive()).status).toBe(429)
      wire.close()
    })

    test('key', async () => {
      const server = await simple({ key: ({ headers }) => headers['x-user'] as string | undefined })
      expect(await statuses(server, 3, '/', { 'x-user': 'a' })).toEqual([200, 200, 429])
      expect(await statuses(server, 3, '/', { 'x-user': 'b' })).toEqual([200, 200, 429])
      // Empty and none count as the address.
      expect(await statuses(server, 2, '/', { 'x-user': '' })).toEqual([200, 200])
      expect(await statuses(server, 1)).toEqual([429])
    })

    test('skip', async () => {
      const server = await simple({ skip: ({ headers }) => headers['x-skip'] === '1' })
      expect(await statuses(server, 5, '/', { 'x-skip': '1' })).toEqual([200, 200, 200, 200, 200])
      expect((await get(server, '/', { 'x-skip': '1' })).headers).not.toHaveProperty('ratelimit')
      expect(await statuses(server, 3)).toEqual([200, 200, 429])
    })

    test('cost', async () => {
      expect(await statuses(await simple({ limit: 10, cost: 5 }), 3)).toEqual([200, 200, 429])
      const cost = ({ headers }: Incoming) => Number(headers['x-cost'])
      const server = await simple({ limit: 10, cost })
      expect(await statuses(server, 1, '/', { 'x-cost': '9' })).toEqual([200])
      expect(await statuses(server, 1, '/', { 'x-cost': '2' })).toEqual([429])
      expect(await statuses(server, 2, '/', { 'x-cost': '1' })).toEqual([200, 429])
    })

    test.each(['0', '-1', '1.5', 'x'])('a cost of %s is an error, and the handler is not reached', async (text) => {
      const server = await simple({ cost: ({ headers }) => Number(headers['x-cost']) })
      expect((await get(server, '/', { 'x-cost': text })).status).toBe(500)
      expect(server.reached()).toBe(0)
      expect(server.errors).toEqual([expect.objectContaining({ code: 'CATRACA_COST_INVALID' })])
      expect(await statuses(server, 2, '/', { 'x-cost': '1' })).toEqual([200, 200])
    })

    test('an error of key is an error of the request', async () => {
      const broken = new Error('no')
      const server = await simple({
        key: () => {
          throw broken
        },
      })
      expect((await get(server)).status).toBe(500)
      expect([server.errors, server.reached()]).toEqual([[broken], 0])
    })

    test('routes: other numbers, and false', async () => {
      const base = kind === 'Express router' ? '/sub' : ''
      const server = await simple({
        routes: { [`POST ${base}/login`]: { limit: 1, window: '15m' }, [`GET ${base}/free/**`]: false },
      })
      expect(await statuses(server, 2, '/login', {}, 'POST')).toEqual([200, 429])
      expect(await statuses(server, 2, '/LOGIN/', {}, 'POST')).toEqual([429, 429])
      expect(await statuses(server, 5, '/free/x')).toEqual([200, 200, 200, 200, 200])
      expect(await statuses(server, 3, '/login')).toEqual([200, 200, 429])
    })

    test('trust', async () => {
      const server = await simple({ trust: { proxies: 1 } })
      expect(await statuses(server, 3, '/', { 'x-forwarded-for': '192.0.2.1' })).toEqual([200, 200, 429])
      expect(await statuses(server, 3, '/', { 'x-forwarded-for': '192.0.2.1, 192.0.2.2' })).toEqual([200, 200, 429])
      const plain = await simple()
      expect(await statuses(plain, 2, '/', { 'x-forwarded-for': '192.0.2.1' })).toEqual([200, 200])
      expect(await statuses(plain, 1, '/', { 'x-forwarded-for': '192.0.2.2' })).toEqual([429])
    })

    test('mistakes are found where the limit is made', async () => {
      for (const [options, words] of [
        [{ cost: 0 }, /cost is 0; allowed: a whole number from 1/],
        [{ name: 'limite-é' }, /printable ASCII/],
        [{ key: 'x' as never }, /options.key is "x"; allowed: a function/],
        [{ algorithm: 'quota' as never }, /options.algorithm is "quota"/],
        [{ windw: 1 } as object, /windw/],
      ] as const) {
        await expect(simple(options)).rejects.toThrow(words)
      }
      const guard = createGuard<Incoming>({
        policies: {
          version: 1,
          policies: { a: { per: 'address', rule: { algorithm: 'gcra', limit: 1, window: '1m' } } },
        },
      })
      for (const mount of [{ cost: 0 }, { cost: 'x' as never }, { skip: 1 as never }, { key: 1 } as object]) {
        await expect(serve({ limits: [{ what: guard, mount }] })).rejects.toThrow(/allowed|unknown/)
      }
    })
  })

  describe.each(['memory', 'a shared store'] as const)('a guard over %s', (where) => {
    const guardOf = (options: GuardOptions<Incoming>): AnyGuard<Incoming> => {
      if (where === 'memory') return createGuard<Incoming>(options)
      const policies = { ...options.policies, storeFailure: { expectedInstances: 6 } }
      return createGuard<Incoming>({ ...options, policies, store: new FakeRemoteStore() })
    }
    const policies: PolicyDocument = {
      version: 1,
      plans: { names: ['free', 'pro'], default: 'free' },
      policies: {
        anonymous: {
          match: { identity: 'anonymous' },
          per: 'address',
          rule: { algorithm: 'token-bucket', limit: 3, window: '1h' },
        },
        client: {
          match: { identity: 'client' },
          per: 'client',
          rule: { algorithm: 'token-bucket', limit: 2, window: '1h' },
          plans: { pro: { limit: 4, window: '1h' } },
        },
      },
    }
    const identify = ({ headers }: Incoming) => {
      const [client, plan] = (headers['x-api-key'] ?? '').toString().split(':')
      return client === '' || client === undefined ? undefined : { client, ...(plan !== undefined && { plan }) }
    }
    const guarded = (
      options: Partial<GuardOptions<Incoming>> = {},
      rest: Partial<Setup> = {},
      mount: Setup['limits'][0]['mount'] = {},
    ) => serve({ limits: [{ what: guardOf({ policies, identify, ...options }), mount }], ...rest })

    describe('full form', () => {
      test('counts the identity, by its plan', async () => {
        const server = await guarded()
        expect(await statuses(server, 4)).toEqual([200, 200, 200, 429])
        expect(await statuses(await guarded(), 3, '/', { 'x-api-key': 'a' })).toEqual([200, 200, 429])
        expect(await statuses(await guarded(), 5, '/', { 'x-api-key': 'a:pro' })).toEqual([200, 200, 200, 200, 429])
      })

      test('skip and cost where it is mounted', async () => {
        const skip = ({ headers }: Incoming) => headers['x-skip'] === '1'
        const cost = ({ headers }: Incoming) => Number(headers['x-cost'] ?? 1)
        const server = await guarded({}, {}, { skip, cost })
        expect(await statuses(server, 5, '/', { 'x-skip': '1' })).toEqual([200, 200, 200, 200, 200])
        expect(await statuses(server, 1, '/', { 'x-cost': '0' })).toEqual([500])
        expect(await statuses(server, 2, '/', { 'x-cost': '2' })).toEqual([200, 429])
        expect(await statuses(await guarded({}, {}, { cost: 3 }), 2)).toEqual([200, 429])
      })

      test('the body, once it was parsed', async () => {
        const holds = { per: 'body:eventId', rule: { algorithm: 'sliding-log', limit: 1, window: '1h' } }
        const server = await guarded({ policies: { version: 1, policies: { holds } } }, { json: true })
        const post = async (eventId: unknown) => {
          const headers = { 'Content-Type': 'application/json' }
          return (await send(server, 'POST', `${server.base}/`, { headers, body: JSON.stringify({ eventId }) })).status
        }
        const all = [await post(7), await post('7'), await post(8), await post(8)]
        // Plain node:http parses nothing: all count as one that is missing.
        expect(all).toEqual(kind === 'node:http' ? [200, 429, 429, 429] : [200, 429, 200, 429])
      })

      test.each(['throws', 'rejects'])(
        'an identify that %s is an error, and the handler is not reached',
        async (how) => {
          const broken = new Error('the directory is down')
          const server = await guarded({
            identify: () => {
              if (how === 'throws') throw broken
              return Promise.reject(broken)
            },
          })
          const { status, headers, body } = await get(server, '/', { 'x-api-key': 'a' })
          expect(status).toBe(500)
          if (kind === 'node:http') {
            expect(headers).toMatchObject({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' })
            expect(JSON.parse(body)).toEqual({ type: 'about:blank', title: 'Internal Server Error', status: 500 })
          }
          expect([server.errors, server.reached()]).toEqual([[broken], 0])
          expect(await statuses(server, 3, '/', { 'x-api-key': 'a' })).toEqual([500, 500, 429])
        },
      )
    })

    test('an outer and an inner limit are told in one list each', async () => {
      const server = await serve({
        limits: [
          { what: { limit: 9, window: '1h', name: 'outer' } },
          { what: { limit: 2, window: '1h', name: 'inner' } },
          { what: guardOf({ policies, identify }) },
        ],
      })
      const { headers } = await get(server)
      expect(names(headers['ratelimit'])).toEqual(['outer', 'inner', 'anonymous'])
      expect(names(headers['ratelimit-policy'])).toEqual(['outer', 'inner', 'anonymous'])
      await get(server)
      const refused = await get(server)
      expect(refused.status).toBe(429)
      expect(names(refused.headers['ratelimit'])).toEqual(['inner'])
    })

    describe('permits', () => {
      const held: PolicyDocument = {
        version: 1,
        policies: {
          // With routes, so that a shared store holds the permits where there is one.
          flight: {
            per: 'address',
            match: { routes: ['GET /**'] },
            rule: { algorithm: 'concurrency', limit: 1, permitTtl: '1h' },
          },
        },
      }
      const free = async (guard: AnyGuard<Incoming>) => {
        const [first] = await guard.explain({ method: 'GET', path: '/', attributes: { address: '127.0.0.1' } })
        return first?.says.remaining
      }

      test('come back when the answer is finished', async () => {
        const guard = guardOf({ policies: held })
        const inside: unknown[] = []
        const server = await serve({
          limits: [{ what: guard }],
          handler: (_, response) => {
            void free(guard).then((permits) => {
              inside.push(permits)
              response.end('ok')
            })
          },
        })
        expect(await statuses(server, 3)).toEqual([200, 200, 200])
        expect(inside).toEqual([0, 0, 0])
        await expect.poll(() => free(guard)).toBe(1)
      })

      test('come back when the handler destroys its answer', async () => {
        const guard = guardOf({ policies: held })
        const server = await serve({ limits: [{ what: guard }], handler: (_, response) => response.destroy() })
        await expect(get(server)).rejects.toThrow()
        await expect.poll(() => free(guard)).toBe(1)
        expect(server.reached()).toBe(1)
      })

      test('come back when the caller leaves', async () => {
        const guard = guardOf({ policies: held })
        const server = await serve({ limits: [{ what: guard }], handler: () => {} })
        const wire = new Wire(server.port)
        wire.send('GET', `${server.base}/`)
        await expect.poll(() => server.reached()).toBe(1)
        expect(await free(guard)).toBe(0)
        expect((await get(server)).status).toBe(429)
        wire.close()
        await expect.poll(() => free(guard)).toBe(1)
      })

      test('come back when the caller leaves while its answers wait behind another', async () => {
        const policies = {
          ...held,
          policies: {
            flight: { ...held.policies['flight'], rule: { algorithm: 'concurrency', limit: 20, permitTtl: '1h' } },
          },
        }
        const guard = guardOf({ policies: policies as PolicyDocument })
        const server = await serve({ limits: [{ what: guard }], handler: () => {} })
        const wire = new Wire(server.port)
        for (let index = 0; index < 15; index++) wire.send('GET', `${server.base}/`)
        await expect.poll(() => server.reached()).toBe(15)
        expect(await free(guard)).toBe(5)
        wire.close()
        await expect.poll(() => free(guard)).toBe(20)
      })
    })

    test('a caller who leaves while it is identified is refunded, and its handler not called', async () => {
      let found: (identity: { client: string }) => void = () => {}
      let asked = 0
      const guard = guardOf({
        policies: {
          version: 1,
          policies: {
            ...policies.policies,
            flight: {
              per: 'client',
              match: { identity: 'client' },
              rule: { algorithm: 'concurrency', limit: 1, permitTtl: '1h' },
            },
          },
          plans: { names: ['free', 'pro'], default: 'free' },
        },
        identify: () => {
          asked++
          return new Promise((resolve) => {
            found = resolve
          })
        },
      })
      let gone = 0
      const server = await serve({
        limits: [
          {
            what: guard,
            mount: {
              skip: (request) => {
                request.socket.once('close', () => gone++)
                return false
              },
            },
          },
        ],
      })
      const wire = new Wire(server.port)
      wire.send('GET', `${server.base}/`, { headers: { 'x-api-key': 'a' } })
      await expect.poll(() => asked).toBe(1)
      wire.close()
      await expect.poll(() => gone).toBe(1)
      found({ client: 'a' })
      await new Promise((resolve) => setImmediate(resolve))
      const says = await guard.explain({ method: 'GET', path: '/', attributes: { address: '127.0.0.1', client: 'a' } })
      expect(says.filter(({ applies }) => applies).map(({ policy, says }) => [policy, says.remaining])).toEqual([
        ['client', 2],
        ['flight', 1],
      ])
      expect(server.reached()).toBe(0)
    })

    test('a request that others answered while it was identified is left alone', async () => {
      let found: (identity: { client: string }) => void = () => {}
      const guard = guardOf({
        policies,
        identify: () =>
          new Promise((resolve) => {
            found = resolve
          }),
      })
      const server = await serve({
        limits: [
          {
            what: {
              limit: 9,
              window: '1h',
              key: (request) => {
                setImmediate(() => {
                  // What a timeout does.
                  const { _httpMessage: response } = request.socket as unknown as {
                    _httpMessage: NodeJS.WritableStream & { writeHead(status: number): void }
                  }
                  response.writeHead(503)
                  ;(response as unknown as { flushHeaders(): void }).flushHeaders()
                  found({ client: 'a' })
                  setImmediate(() => response.end())
                })
                return 'x'
              },
            },
          },
          { what: guard },
        ],
      })
      expect((await get(server, '/', { 'x-api-key': 'a' })).status).toBe(503)
      expect([server.reached(), server.errors]).toEqual([0, []])
      const says = await guard.explain({ method: 'GET', path: '/', attributes: { address: '127.0.0.1', client: 'a' } })
      expect(says.find(({ policy }) => policy === 'client')?.says.remaining).toBe(2)
    })
  })

  test('a policy that is closed without the store answers 503, and the handler is not reached', async () => {
    const store = new FakeRemoteStore()
    const guard = createGuard<Incoming>({
      policies: {
        version: 1,
        storeFailure: { expectedInstances: 6 },
        policies: {
          login: {
            per: 'address',
            match: { routes: ['POST /**'] },
            rule: { algorithm: 'sliding-counter', limit: 5, window: '15m' },
            onStoreFailure: 'closed',
          },
        },
      },
      store,
      random: () => 0,
    })
    const server = await serve({ limits: [{ what: guard }] })
    const post = () => send(server, 'POST', `${server.base}/login`)
    expect((await post()).status).toBe(200)
    store.health = 'degraded'
    const { status, headers, body } = await post()
    expect(status).toBe(503)
    expect(headers).toMatchObject({
      'retry-after': '2',
      'cache-control': 'no-store',
      'content-type': 'application/problem+json',
    })
    expect(JSON.parse(body)).toMatchObject({ status: 503, title: 'Service at capacity', retryAfterSeconds: 2 })
    expect((await get(server)).status).toBe(200)
    store.health = 'healthy'
    expect((await post()).status).toBe(200)
    expect(server.reached()).toBe(3)
  })

  describe('a body nobody reads', () => {
    test('of 10 kB: the 429 is seen and the connection goes on', async () => {
      const server = await simple({ limit: 1 })
      const wire = new Wire(server.port)
      wire.send('GET', `${server.base}/`)
      expect((await wire.receive()).status).toBe(200)
      for (let index = 0; index < 3; index++) {
        wire.send('POST', `${server.base}/`, { body: 'x'.repeat(10_000) })
        const { status, headers } = await wire.receive()
        expect(status).toBe(429)
        expect(headers['connection']).toBe('keep-alive')
      }
      wire.close()
    })

    test('of 5 MB: the 429 is seen, and the connection ends without a reset', async () => {
      const server = await simple({ limit: 1 })
      await get(server)
      const wire = new Wire(server.port)
      const failures: Error[] = []
      wire.socket.on('error', (error) => failures.push(error))
      wire.send('POST', `${server.base}/`, { body: 'x'.repeat(5_000_000) })
      const { status, headers, body } = await wire.receive()
      expect([status, headers['connection']]).toEqual([429, 'close'])
      expect(JSON.parse(body)).toMatchObject({ status: 429 })
      expect(await wire.over()).toBe(true)
      expect(failures).toEqual([])
    })

    test('the next request of a pipeline is answered', async () => {
      const server = await simple({ key: ({ headers }) => headers['x-user'] as string, limit: 1 })
      await get(server, '/', { 'x-user': 'a' })
      const wire = new Wire(server.port)
      wire.send('POST', `${server.base}/`, { headers: { 'x-user': 'a' }, body: 'x'.repeat(10_000) })
      wire.send('GET', `${server.base}/`, { headers: { 'x-user': 'b' } })
      expect((await wire.receive()).status).toBe(429)
      const next = await wire.receive()
      expect([next.status, next.body]).toEqual([200, 'ok'])
      wire.close()
    })
  })
})

test('node:http: what the handler of a skipped request throws is its own affair', () => {
  const broken = new Error('a mistake in the handler')
  const errors: unknown[] = []
  const guard = createGuard<Incoming>({
    policies: {
      version: 1,
      policies: { a: { per: 'address', rule: { algorithm: 'sliding-log', limit: 1, window: '1m' } } },
    },
  })
  const listener = nodeLimit<Incoming>(guard, { skip: () => true, onError: (error) => errors.push(error) })(() => {
    throw broken
  })
  expect(() => listener({ headers: {} } as Incoming, {} as ServerResponse)).toThrow(broken)
  expect(errors).toEqual([])
})
