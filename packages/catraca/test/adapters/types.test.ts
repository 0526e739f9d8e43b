import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { type MemoryStore, memoryStore } from 'catraca'
import { rateLimit as expressLimit } from 'catraca/express'
import { type AnyGuard, createGuard, type Guard } from 'catraca/http'
import { rateLimit as nodeLimit } from 'catraca/node'
import type { Explanation } from 'catraca/policy'
import express, { type Request, type RequestHandler, Router } from 'express'
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
