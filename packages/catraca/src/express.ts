export type { Middleware, NodeRequest, NodeResponse } from './adapters/exchange/messages.ts'
export { rateLimit } from './adapters/express.ts'
export type { MountOptions, Settle, SimpleOptions as RateLimitOptions } from './adapters/mount/options.ts'
export type { LimitOptions } from './http/simple-limit.ts'
