import type { Signal } from '../limiter/signal.ts'

/** A request as a guard sees it. Adapters make one of what their framework has. */
export interface GuardRequest<R = unknown> {
  /** As received, upper case. */
  readonly method: string
  /** The request target as received, mount points included: a path with its query, or an absolute address. */
  readonly target: string
  /** The address of the other end of the connection. */
  readonly peer: string | undefined
  /** What `identify` and the other functions of the application receive. */
  readonly raw: R
  /** Units instead of one. */
  readonly units?: number
  /** Aborts when the caller leaves: a request that waits for its turn then gives its place up. Asked for only there. */
  readonly signal?: Signal | undefined
  /** Milliseconds since the epoch, for tests and simulators. */
  readonly now?: number
  /** A header by lower-case name; several lines joined by a comma. */
  header(name: string): string | undefined
  /** The body as parsed JSON, asked for only where a policy needs it. Undefined when there is none. */
  body?(): unknown
}
