import type { Server } from 'node:http'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import type { rateLimit as Limit } from 'catraca/fetch'
import type { AdapterDriver } from 'catraca/testing'
import { dial, routeOf, serving } from './serving.ts'
import { responseOf, viewOf } from './web.ts'

type Parts = [parts: HttpBindings]

/** Handlers of `Request` and `Response` behind Hono's server for Node, which gives its parts beside the request. */
export function fetchDriver(rateLimit: typeof Limit): AdapterDriver<Request, Response> {
  return {
    connect: dial,
    answersErrors: false,
    drainsBodies: true,
    header: ({ headers }, name) => headers.get(name) ?? undefined,
    status: ({ status }) => status,
    start({ limits, routes }) {
      const address = (_: Request, { incoming }: HttpBindings) => incoming.socket.remoteAddress
      const limit = (index: number) => {
        const { what, mount } = limits[index] as (typeof limits)[number]
        return rateLimit<Request, Response, Parts>(what as never, { ...mount, address })
      }
      let handler = limit(limits.length - 1)(async (request: Request, decision) => {
        const route = routeOf(routes, request.method, request.url)
        return route === undefined
          ? new Response('not found', { status: 404 })
          : responseOf(await route.handler(viewOf(request, decision)))
      })
      for (let index = limits.length - 2; index >= 0; index--) handler = limit(index)(handler)
      const fetch = async (request: Request, parts: HttpBindings): Promise<Response> => {
        try {
          return await handler(request, parts)
        } catch {
          return new Response('error', { status: 500 })
        }
      }
      return serving(createAdaptorServer({ fetch: fetch as never }) as Server)
    },
  }
}
