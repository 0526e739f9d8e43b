import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { CanActivate } from '@nestjs/common'
import { type Decision, type MemoryStore, memoryStore } from 'catraca'
import { rateLimit as expressLimit } from 'catraca/express'
import { rateLimit as fastifyLimit } from 'catraca/fastify'
import { rateLimit as fetchLimit } from 'catraca/fetch'
import { rateLimit as honoLimit } from 'catraca/hono'
import { type AnyGuard, createGuard, type Guard } from 'catraca/http'
import { rateLimit as koaLimit } from 'catraca/koa'
import { rateLimit as nestLimit, RateLimit } from 'catraca/nest'
import { rateLimit as nodeLimit } from 'catraca/node'
import type { Explanation } from 'catraca/policy'
import express, { type Response as ExpressResponse, type Request, type RequestHandler, Router } from 'express'
import fastify, { type FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'
import Koa from 'koa'
import { expect, expectTypeOf, test } from 'vitest'
import { FakeRemoteStore } from '../guard/remote-store.ts'

const policies = {
  version: 1 as const,
  policies: { a: { per: 'address', rule: { algorithm: 'sliding-counter', limit: 9, window: '1m' } } },
}

test('a limit is what Express wants before a handler', () => {
  const app = express()
  app.use(expressLimit({ limit: 100, window: '1m' }))
  app.use('/sub', Router().use(expressLimit({ limit: 100, window: '1m' })))
  app.post('/login', expressLimit({ limit: 5, window: '15m' }), (_, response) => {
    response.end()
  })
  app.use(expressLimit(createGuard({ policies })))
  app.use(expressLimit(createGuard<Request>({ policies, identify: (request) => ({ client: request.ip ?? '' }) })))
  app.use(expressLimit<Request>({ limit: 100, window: '1m', key: (request) => request.get('x-api-key') }))
  app.use(expressLimit({ limit: 100, window: '1m', key: (request: Request) => request.ip }))
  app.use(expressLimit({ limit: 100, window: '1m', cost: ({ headers }) => (headers['x-dear'] === undefined ? 1 : 5) }))
  const handler: RequestHandler = expressLimit({ limit: 100, window: '1m' })
  expect(handler).toBeTypeOf('function')
  expectTypeOf(expressLimit({ limit: 100, window: '1m' })).toExtend<RequestHandler>()
})

test('a limit is what node:http wants around a handler', () => {
  const handler = (request: IncomingMessage, response: ServerResponse) => {
    response.end(request.url)
  }
  createServer(nodeLimit({ limit: 100, window: '1m' })(handler))
  createServer(nodeLimit({ limit: 100, window: '1m', key: (request: IncomingMessage) => request.url })(handler))
  createServer(nodeLimit<IncomingMessage>(createGuard<IncomingMessage>({ policies }))(handler))
  createServer(nodeLimit(createGuard<IncomingMessage>({ policies }))(handler))
  createServer(nodeLimit(createGuard({ policies }))(handler))
  const listener: RequestListener = nodeLimit({ limit: 100, window: '1m' })((_, response) => {
    response.end()
  })
  expect(listener).toBeTypeOf('function')
})

test('explain answers at once over memory, and promises over a shared store', () => {
  const shared = { ...policies, storeFailure: { expectedInstances: 6 } }
  const inMemory = createGuard<Request>({ policies, store: memoryStore() })
  expectTypeOf(inMemory).toEqualTypeOf<Guard<Request>>()
  const overStore = createGuard<Request>({ policies: shared, store: new FakeRemoteStore() })
  expectTypeOf(overStore).toEqualTypeOf<Guard<Request, Promise<Explanation[]>>>()
  const either = (store: FakeRemoteStore | MemoryStore) => createGuard<Request>({ policies: shared, store })
  expectTypeOf(either).returns.toEqualTypeOf<AnyGuard<Request>>()
  for (const guard of [inMemory, overStore, either(memoryStore())]) {
    expectTypeOf(expressLimit(guard)).toExtend<RequestHandler>()
  }
})

test('Express handlers see the decision', () => {
  const app = express()
  app.get('/', (request, response) => {
    expectTypeOf(request.rateLimit).toEqualTypeOf<Decision | undefined>()
    response.end()
  })
  app.use(
    expressLimit<Request, ExpressResponse>({
      limit: 5,
      window: '1m',
      settle: (_, response) => (response.statusCode < 400 ? 0 : 1),
    }),
  )
  app.use(expressLimit({ limit: 5, window: '1m', settle: (_, response) => (response.statusCode < 400 ? 0 : 1) }))
  app.use(expressLimit(createGuard({ policies }), { settle: (_, response) => (response.statusCode < 400 ? 0 : 1) }))
})

test('a limit is a plugin of Fastify, whose handlers see the decision', async () => {
  const app = fastify()
  await app.register(fastifyLimit({ limit: 100, window: '1m', key: (request) => request.ip }))
  const guarded = fastify()
  await guarded.register(
    fastifyLimit(createGuard<FastifyRequest>({ policies, identify: ({ ip }) => ({ client: ip }) })),
  )
  await guarded.register(
    fastifyLimit(createGuard({ policies }), { settle: (_, reply) => (reply.statusCode < 400 ? 0 : 1) }),
  )
  const config = { rateLimit: { limit: 5, window: '15m', algorithm: 'gcra' } } as const
  app.get('/', { config }, (request, reply) => {
    expectTypeOf(request.rateLimit).toEqualTypeOf<Decision | undefined>()
    return reply.send(request.rateLimit?.remaining)
  })
  app.get('/free', { config: { rateLimit: false } }, () => 'ok')
  // @ts-expect-error A limit has a window.
  expect(() => app.get('/wrong', { config: { rateLimit: { limit: 5 } } }, () => 'ok')).toThrow(/window/)
  await Promise.all([app.close(), guarded.close()])
})

test('a limit is a middleware of Hono, whose handlers see the decision', () => {
  const app = new Hono<{ Bindings: { ip: string }; Variables: { user: string } }>()
  app.use(honoLimit({ limit: 100, window: '1m' }))
  app.use('/api/*', honoLimit({ limit: 100, window: '1m', key: (c) => c.req.header('x-api-key') }))
  app.use(
    honoLimit<{ Bindings: { ip: string } }>(
      { limit: 100, window: '1m', settle: (_, response) => (response.status < 400 ? 0 : 1) },
      { address: (c) => c.env.ip },
    ),
  )
  app.use(honoLimit(createGuard<Context>({ policies, identify: (c) => ({ client: c.req.header('x') ?? '' }) })))
  app.get('/', (c) => {
    expectTypeOf(c.get('rateLimit')).toEqualTypeOf<Decision | undefined>()
    expectTypeOf(c.var.user).toEqualTypeOf<string>()
    return c.text(`${c.var.rateLimit?.remaining}`)
  })
})

test('a limit is a middleware of Koa, whose handlers see the decision', () => {
  const app = new Koa()
  app.use(koaLimit({ limit: 100, window: '1m', key: (ctx) => ctx.get('x-api-key') }))
  app.use(koaLimit(createGuard({ policies }), { settle: ({ status }) => (status < 400 ? 0 : 1) }))
  app.use((ctx) => {
    expectTypeOf(ctx.state.rateLimit).toEqualTypeOf<Decision | undefined>()
  })
})

test('a limit is a guard of Nest', () => {
  const guard: CanActivate = nestLimit<Request>({ limit: 100, window: '1m', key: (request) => request.ip })
  expectTypeOf(nestLimit(createGuard<Request>({ policies }))).toEqualTypeOf<CanActivate>()
  expectTypeOf(RateLimit({ limit: 5, window: '1m' })).toExtend<MethodDecorator>()
  expect(guard).toHaveProperty('canActivate')
})

test('a limit is what a platform wants around a handler of Request and Response', () => {
  interface Server {
    requestIP(request: globalThis.Request): { address: string } | null
  }
  const address = (request: globalThis.Request, server: Server) => server.requestIP(request)?.address
  const limited = fetchLimit({ limit: 100, window: '1m' }, { address })
  const handler = limited((request, decision, server) => {
    expectTypeOf(request).toEqualTypeOf<globalThis.Request>()
    expectTypeOf(decision).toEqualTypeOf<Decision | undefined>()
    expectTypeOf(server).toEqualTypeOf<Server>()
    return new Response(`${decision?.remaining}`)
  })
  expectTypeOf(handler).toExtend<(request: globalThis.Request, server: Server) => Response | Promise<Response>>()
  const twice = limited(handler)
  expectTypeOf(twice).toExtend<(request: globalThis.Request, server: Server) => Response | Promise<Response>>()
  const key = ({ headers }: globalThis.Request) => headers.get('x-api-key') ?? undefined
  const settle = (_: globalThis.Request, response: globalThis.Response) => (response.status < 400 ? 0 : 1)
  const alone = fetchLimit({ limit: 100, window: '1m', key, settle })((request) => new Response(request.url))
  expectTypeOf(alone).toExtend<(request: globalThis.Request) => globalThis.Response | Promise<globalThis.Response>>()
})
