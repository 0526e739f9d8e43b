import 'reflect-metadata'
import type { INestApplication } from '@nestjs/common'
import { type ArgumentsHost, type CanActivate, Catch, Controller, Get, type HttpException } from '@nestjs/common'
import { createGuard } from 'catraca/http'
import { RateLimit, rateLimit, SkipRateLimit } from 'catraca/nest'
import type { Response as ExpressResponse } from 'express'
import { afterEach, expect, test } from 'vitest'
import { nestApp } from './drivers/nest.ts'

const apps: INestApplication[] = []
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close()
})

/** A controller whose methods are routes of their names, with the decorators given. */
async function serve(
  guard: CanActivate,
  routes: Record<string, MethodDecorator[]>,
  ofClass: ClassDecorator[] = [],
): Promise<(path: string) => Promise<Response>> {
  class Routes {
    readonly made = true
  }
  const methods = Routes.prototype as unknown as Record<string, unknown>
  for (const [name, decorators] of Object.entries(routes)) {
    methods[name] = () => name
    const descriptor = Object.getOwnPropertyDescriptor(methods, name) as PropertyDescriptor
    for (const decorate of [Get(name), ...decorators]) decorate(methods, name, descriptor)
  }
  for (const decorate of [Controller(), ...ofClass]) decorate(Routes)
  const app = await nestApp(Routes)
  apps.push(app)
  app.useGlobalGuards(guard)
  app.useGlobalFilters(new Filter())
  await app.listen(0, '127.0.0.1')
  const url = await app.getUrl()
  return (path) => fetch(`${url}/${path}`)
}

class Filter {
  catch(exception: HttpException, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<ExpressResponse>()
    response.setHeader('X-Filter', '1')
    response.status(exception.getStatus()).json(exception.getResponse())
  }
}
Catch()(Filter)

const twice = async (ask: (path: string) => Promise<Response>, path: string) => [
  (await ask(path)).status,
  (await ask(path)).status,
]

test('a route has numbers of its own, or none; so has a controller', async () => {
  const limit = rateLimit({ limit: 3, window: '1h' })
  const strict = { limit: 1, window: '1h' } as const
  const ask = await serve(limit, { a: [], login: [RateLimit({ ...strict })], free: [SkipRateLimit()] })
  expect([await twice(ask, 'login'), await twice(ask, 'a')]).toEqual([
    [200, 429],
    [200, 200],
  ])
  for (let index = 0; index < 4; index++) expect((await ask('free')).status).toBe(200)
  expect(await twice(ask, 'a')).toEqual([200, 429])

  const inner = await serve(rateLimit({ limit: 3, window: '1h' }), { a: [], free: [SkipRateLimit()] }, [
    RateLimit({ ...strict }),
  ])
  expect([await twice(inner, 'a'), await twice(inner, 'free')]).toEqual([
    [200, 429],
    [200, 200],
  ])
})

test('a refusal is an exception, for the filters of the application', async () => {
  const ask = await serve(rateLimit({ limit: 1, window: '1h' }), { a: [] })
  await ask('a')
  const { status, headers, ...rest } = await ask('a')
  void rest
  expect([status, headers.get('X-Filter'), headers.get('Cache-Control')]).toEqual([429, '1', 'no-store'])
  expect(headers.get('Retry-After')).toMatch(/^\d+$/)
})

test('mistakes are found at the decorator; numbers beside a guard at the request', async () => {
  expect(() => RateLimit({ limit: 0, window: '1h' })).toThrow(/limit is 0/)
  const guard = createGuard({
    policies: {
      version: 1,
      policies: { one: { per: 'address', rule: { algorithm: 'gcra', limit: 9, window: '1h' } } },
    },
  })
  const errors: unknown[] = []
  const limit = rateLimit(guard)
  const watching: CanActivate = {
    canActivate: (context) => {
      try {
        return limit.canActivate(context)
      } catch (error) {
        errors.push(error)
        return false
      }
    },
  }
  const ask = await serve(watching, { a: [], login: [RateLimit({ limit: 1, window: '1h' })] })
  expect([(await ask('a')).status, (await ask('login')).status]).toEqual([200, 403])
  expect(errors).toEqual([expect.objectContaining({ code: 'CATRACA_OPTION_INVALID' })])
})

test('what is no HTTP request passes', () => {
  const context = { getType: () => 'ws' } as never
  expect(rateLimit({ limit: 1, window: '1h' }).canActivate(context)).toBe(true)
})
