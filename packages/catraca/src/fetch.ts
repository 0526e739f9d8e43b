export {
  type AddressOf,
  type DecidedHandler,
  type FetchOptions,
  type LimitedHandler,
  type Limiting,
  rateLimit,
} from './adapters/fetch.ts'
export type { MountOptions, Settle, SimpleOptions as RateLimitOptions } from './adapters/mount/options.ts'
export type { WebRequest, WebResponse } from './adapters/web/messages.ts'
export type { LimitOptions } from './http/simple-limit.ts'
