import type { GatewayDocument } from '@catraca/config'
import type { Health } from 'catraca'
import type { GatewayStats, StoreStatus } from '../gateway.ts'
import type { GatewayOptions } from '../options.ts'

/** What a worker works by. */
export interface Order {
  readonly document: GatewayDocument
  readonly per: NonNullable<GatewayOptions['per']>
  readonly workers: number
  readonly port: number
  readonly host: string | undefined
  /** Of `headerSecret`, the same for all. */
  readonly secret: string
  /** The form of the lines for requests; undefined for none. */
  readonly log: 'text' | 'json' | undefined
}

/** What the command tells a worker. */
export type ToWorker =
  | { readonly gateway: 'start'; readonly order: Order }
  | { readonly gateway: 'probe' }
  | { readonly gateway: 'reload'; readonly document: GatewayDocument }
  | { readonly gateway: 'stop' }

/** What a worker tells the command. */
export type FromWorker =
  /** It can be told what to do. */
  | { readonly gateway: 'hello' }
  | { readonly gateway: 'listening'; readonly port: number }
  | { readonly gateway: 'failed'; readonly error: Failure }
  | { readonly gateway: 'reloaded'; readonly wrong?: string }
  | { readonly gateway: 'counted'; readonly counts: Counts }
  | { readonly gateway: 'lines'; readonly lines: string }
  | { readonly gateway: 'warning'; readonly line: string }

/** An error of the system, in parts that cross a channel. */
export interface Failure {
  readonly message: string
  readonly code?: string
  readonly port?: number
}

/** What a worker counted since it started, and how its store is. */
export interface Counts {
  readonly stats: GatewayStats
  readonly health: Health
  readonly store: StoreStatus
}

/** True for a message of a gateway: others travel on the same channel. */
export function isGatewayMessage(message: unknown): message is { readonly gateway: string } {
  return typeof message === 'object' && message !== null && 'gateway' in message
}

export function failureOf(error: unknown): Failure {
  const { message, code, port } = error as NodeJS.ErrnoException & { port?: number }
  return { message: String(message), ...(code !== undefined && { code }), ...(port !== undefined && { port }) }
}

/** The error again. */
export function errorOf({ message, ...rest }: Failure): Error {
  return Object.assign(new Error(message), rest)
}
