import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { rateLimit } from 'catraca/express'
import type { AdapterDriver, AppAnswer } from 'catraca/testing'
import type express from 'express'
import type { Request, RequestHandler, Response } from 'express'
import { dial, serving } from './serving.ts'

async function send(response: Response, { status = 200, headers = {}, body = '' }: AppAnswer): Promise<void> {
  response.status(status).set(headers)
  if (typeof body === 'string') response.send(body)
  else await pipeline(Readable.from(body), response).catch(() => {})
}

/** Express 4 or 5. */
export function expressDriver(make: typeof express): AdapterDriver<Request, Response> {
  return {
    connect: dial,
    header: (request, name) => request.get(name),
    status: ({ statusCode }) => statusCode,
    start({ limits, routes }) {
      const app = make()
      app.use(make.json())
      for (const { what, mount } of limits) app.use(rateLimit<Request, Response>(what as never, mount))
      for (const { method, path, handler } of routes) {
        const handle: RequestHandler = (request, response, next) => {
          const view = {
            header: (name: string) => request.get(name),
            decision: request.rateLimit,
            json: async () => request.body as unknown,
          }
          // Express 4 waits for nothing.
          Promise.resolve()
            .then(() => handler(view))
            .then((answer) => send(response, answer))
            .catch(next)
        }
        if (method === 'GET') app.get(path, handle)
        else app.post(path, handle)
      }
      return serving(createServer(app))
    },
  }
}
