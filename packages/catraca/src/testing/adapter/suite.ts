import { routeBypassSuite } from '../route-bypass.ts'
import type { AdapterDriver, AppLimit, AppRoute, DeclareTest } from './app.ts'
import { endingTests } from './endings.ts'
import { guardTests } from './guards.ts'
import { limitTests } from './limits.ts'
import { type Declare, guardOf, Scene, type Stage } from './scene.ts'
import { wordTests } from './words.ts'

/**
 * Tests that an adapter keeps what a limit promises, with its framework on a real socket: what is counted, told and answered;
 * what the functions of a limit get; what comes back when an answer is over, however it ends; and that no spelling of a
 * route gets around its limit. About 200 tests, each with an application of its own.
 *
 * @param test Declares a test: `test` of vitest, `node:test`, jest.
 * @param driver Starts applications with the adapter under test.
 */
export function adapterSuite<Q, S>(test: DeclareTest, driver: AdapterDriver<Q, S>): void {
  const any = driver as unknown as AdapterDriver<never, never>
  const declare: Declare = (name, run) => {
    test(name, async () => {
      const scene = new Scene(any)
      const stage: Stage = {
        scene,
        driver: any,
        header: (header) => (request) => any.header(request, header),
      }
      try {
        await run(stage)
      } finally {
        await scene.close()
      }
    })
  }
  limitTests(declare)
  guardTests(declare)
  endingTests(declare)
  wordTests(declare)
  for (const form of ['one limit', 'guard'] as const) bypassTests(test, any, form)
}

function bypassTests(test: DeclareTest, driver: AdapterDriver<never, never>, form: 'one limit' | 'guard'): void {
  const named: DeclareTest = (name, run) => test(`${form}: ${name}`, run)
  routeBypassSuite(named, async () => {
    const scene = new Scene(driver)
    const routes: AppRoute[] = [
      { method: 'POST', path: '/login', handler: () => ({ body: 'ok' }) },
      { method: 'GET', path: '/reports/:id/export', handler: () => ({ body: 'ok' }) },
    ]
    await scene.start([form === 'guard' ? guardOfRoutes(driver) : limitOfRoutes()], routes)
    return {
      send: async (method, target) => (await scene.ask(method, target)).status,
      reached: () => scene.reached,
      close: () => scene.close(),
    }
  })
}

const bypassed = ['POST /login', 'GET /reports/:id/export']
const hour = { limit: 1, window: '1h' } as const

function limitOfRoutes(): AppLimit {
  return { what: { limit: 1_000, window: '1m', routes: Object.fromEntries(bypassed.map((route) => [route, hour])) } }
}

function guardOfRoutes(driver: AdapterDriver<never, never>): AppLimit {
  const rule = { algorithm: 'sliding-counter', ...hour }
  const policies = bypassed.map((route, index) => [`r${index}`, { match: { routes: [route] }, per: 'address', rule }])
  return { what: guardOf(driver, Object.fromEntries(policies) as Parameters<typeof guardOf>[1]) }
}
