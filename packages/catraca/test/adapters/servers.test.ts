import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { rateLimit as expressLimit } from 'catraca/express'
import { createGuard } from 'catraca/http'
import { rateLimit as nodeLimit } from 'catraca/node'
import { routeBypassSuite } from 'catraca/testing'
import express, { type RequestHandler } from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'

interface Answer {
  status: number
  headers: IncomingMessage['headers']
  body: string
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

function stop(server: Server): void {
  server.close()
  server.closeAllConnections()
}

async function started(server: Server): Promise<number> {
  onTestFinished(() => stop(server))
  return listen(server)
}

async function ask(
  port: number,
  path = '/',
  options: { method?: string; headers?: Record<string, string>; body?: string | Buffer } = {},
): Promise<Answer> {
  const { body, ...rest } = options
  const outgoing = request({ port, host: '127.0.0.1', path, agent: false, ...rest })
  outgoing.on('error', () => {})
  outgoing.end(body)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of incoming) text += String(chunk)
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: text }
}

/** One request target as it is, so that nothing tidies it up on the way. */
async function askRaw(port: number, method: string, target: string): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  socket.write(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, 'latin1')
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
}

const two = { limit: 2, window: '1d' } as const
type Options = Parameters<typeof expressLimit>[0]

/** The same limit before the same handler, in each framework. */
const servers: Record<string, (options: Options, handler: () => void) => Server> = {
  'node:http': (options, handler) =>
    createServer(
      nodeLimit(options)((_request, response: import('node:http').ServerResponse) => {
        handler()
        response.end('hello')
      }),
    ),
  express: (options, handler) => {
    const app = express()
    app.use(expressLimit(options))
    app.use((_request, response) => {
      handler()
      response.send('hello')
    })
    return createServer(app)
  },
}

describe.each(Object.keys(servers))('%s', (name) => {
  const serve = servers[name] as (typeof servers)[string]

  test('admits up to the limit, says what is left, and refuses with a problem', async () => {
    let reached = 0
    const port = await started(serve(two, () => reached++))
    const answers = [await ask(port), await ask(port), await ask(port)]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(answers.map(({ headers }) => headers['ratelimit-policy'])).toEqual(Array(3).fill('"default";q=2;w=86400'))
    expect(answers[0]?.headers['ratelimit']).toBe('"default";r=1;t=86400')
    const refused = answers[2] as Answer
    expect(refused.headers['content-type']).toBe('application/problem+json')
    expect(refused.headers['cache-control']).toBe('no-store')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(refused.headers['content-length'])).toBe(Buffer.byteLength(refused.body))
    expect(JSON.parse(refused.body)).toMatchObject({ status: 429, 'violated-policies': ['default'], limit: 2 })
    expect((await ask(port, '/', { method: 'HEAD' })).body).toBe('')
    expect(reached).toBe(2)
  })

  test('key, skip, cost and other limits for some routes', async () => {
    const port = await started(
      serve(
        {
          ...two,
          key: (one) => String(one.headers['x-user'] ?? ''),
          skip: (one) => one.url === '/free',
          cost: (one) => (one.url === '/dear' ? 2 : 1),
          routes: { 'POST /login': { limit: 1, window: '1d' }, '/open/**': false },
        },
        () => {},
      ),
    )
    const by = (user: string, path = '/', method = 'GET'): Promise<number> =>
      ask(port, path, { method, headers: { 'x-user': user } }).then(({ status }) => status)
    expect([await by('a', '/dear'), await by('a'), await by('b'), await by('b'), await by('b')]).toEqual([
      200, 429, 200, 200, 429,
    ])
    expect([await by('b', '/free'), await by('b', '/open/x')]).toEqual([200, 200])
    expect([await by('c', '/login', 'POST'), await by('c', '/login', 'POST'), await by('c')]).toEqual([200, 429, 200])
    // An empty key is the address, not one key for everybody without.
    expect([await by(''), await by(''), await by('')]).toEqual([200, 200, 429])
  })

  test('what key or cost throw stops the request', async () => {
    let reached = 0
    const port = await started(serve({ ...two, cost: () => 0.5 }, () => reached++))
    expect((await ask(port)).status).toBe(500)
    expect(reached).toBe(0)
  })

  test('a refused body does not cost the answer, and a short one not the connection', async () => {
    const port = await started(serve({ limit: 1, window: '1d' }, () => {}))
    await ask(port)
    const large = await ask(port, '/', { method: 'POST', body: Buffer.alloc(5_000_000) })
    expect(large.status).toBe(429)
    const socket = connect(port, '127.0.0.1')
    const post = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n${'x'.repeat(10_000)}`
    socket.write(`${post}${post}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    expect(text.match(/HTTP\/1\.1 429/g)).toHaveLength(3)
  })
})

