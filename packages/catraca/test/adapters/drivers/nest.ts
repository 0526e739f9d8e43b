import 'reflect-metadata'
import type { Server } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Controller, Get, type INestApplication, Module, Post, Req, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { rateLimit } from 'catraca/nest'
import type { AdapterDriver, AppRoute } from 'catraca/testing'
import type { Request, Response } from 'express'
import { dial, running } from './serving.ts'

/** NestJS on Express. Decorators are called, since the tests are compiled without them. */
export const nestDriver: AdapterDriver<Request, Response> = {
  connect: dial,
  header: (request, name) => request.get(name),
  status: ({ statusCode }) => statusCode,
  seesUnknownRoutes: false,
  refusalType: 'application/json',
  async start({ limits, routes }) {
    const app = await nestApp(controllerOf(routes))
    try {
      app.useGlobalGuards(...limits.map(({ what, mount }) => rateLimit<Request, Response>(what as never, mount)))
      await app.listen(0, '127.0.0.1')
    } catch (error) {
      await app.close()
      throw error
    }
    return running(app.getHttpServer() as Server, () => app.close())
  },
}

/** An application of one controller. */
export async function nestApp(controller: new () => object): Promise<INestApplication> {
  // oxlint-disable-next-line typescript/no-extraneous-class -- what Nest makes of modules and controllers
  class App {}
  Module({ controllers: [controller] })(App)
  return NestFactory.create(App, { logger: false })
}

function controllerOf(routes: readonly AppRoute[]): new () => object {
  // oxlint-disable-next-line typescript/no-extraneous-class -- its methods come below
  class Routes {}
  const methods = Routes.prototype as Record<string, unknown>
  for (const [index, { method, path, handler }] of routes.entries()) {
    const name = `route${index}`
    methods[name] = async (request: Request, response: Response) => {
      const answer = await handler({
        header: (header) => request.get(header),
        decision: request.rateLimit,
        json: async () => request.body as unknown,
      })
      const { status = 200, headers = {}, body = '' } = answer
      response.status(status).set(headers)
      if (typeof body === 'string') response.send(body)
      else await pipeline(Readable.from(body), response).catch(() => {})
    }
    const descriptor = Object.getOwnPropertyDescriptor(methods, name) as PropertyDescriptor
    const route = method === 'GET' ? Get : Post
    route(path)(methods, name, descriptor)
    Req()(methods, name, 0)
    Res()(methods, name, 1)
  }
  Controller()(Routes)
  return Routes
}
