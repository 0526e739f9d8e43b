export { type ConcurrencyOptions, concurrency } from './algorithms/concurrency/concurrency.ts'
export { type FixedWindowOptions, fixedWindow } from './algorithms/fixed-window/fixed-window.ts'
export { type GcraOptions, gcra } from './algorithms/gcra/gcra.ts'
export { type LeakyMeterOptions, leakyMeter } from './algorithms/leaky-meter/leaky-meter.ts'
export { type LeakyQueueOptions, leakyQueue } from './algorithms/leaky-queue/leaky-queue.ts'
export { type QuotaOptions, quota } from './algorithms/quota/quota.ts'
export { type SlidingCounterOptions, slidingCounter } from './algorithms/sliding-counter/sliding-counter.ts'
export { type SlidingLogOptions, slidingLog } from './algorithms/sliding-log/sliding-log.ts'
export { type TokenBucketOptions, tokenBucket } from './algorithms/token-bucket/token-bucket.ts'
export type { Decision, Policy, PolicyDecision, RuleChange } from './core/decision.ts'
export type { Duration } from './core/duration.ts'
export {
  CatracaError,
  type CheckCode,
  type Code,
  codes,
  type DiagnosisCode,
  type ErrorCode,
  isCatracaError,
} from './core/errors.ts'
export type { EventName, Events, Listener, Listeners } from './core/events.ts'
export type { DenialReason, Reason } from './core/reason.ts'
export type { ReservingRule, Rule } from './core/rule.ts'
export type { Keys, Rules, SomeKeys } from './limiter/arguments.ts'
export { type ByteGroup, type ByteGroupOptions, byteGroup } from './limiter/byte-group.ts'
export { createLimiter, type LimiterOptions, type SharedLimiterOptions } from './limiter/create-limiter.ts'
export type { Limiter, TakeOptions } from './limiter/limiter.ts'
export { type ByteSource, type Shaped, type ShapeOptions, shape, type WebStream } from './limiter/shape.ts'
export type { SharedLimiter, SharedTakeOptions, TagOptions } from './limiter/shared-limiter.ts'
export type { Signal } from './limiter/signal.ts'
export type { StoreFailure } from './limiter/store-failure.ts'
export type { WaitOptions } from './limiter/wait-options.ts'
export type { LeaseOptions } from './stores/lease/options.ts'
export {
  type MemoryStats,
  type MemoryStore,
  type MemoryStoreOptions,
  memoryStore,
} from './stores/memory/memory-store.ts'
export type { Health, RemoteStore, StoreFailureMode } from './stores/remote.ts'
export type { Store } from './stores/store.ts'
