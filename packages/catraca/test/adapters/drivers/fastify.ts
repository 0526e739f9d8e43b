import { Readable } from 'node:stream'
import { rateLimit } from 'catraca/fastify'
import type { AdapterDriver } from 'catraca/testing'
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { dial, running } from './serving.ts'

export const fastifyDriver: AdapterDriver<FastifyRequest, FastifyReply> = {
  connect: dial,
  header: ({ headers }, name) => headers[name]?.toString(),
  status: ({ statusCode }) => statusCode,
  async start({ limits, routes }) {
    const app = fastify({ forceCloseConnections: true })
    for (const { what, mount } of limits) await app.register(rateLimit(what as never, mount))
    for (const { method, path, handler } of routes) {
      app.route({
        method,
        url: path,
        handler: async (request, reply) => {
          const {
            status = 200,
            headers = {},
            body,
          } = await handler({
            header: (name) => request.headers[name]?.toString(),
            decision: request.rateLimit,
            json: async () => request.body,
          })
          reply.code(status).headers(headers)
          return reply.send(typeof body === 'object' ? Readable.from(body) : body)
        },
      })
    }
    await app.listen({ port: 0, host: '127.0.0.1' })
    return running(app.server, () => app.close())
  },
}
