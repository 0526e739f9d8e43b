export type { MountOptions, Settle, SimpleOptions as RateLimitOptions } from './adapters/mount/options.ts'
export { RateLimit, rateLimit, SkipRateLimit } from './adapters/nest.ts'
export type { LimitOptions } from './http/simple-limit.ts'
