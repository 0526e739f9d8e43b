import { type RouteLimit, rateLimit } from 'catraca/fastify'
import { createGuard } from 'catraca/http'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'

const hour = { limit: 1, window: '1h' } as const
const apps: FastifyInstance[] = []
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close()
})

function application(): FastifyInstance {
  const app = fastify()
  apps.push(app)
  return app
}

async function statuses(app: FastifyInstance, ...targets: string[]): Promise<number[]> {
  const all: number[] = []
  for (const target of targets) {
    const [method = '', url = ''] = target.split(' ')
    all.push((await app.inject({ method: method as 'GET', url })).statusCode)
  }
  return all
}

const ok = () => 'ok'

test('holds for the instance on which it is registered and those inside, not for the ones beside', async () => {
  const app = application()
  await app.register(async (inside) => {
    await inside.register(rateLimit(hour))
    inside.get('/in', ok)
    await inside.register(async (deeper) => void deeper.get('/deeper', ok))
  })
  app.get('/out', ok)
  expect(await statuses(app, 'GET /in', 'GET /deeper', 'GET /in')).toEqual([200, 429, 429])
  expect(await statuses(app, 'GET /out', 'GET /out', 'GET /nowhere', 'GET /nowhere')).toEqual([200, 200, 404, 404])
})

describe('a route says what holds for it', () => {
  const strict = { limit: 1, window: '1h', name: 'strict' } as const
  async function withRoutes(config: Record<string, RouteLimit>, await_ = true): Promise<FastifyInstance> {
    const app = application()
    const registered = app.register(rateLimit({ limit: 3, window: '1h', key: (request) => request.headers.host }))
    if (await_) await registered
    for (const [url, limit] of Object.entries(config)) app.get(url, { config: { rateLimit: limit } }, ok)
    app.get('/', ok)
    return app
  }

  test.each([true, false])('registered with await: %s', async (await_) => {
    const app = await withRoutes({ '/login': strict, '/free': false }, await_)
    expect(await statuses(app, 'GET /login', 'GET /login')).toEqual([200, 429])
    expect(await statuses(app, 'GET /free', 'GET /free', 'GET /free', 'GET /free')).toEqual([200, 200, 200, 200])
    expect(await statuses(app, 'GET /', 'GET /', 'GET /', 'GET /')).toEqual([200, 200, 200, 429])
    expect((await app.inject('/login')).headers['ratelimit']).toMatch(/^"strict";/)
  })

  test('HEAD of it counts with GET; another route with the same numbers does not', async () => {
    const app = await withRoutes({ '/a': { ...hour }, '/b': { ...hour } })
    expect(await statuses(app, 'HEAD /a', 'GET /a', 'GET /b')).toEqual([200, 429, 200])
  })

  test('routes that are given one object share one limit', async () => {
    const app = await withRoutes({ '/a': strict, '/b': strict })
    expect(await statuses(app, 'GET /a', 'GET /b')).toEqual([200, 429])
  })

  test('the other options hold beside its numbers, a burst does not', async () => {
    const app = application()
    const key = ({ headers }: FastifyRequest) => headers['x-key']?.toString()
    await app.register(rateLimit({ limit: 9, window: '1h', algorithm: 'token-bucket', burst: 9, key }))
    app.get('/', { config: { rateLimit: { limit: 1, window: '1h' } } }, ok)
    const as = async (name: string) => (await app.inject({ url: '/', headers: { 'x-key': name } })).statusCode
    expect([await as('a'), await as('a'), await as('b')]).toEqual([200, 429, 200])
  })

  test('a mistake is found at the route', async () => {
    const app = application()
    await app.register(rateLimit(hour))
    expect(() => app.get('/', { config: { rateLimit: { limit: 0, window: '1m' } } }, ok)).toThrow(/limit is 0/)
    const guard = createGuard<FastifyRequest>({
      policies: { version: 1, policies: { one: { per: 'address', rule: { algorithm: 'gcra', ...hour } } } },
    })
    const other = application()
    await other.register(rateLimit(guard))
    expect(() => other.get('/', { config: { rateLimit: hour } }, ok)).toThrow(/GET \/ stands beside a guard/)
    other.get('/free', { config: { rateLimit: false } }, ok)
    expect(await statuses(other, 'GET /free', 'GET /free')).toEqual([200, 200])
  })
})

test('a refusal goes through the hooks, with what others set', async () => {
  const app = application()
  app.addHook('onRequest', async (_, reply) => void reply.header('Access-Control-Allow-Origin', '*'))
  const sent: number[] = []
  app.addHook('onResponse', async (_, reply) => void sent.push(reply.statusCode))
  await app.register(rateLimit(hour))
  app.get('/', ok)
  await app.inject('/')
  const { statusCode, headers, body } = await app.inject('/')
  expect([statusCode, headers['access-control-allow-origin']]).toEqual([429, '*'])
  expect(headers['content-length']).toBe(String(body.length))
  expect(sent).toEqual([200, 429])
})

test('a route that sends by itself finds the limit among the headers of its reply', async () => {
  const app = application()
  await app.register(rateLimit({ limit: 9, window: '1h' }))
  app.get('/', (_, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { ...reply.getHeaders(), 'X-Own': '1' } as Record<string, string>).end('ok')
  })
  const { headers } = await app.inject('/')
  expect(headers).toMatchObject({ 'x-own': '1', ratelimit: expect.stringMatching(/;r=8;/) as string })
})

test('errors of key go to the error handler', async () => {
  const app = application()
  app.setErrorHandler((error: Error, _, reply) => reply.code(503).send(error.message))
  await app.register(
    rateLimit({
      ...hour,
      key: () => {
        throw new Error('a mistake')
      },
    }),
  )
  app.get('/', ok)
  const { statusCode, body } = await app.inject('/')
  expect([statusCode, body]).toEqual([503, 'a mistake'])
})

test('a body that does not validate leaves nothing held and charges nothing', async () => {
  const guard = createGuard<FastifyRequest>({
    policies: {
      version: 1,
      policies: {
        flight: { per: 'address', rule: { algorithm: 'concurrency', limit: 1, permitTtl: '1h' } },
        one: { per: 'body:id', rule: { algorithm: 'gcra', limit: 1, window: '1h' } },
      },
    },
  })
  const app = application()
  await app.register(rateLimit(guard))
  const schema = { body: { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } } }
  app.post('/', { schema }, ok)
  const post = async (payload: object) => (await app.inject({ method: 'POST', url: '/', payload })).statusCode
  expect([await post({}), await post({ id: 'x' }), await post({ id: 1 }), await post({ id: 1 })]).toEqual([
    400, 400, 200, 429,
  ])
})
