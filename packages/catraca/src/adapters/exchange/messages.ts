import type { Decision } from '../../core/decision.ts'

/** What the adapters use of a connection of `node:net`. */
export interface NodeSocket {
  readonly remoteAddress?: string | undefined
  readonly destroyed?: boolean
  destroySoon?(): void
  end(): unknown
  destroy(): unknown
  once(event: 'close', listener: () => void): unknown
}

/** What the adapters use of a request of `node:http`, and what frameworks on top of it add. */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** The target as received, where a router rewrites `url`. */
  readonly originalUrl?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly rawHeaders?: string[]
  readonly socket: NodeSocket
  readonly complete: boolean
  /** The parsed body, where a parser ran before. */
  readonly body?: unknown
  resume(): unknown
  /** Set by `rateLimit`: the decision that binds; undefined for requests that were not counted. */
  rateLimit?: Decision | undefined
}

/** What the adapters use of a response of `node:http`. */
export interface NodeResponse {
  readonly headersSent: boolean
  readonly closed: boolean
  readonly destroyed: boolean
  readonly writableFinished: boolean
  readonly errored?: Error | null
  statusCode: number
  shouldKeepAlive: boolean
  getHeader(name: string): unknown
  setHeader(name: string, value: string): unknown
  writeHead(status: number, fields: (string | string[])[]): unknown
  end(body?: string | Uint8Array): unknown
  once(event: 'close', listener: () => void): unknown
}

/** A middleware in the usual form; `next` goes on, with an error where something failed. */
export type Middleware<Q extends NodeRequest = NodeRequest, S extends NodeResponse = NodeResponse> = (
  request: Q,
  response: S,
  next: (error?: unknown) => void,
) => void
