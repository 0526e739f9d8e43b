export type { Middleware, NodeRequest, NodeResponse } from './adapters/exchange/messages.ts'
export type { MountOptions } from './adapters/exchange/middleware.ts'
export { rateLimit } from './adapters/express.ts'
export type { LimitOptions, RateLimitOptions } from './http/simple-limit.ts'
