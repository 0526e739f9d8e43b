import { type AnyGuard, createGuard } from '../../http/guard.ts'
import type { GuardOptions } from '../../http/guard-options.ts'
import type { RateLimitOptions } from '../../http/simple-limit.ts'
import type { PolicyDocument } from '../../policy/document.ts'
import { eventually, pause } from '../check.ts'
import type { AdapterDriver, AppLimit, AppRequest, AppRoute, RunningApp } from './app.ts'
import { type Received, type Sent, Wire } from './wire.ts'

/** The application of the suite while it runs, and its caller. */
export class Scene {
  /** Calls of handlers. */
  reached = 0
  private readonly waiting: (() => void)[] = []
  private readonly driver: AdapterDriver<never, never>
  private running: RunningApp | undefined
  private readonly wires: Wire[] = []

  constructor(driver: AdapterDriver<never, never>) {
    this.driver = driver
  }

  async start(limits: readonly AppLimit[], routes?: readonly AppRoute[]): Promise<void> {
    const all = (routes ?? this.routes()).map((route) => ({ ...route, handler: this.counted(route) }))
    this.running = await this.driver.start({ limits, routes: all })
  }

  async close(): Promise<void> {
    for (const wire of this.wires) wire.close()
    this.open()
    await this.running?.close()
  }

  /** Every caller leaves; resolves when the server has seen it. */
  async leave(): Promise<void> {
    for (const wire of this.wires.splice(0)) wire.close()
    await eventually(() => this.running?.connections(), 0, 'open connections')
    // And what follows from it, such as an abort of the request.
    await pause(5)
  }

  /** Lets the handlers that wait go on. */
  open(): void {
    for (const go of this.waiting.splice(0)) go()
  }

  wire(): Wire {
    const wire = new Wire(this.driver.connect((this.running as RunningApp).port))
    this.wires.push(wire)
    return wire
  }

  /** One request over a connection of its own. */
  async ask(method: string, target: string, sent?: Sent): Promise<Received> {
    const wire = this.wire()
    wire.send(method, target, sent)
    try {
      return await wire.receive(method)
    } finally {
      wire.close()
    }
  }

  get(target = '/', headers: Readonly<Record<string, string>> = {}): Promise<Received> {
    return this.ask('GET', target, { headers })
  }

  /** The statuses of the same request, one after the other. */
  async statuses(count: number, target = '/', headers: Readonly<Record<string, string>> = {}): Promise<number[]> {
    const all: number[] = []
    for (let index = 0; index < count; index++) all.push((await this.get(target, headers)).status)
    return all
  }

  private counted({ handler }: AppRoute): AppRoute['handler'] {
    return (request) => {
      this.reached++
      return handler(request)
    }
  }

  private routes(): AppRoute[] {
    const get = (path: string, handler: AppRoute['handler']): AppRoute => ({ method: 'GET', path, handler })
    const answers = (path: string, status: number, headers: Readonly<Record<string, string>> = {}): AppRoute =>
      get(path, () => ({ status, headers, ...(status !== 204 && status !== 304 && { body: 'ok' }) }))
    const told = ({ header }: AppRequest) => ({ body: header('catraca-answer') ?? 'nothing' })
    const wait = (): Promise<void> => new Promise((resolve) => this.waiting.push(resolve))
    async function* parts(end: () => Promise<void>): AsyncGenerator<string> {
      yield 'one'
      await end()
      yield 'two'
    }
    return [
      answers('/', 200),
      answers('/other', 200),
      answers('/created', 201, { 'X-Own': 'kept', 'Content-Type': 'text/plain' }),
      answers('/empty', 204),
      answers('/fresh', 304),
      answers('/missing', 404),
      answers('/down', 503),
      answers('/public', 200, { 'Cache-Control': 'public, max-age=60' }),
      answers('/shared', 200, { 'Cache-Control': 'max-age=0, s-maxage=60' }),
      answers('/private', 200, { 'Cache-Control': 'private, max-age=60' }),
      get('/told', told),
      get('/decision', ({ decision }) => ({ body: decision === undefined ? 'none' : String(decision.remaining) })),
      get('/throws', () => {
        throw new Error('a mistake in the handler')
      }),
      get('/slow', async () => {
        await wait()
        return { body: 'ok' }
      }),
      get('/stream', () => ({ body: parts(wait) })),
      get('/breaks', () => ({
        body: parts(async () => {
          await wait()
          throw new Error('a mistake in the middle')
        }),
      })),
      {
        method: 'POST',
        path: '/json',
        handler: async (request) => {
          try {
            return { body: JSON.stringify(await request.json()) }
          } catch {
            return { status: 400 }
          }
        },
      },
      { method: 'POST', path: '/', handler: () => ({ body: 'ok' }) },
    ]
  }
}

/** One limit of two requests per hour, with the options given. */
export function simple(options: Partial<RateLimitOptions<never>> & { settle?: unknown } = {}): AppLimit {
  return { what: { limit: 2, window: '1h', random: () => 0, ...options } }
}

/** A guard made by the library of the driver. */
export function guardOf(
  driver: AdapterDriver<never, never>,
  policies: PolicyDocument['policies'],
  options: Partial<GuardOptions<never>> = {},
): AnyGuard<never> {
  const make = driver.createGuard ?? createGuard
  return make<never>({ policies: { version: 1, policies }, random: () => 0, ...options } as GuardOptions<never>)
}

/** Names of the members of a list such as `RateLimit`. */
export function names(list: string | undefined): string[] {
  return [...(list ?? '').matchAll(/"([^"]*)"/g)].map(([, name]) => name as string)
}

/** What a test of the suite gets. */
export interface Stage {
  readonly scene: Scene
  readonly driver: AdapterDriver<never, never>
  /** Reads a header of what the functions of a limit get. */
  readonly header: (name: string) => (request: never) => string | undefined
}

/** Declares a test that has an application and a caller of its own. */
export type Declare = (name: string, run: (stage: Stage) => Promise<void>) => void
