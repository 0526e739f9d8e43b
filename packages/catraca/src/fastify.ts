export { type RouteLimit, rateLimit } from './adapters/fastify.ts'
export type { MountOptions, Settle, SimpleOptions as RateLimitOptions } from './adapters/mount/options.ts'
export type { LimitOptions } from './http/simple-limit.ts'
