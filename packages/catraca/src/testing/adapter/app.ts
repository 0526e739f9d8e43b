import type { Decision } from '../../core/decision.ts'
import type { AnyGuard, createGuard } from '../../http/guard.ts'
import type { RateLimitOptions } from '../../http/simple-limit.ts'

/** Declares a test: `test` of vitest, `node:test`, jest. */
export type DeclareTest = (name: string, run: () => Promise<void>) => unknown

/** A request as the handlers of the suite see it. */
export interface AppRequest {
  /** A header by lower-case name. */
  readonly header: (name: string) => string | undefined
  /** What the adapter says the decision is, where the framework's handlers find it. */
  readonly decision: Decision | undefined
  /** The body as JSON, by the means of the framework. Rejects when it is none. */
  json(): Promise<unknown>
}

/** What a handler of the suite answers, to be sent by the means of the framework. */
export interface AppAnswer {
  /** Default 200. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Parts are to be sent one by one as they come. When they throw, the answer breaks off. Default: none. */
  readonly body?: string | AsyncIterable<string>
}

/** A route of the application under test. GET answers HEAD too. */
export interface AppRoute {
  readonly method: 'GET' | 'POST'
  /** Path whose segments may be parameters, such as `/reports/:id/export`. */
  readonly path: string
  /** What it throws or rejects with is an error of the application, which the framework answers with 500. */
  readonly handler: (request: AppRequest) => AppAnswer | Promise<AppAnswer>
}

/** A limit before the routes, as `rateLimit` of the adapter takes it. */
export interface AppLimit {
  readonly what: (RateLimitOptions<never> & { settle?: unknown }) | AnyGuard<never>
  readonly mount?: object
}

/** The application under test: its limits from the outermost, and its routes behind all of them. */
export interface AdapterApp {
  readonly limits: readonly AppLimit[]
  readonly routes: readonly AppRoute[]
}

/** A running application on 127.0.0.1. */
export interface RunningApp {
  readonly port: number
  /** Connections that the server has open: `getConnections` of `node:http`. */
  connections(): Promise<number>
  close(): Promise<void>
}

/** What the suite uses of a connection of `node:net`. */
export interface SuiteSocket {
  setEncoding(encoding: 'latin1'): unknown
  write(text: string): unknown
  destroy(): unknown
  on(event: 'data', listener: (part: string) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'close', listener: () => void): unknown
}

/** An adapter under test. `Q` and `S` are the request and the answer as its limits' functions get them. */
export interface AdapterDriver<Q, S> {
  /**
   * Starts a fresh application on 127.0.0.1, on a real socket. Bodies that say they are JSON are parsed before the limits
   * where the framework does that, and a malformed one is answered with 400.
   */
  start(app: AdapterApp): Promise<RunningApp>
  /** `connect(port, '127.0.0.1')` of `node:net`. */
  connect(port: number): SuiteSocket
  /** A header of the request as `key`, `skip`, `cost`, `identify` and `settle` get it. */
  header(request: Q, name: string): string | undefined
  /** The status of the answer as `settle` gets it. */
  status(response: S): number
  /** Default: that of the library. */
  readonly createGuard?: typeof createGuard
  /** What the framework makes of the type of a refusal. Default `application/problem+json`. */
  readonly refusalType?: string
  /** False where nothing answers for a handler that throws but what stands before the limits. Default true. */
  readonly answersErrors?: boolean
  /** True where the server reads on what nobody read of a body, however long; otherwise the connection is closed in order. */
  readonly drainsBodies?: boolean
  /** False where routes that nobody declared do not come to the limits. Default true. */
  readonly seesUnknownRoutes?: boolean
}
