import { rateLimit } from 'catraca/hono'
import { createGuard } from 'catraca/http'
import { type Context, Hono } from 'hono'
import { cors } from 'hono/cors'
import { expect, test } from 'vitest'

const hour = { limit: 1, window: '1h' } as const
const address = () => '192.0.2.1'
const policies = (per: string, routes?: string[]) =>
  ({
    version: 1,
    policies: {
      one: { per, rule: { algorithm: 'gcra', ...hour }, ...(routes !== undefined && { match: { routes } }) },
    },
  }) as const

/** Statuses of requests one after the other, with no server around. */
async function statuses(app: Hono, ...requests: [path: string, init?: RequestInit][]): Promise<number[]> {
  const all: number[] = []
  for (const [path, init] of requests) all.push((await app.request(path, init)).status)
  return all
}

test('without a socket and an address the request is an error', async () => {
  for (const limit of [rateLimit(hour), rateLimit(createGuard<Context>({ policies: policies('address') }))]) {
    const app = new Hono()
    const errors: unknown[] = []
    app.onError((error, c) => {
      errors.push(error)
      return c.text('error', 500)
    })
    app.use(limit)
    app.get('/', (c) => c.text('ok'))
    expect(await statuses(app, ['/'])).toEqual([500])
    expect(errors).toEqual([expect.objectContaining({ code: 'CATRACA_ADDRESS_MISSING' })])
  }
})

test('a key needs no address', async () => {
  const app = new Hono()
  app.use(rateLimit({ ...hour, key: (c) => c.req.header('x-key') }))
  app.get('/', (c) => c.text('ok'))
  const as = (key: string): [string, RequestInit] => ['/', { headers: { 'x-key': key } }]
  expect(await statuses(app, as('a'), as('a'), as('b'))).toEqual([200, 429, 200])
})

test('routes are compared with the whole path, also in an application inside', async () => {
  const inner = new Hono()
  inner.use(rateLimit(createGuard<Context>({ policies: policies('address', ['GET /api/items/:id']) }), { address }))
  inner.get('/items/:id', (c) => c.text('ok'))
  inner.get('/other', (c) => c.text('ok'))
  const app = new Hono().route('/api', inner)
  expect(await statuses(app, ['/api/items/1'], ['/api/items/2'], ['/api/other'])).toEqual([200, 429, 200])
})

test('policies see a body that somebody read before', async () => {
  const app = new Hono()
  app.use(async (c, next) => {
    await c.req.text()
    await next()
  })
  app.use(rateLimit(createGuard<Context>({ policies: policies('body:id') }), { address }))
  app.post('/', async (c) => c.json(await c.req.json()))
  const post = (id: number): [string, RequestInit] => ['/', { method: 'POST', body: JSON.stringify({ id }) }]
  expect(await statuses(app, post(1), post(2), post(1))).toEqual([200, 200, 429])
})

test('what others set goes out with a refusal', async () => {
  const app = new Hono()
  app.use(cors({ origin: 'http://example.test', exposeHeaders: ['RateLimit', 'Retry-After'] }))
  app.use(rateLimit(hour, { address }))
  app.get('/', (c) => c.text('ok'))
  const init = { headers: { Origin: 'http://example.test' } }
  await app.request('/', init)
  const { status, headers } = await app.request('/', init)
  expect(status).toBe(429)
  expect(headers.get('Access-Control-Allow-Origin')).toBe('http://example.test')
  expect(headers.get('Retry-After')).toMatch(/^\d+$/)
})

test('an answer made by hand, and one that cannot be changed, tell the limit', async () => {
  const app = new Hono()
  app.use(rateLimit({ limit: 9, window: '1h', name: 'outer' }, { address }))
  app.use(rateLimit({ limit: 9, window: '1h', name: 'inner' }, { address }))
  app.get('/made', () => new Response('ok'))
  app.get('/moved', () => Response.redirect('http://localhost/made', 307))
  for (const path of ['/made', '/moved']) {
    const { headers } = await app.request(path)
    expect(headers.get('RateLimit'), path).toMatch(/^"outer";.*, "inner";/)
  }
})
