import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { rateLimit } from 'catraca/koa'
import type { AdapterDriver } from 'catraca/testing'
import Koa, { type Context } from 'koa'
import { dial, isJson, jsonOf, routeOf, serving } from './serving.ts'

export const koaDriver: AdapterDriver<Context, Context> = {
  connect: dial,
  header: ({ headers }, name) => headers[name]?.toString(),
  status: ({ status }) => status,
  start({ limits, routes }) {
    const app = new Koa()
    app.silent = true
    app.use(async (ctx, next) => {
      // What a parser of bodies does.
      if (isJson(ctx.req)) {
        const body = await jsonOf(ctx.req).catch(() => ctx.throw(400))
        Object.assign(ctx.request, { body })
      }
      await next()
    })
    for (const { what, mount } of limits) app.use(rateLimit(what as never, mount))
    app.use(async (ctx) => {
      const route = routeOf(routes, ctx.method, ctx.originalUrl)
      if (route === undefined) return
      const {
        status = 200,
        headers = {},
        body = '',
      } = await route.handler({
        header: (name) => ctx.get(name) || undefined,
        decision: ctx.state.rateLimit,
        json: async () => (ctx.request as { body?: unknown }).body,
      })
      ctx.set(headers)
      ctx.status = status
      if (typeof body === 'string') {
        if (body !== '') ctx.body = body
        return
      }
      const stream = Readable.from(body)
      // Koa leaves an answer open whose stream broke.
      stream.on('error', () => ctx.res.destroy())
      ctx.body = stream
    })
    const handle = app.callback()
    return serving(createServer((request, response) => void handle(request, response)))
  },
}
