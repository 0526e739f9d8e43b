import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type NodeRequest, rateLimit } from 'catraca/node'
import type { AdapterDriver } from 'catraca/testing'
import { dial, isJson, jsonOf, routeOf, send, serving } from './serving.ts'

type Incoming = IncomingMessage & NodeRequest & { body?: unknown }
type Handler = (request: Incoming, response: ServerResponse) => void

/** `node:http` with handlers around handlers. */
export const nodeDriver: AdapterDriver<Incoming, ServerResponse> = {
  connect: dial,
  header: ({ headers }, name) => headers[name]?.toString(),
  status: ({ statusCode }) => statusCode,
  start({ limits, routes }) {
    const handle = async (request: Incoming, response: ServerResponse): Promise<void> => {
      const route = routeOf(routes, request.method ?? '', request.url ?? '')
      if (route === undefined) return send(response, { status: 404, body: 'not found' })
      try {
        const answer = await route.handler({
          header: (name) => request.headers[name]?.toString(),
          decision: request.rateLimit,
          json: async () => request.body,
        })
        await send(response, answer)
      } catch {
        await send(response, { status: 500, body: 'error' })
      }
    }
    let limited: Handler = (request, response) => void handle(request, response)
    for (const { what, mount } of limits.toReversed()) {
      limited = rateLimit<Incoming, ServerResponse>(what as never, mount)(limited)
    }
    const parsed = async (request: Incoming, response: ServerResponse): Promise<void> => {
      try {
        if (isJson(request)) request.body = await jsonOf(request)
      } catch {
        await send(response, { status: 400 })
        return
      }
      limited(request, response)
    }
    return serving(createServer((request, response) => void parsed(request, response)))
  },
}
