import type { Server } from 'node:http'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import { rateLimit } from 'catraca/hono'
import type { AdapterDriver, AppRoute } from 'catraca/testing'
import { type Context, Hono } from 'hono'
import { dial, serving } from './serving.ts'
import { responseOf } from './web.ts'

/**
 * Hono on its server for Node. As on other platforms: without what that server gives beside a request, the address by an
 * option.
 */
export function honoDriver(where: 'node' | 'elsewhere'): AdapterDriver<Context, Response> {
  return {
    connect: dial,
    drainsBodies: where === 'elsewhere',
    header: ({ req }, name) => req.header(name),
    status: ({ status }) => status,
    start({ limits, routes }) {
      const app = new Hono()
      const address = ({ env }: Context) => (env as { peer?: string }).peer
      for (const { what, mount } of limits) {
        app.use(rateLimit(what as never, { ...mount, ...(where === 'elsewhere' && { address }) }))
      }
      app.onError((_, c) => c.text('error', 500))
      for (const { method, path, handler } of routes) app.on(method, path, (c) => handle(c, handler))
      const fetch = (request: Request, { incoming, outgoing }: HttpBindings) =>
        app.fetch(request, where === 'node' ? { incoming, outgoing } : { peer: incoming.socket.remoteAddress })
      return serving(createAdaptorServer({ fetch: fetch as never }) as Server)
    },
  }
}

async function handle(c: Context, handler: AppRoute['handler']): Promise<Response> {
  const answer = await handler({
    header: (name) => c.req.header(name),
    decision: c.get('rateLimit'),
    json: () => c.req.json(),
  })
  return responseOf(answer)
}