describe('a guard before a server', () => {
  const policies = {
    version: 1,
    policies: {
      running: { match: { identity: 'client' }, per: 'client', rule: { algorithm: 'concurrency', limit: 1 } },
      holds: {
        match: { routes: ['POST /shop/holds'] },
        per: 'body:eventId',
        rule: { algorithm: 'sliding-log', limit: 1, window: '1h' },
      },
    },
  } as const

  test('gives permits back when an answer ends, fails, or its caller leaves', async () => {
    const guard = createGuard<IncomingMessage>({ policies: structuredClone(policies) as never, identify: () => ({ client: 'c' }) })
    const app = express()
    app.use(expressLimit(guard) as unknown as RequestHandler)
    app.get('/ok', (_request, response) => void response.send('ok'))
    app.get('/fail', () => {
      throw new Error('planned')
    })
    app.use((_error: unknown, _request: unknown, response: express.Response, _next: unknown) => void response.sendStatus(500))
    const port = await started(createServer(app))
    expect([(await ask(port, '/ok')).status, (await ask(port, '/fail')).status]).toEqual([200, 500])
    const slow = express()
    let leave = (): void => {}
    let running = false
    slow.use(expressLimit(guard) as unknown as RequestHandler)
    slow.get('/', (incoming) => {
      running = true
      incoming.once('close', () => leave())
    })
    const slowPort = await started(createServer(slow))
    const outgoing = request({ port: slowPort, host: '127.0.0.1', agent: false })
    outgoing.on('error', () => {})
    outgoing.end()
    while (!running) await new Promise((resolve) => setImmediate(resolve))
    expect((await ask(port, '/ok')).status).toBe(429)
    const left = new Promise<void>((resolve) => {
      leave = resolve
    })
    outgoing.destroy()
    await left
    await new Promise((resolve) => setImmediate(resolve))
    expect((await ask(port, '/ok')).status).toBe(200)
  })

  test('looks into a parsed body, also in a mounted router, whose full path counts', async () => {
    const guard = createGuard<IncomingMessage>({ policies: structuredClone(policies) as never })
    const app = express()
    const router = express.Router()
    router.use(expressLimit(guard) as unknown as RequestHandler)
    router.post('/holds', (_request, response) => void response.send('held'))
    app.use(express.json())
    app.use('/shop', router)
    const port = await started(createServer(app))
    const hold = (eventId: unknown): Promise<number> =>
      ask(port, '/shop/holds', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ eventId }),
      }).then(({ status }) => status)
    expect([await hold(7), await hold(7), await hold('7'), await hold(8)]).toEqual([200, 429, 429, 200])
  })

  test('lists of an outer and an inner limit are joined', async () => {
    const app = express()
    app.use(expressLimit({ ...two, name: 'outer' }))
    app.use(expressLimit({ ...two, name: 'inner' }))
    app.get('/', (one, response) => void response.json((one as { rateLimit?: { policy: string } }).rateLimit?.policy))
    const port = await started(createServer(app))
    const { headers, body } = await ask(port)
    expect(headers['ratelimit-policy']).toBe('"outer";q=2;w=86400, "inner";q=2;w=86400')
    expect(body).toBe('"inner"')
  })

  test('does not call the handler of a caller who left while it was verified, and charges nothing', async () => {
    let verify = (): void => {}
    let handled = 0
    const guard = createGuard<IncomingMessage>({
      policies: { version: 1, policies: { one: { per: 'service', rule: { algorithm: 'token-bucket', limit: 1, window: '1d' } } } },
      identify: () =>
        new Promise((resolve) => {
          verify = () => resolve({ client: 'c' })
        }),
    })
    let seen: IncomingMessage | undefined
    const limited = nodeLimit(guard)((_request, response: import('node:http').ServerResponse) => {
      handled++
      response.end()
    })
    const port = await started(
      createServer((incoming, response) => {
        seen = incoming
        limited(incoming as never, response)
      }),
    )
    const outgoing = request({ port, host: '127.0.0.1', agent: false })
    outgoing.on('error', () => {})
    outgoing.end()
    while (seen === undefined) await new Promise((resolve) => setImmediate(resolve))
    outgoing.destroy()
    await once(seen.socket, 'close')
    verify()
    await new Promise((resolve) => setImmediate(resolve))
    expect(handled).toBe(0)
    expect(guard.explain({ method: 'GET', path: '/' })[0]?.says.remaining).toBe(1)
  })

  test('an error of identify is a 500 of node:http, and the handler is not called', async () => {
    const errors: unknown[] = []
    const guard = createGuard<IncomingMessage>({ policies: structuredClone(policies) as never, identify: () => Promise.reject(new Error('down')) })
    const port = await started(
      createServer(nodeLimit(guard, { onError: (error) => errors.push(error) })(() => expect.unreachable()) as never),
    )
    expect((await ask(port)).status).toBe(500)
    expect(errors).toEqual([new Error('down')])
  })
})

