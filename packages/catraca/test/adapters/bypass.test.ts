import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { rateLimit as expressLimit } from 'catraca/express'
import { createGuard } from 'catraca/http'
import { rateLimit as nodeLimit } from 'catraca/node'
import { type BypassApp, routeBypassSuite } from 'catraca/testing'
import express, { type RequestHandler } from 'express'
import { describe, test } from 'vitest'
import { FakeRemoteStore } from '../guard/remote-store.ts'
import { closed, listening, send } from './servers.ts'

type Listener = (request: IncomingMessage, response: ServerResponse) => void

async function app(build: (count: () => void) => Listener, base: string): Promise<BypassApp> {
  let reached = 0
  const server = await listening(createServer(build(() => reached++)))
  const { port } = server.address() as AddressInfo
  return {
    send: async (method, target) => (await send({ port }, method, based(target, base))).status,
    reached: () => reached,
    close: () => closed(server),
  }
}

/** A spelling of a route under the path a router is mounted at. */
function based(target: string, base: string): string {
  if (base === '') return target
  const [, host = '', path = ''] = /^(https?:\/\/[^/?]*)?(.*)$/is.exec(target) ?? []
  return path.startsWith('/') || path.startsWith('?') ? `${host}${base}${path}` : target
}

const hour = { limit: 1, window: '1h' } as const
const policies = (base: string) => ({
  version: 1 as const,
  storeFailure: { expectedInstances: 6 },
  policies: Object.fromEntries(
    [`POST ${base}/login`, `GET ${base}/reports/:id/export`].map((route, index) => [
      `route-${index}`,
      { match: { routes: [route] }, per: 'address', rule: { algorithm: 'sliding-counter', ...hour } },
    ]),
  ),
})
const options = (base: string) => ({
  limit: 1_000,
  window: '1m' as const,
  routes: { [`POST ${base}/login`]: hour, [`GET ${base}/reports/:id/export`]: hour },
})

describe.each(['simple form', 'guard', 'guard over a shared store'] as const)('%s', (form) => {
  const limitOf = (base: string) => {
    if (form === 'simple form') return options(base)
    return form === 'guard'
      ? createGuard({ policies: policies(base) })
      : createGuard({ policies: policies(base), store: new FakeRemoteStore() })
  }

  describe('node:http', () => {
    routeBypassSuite(test, () =>
      app((count) => {
        const limited = nodeLimit(limitOf(''))
        return limited(({ method, url = '' }: IncomingMessage, response: ServerResponse) => {
          let path = ''
          try {
            // The most generous of servers: resolves, decodes, takes any case.
            path = decodeURIComponent(new URL(url, 'http://localhost').pathname).toLowerCase().replace(/\/+$/, '')
          } catch {}
          const login = method === 'POST' && path === '/login'
          const report = (method === 'GET' || method === 'HEAD') && /^\/reports\/.*\/export$/s.test(path)
          if (login || report) count()
          response.writeHead(login || report ? 200 : 404).end()
        })
      }, ''),
    )
  })

  const framework =
    (base: string) =>
    (count: () => void): Listener => {
      const main = express()
      const routes = base === '' ? main : express.Router()
      const handler: RequestHandler = (_, response) => {
        count()
        response.end('ok')
      }
      routes.use(expressLimit(limitOf(base)))
      routes.post('/login', handler)
      routes.get('/reports/:id/export', handler)
      if (base !== '') main.use(base, routes)
      return main
    }

  describe('Express', () => {
    routeBypassSuite(test, () => app(framework(''), ''))
  })
  describe('Express router', () => {
    routeBypassSuite(test, () => app(framework('/sub'), '/sub'))
  })
})