describe('no other spelling gets around a limit', () => {
  const policies = {
    version: 1,
    policies: {
      login: { match: { routes: ['POST /login'] }, per: 'service', rule: { algorithm: 'sliding-log', limit: 1, window: '1h' } },
      export: {
        match: { routes: ['GET /reports/:id/export'] },
        per: 'service',
        rule: { algorithm: 'sliding-log', limit: 1, window: '1h' },
      },
    },
  } as const

  const appOf = async (server: Server, reached: () => number) => {
    const port = await listen(server)
    return {
      send: (method: string, target: string) => askRaw(port, method, target),
      reached,
      close: async () => stop(server),
    }
  }

  describe('node:http, which takes the path as it comes', () => {
    routeBypassSuite(test, async () => {
      let reached = 0
      const guard = createGuard<IncomingMessage>({ policies: structuredClone(policies) as never })
      const server = createServer(
        nodeLimit(guard)((incoming: IncomingMessage, response: import('node:http').ServerResponse) => {
          const { pathname } = new URL(incoming.url ?? '/', 'http://x')
          const path = pathname.toLowerCase()
          const known = path === '/login' || /^\/reports\/[^/]+\/export$/.test(path)
          if (known) reached++
          response.statusCode = known ? 200 : 404
          response.end()
        }) as never,
      )
      return appOf(server, () => reached)
    })
  })

  describe('express', () => {
    routeBypassSuite(test, async () => {
      let reached = 0
      const guard = createGuard<IncomingMessage>({ policies: structuredClone(policies) as never })
      const app = express()
      app.use(expressLimit(guard) as unknown as RequestHandler)
      app.post('/login', (_request, response) => {
        reached++
        response.end()
      })
      app.get('/reports/:id/export', (_request, response) => {
        reached++
        response.end()
      })
      return appOf(createServer(app), () => reached)
    })
  })

  describe('express, the limit in a mounted router', () => {
    routeBypassSuite(test, async () => {
      let reached = 0
      const guard = createGuard<IncomingMessage>({ policies: structuredClone(policies) as never })
      const app = express()
      const login = express.Router()
      login.use(expressLimit(guard) as unknown as RequestHandler)
      login.post('/', (_request, response) => {
        reached++
        response.end()
      })
      const reports = express.Router()
      reports.use(expressLimit(guard) as unknown as RequestHandler)
      reports.get('/:id/export', (_request, response) => {
        reached++
        response.end()
      })
      app.use('/login', login)
      app.use('/reports', reports)
      return appOf(createServer(app), () => reached)
    })
  })
})
