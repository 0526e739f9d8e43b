export {
  type AnswerCache,
  type CachedAnswer,
  type MemoryCache,
  type MemoryCacheOptions,
  memoryCache,
} from './http/answer-cache.ts'
export type { AnswerOptions, Refusal, RefusalBody } from './http/answer-options.ts'
export type { Answer } from './http/answers.ts'
export { isPubliclyCacheable } from './http/cacheable.ts'
export { type Dialect, limitFieldNames, listFieldNames } from './http/dialects.ts'
export { type AnyGuard, createGuard, type Guard } from './http/guard.ts'
export type { GuardOptions, Identify } from './http/guard-options.ts'
export type { JobStatus, Jobs, Work } from './http/jobs.ts'
export { type MemoryJobs, type MemoryJobsOptions, memoryJobs } from './http/memory-jobs.ts'
export type { GuardRequest } from './http/request.ts'
export { statusAnswer } from './http/status.ts'
export type { Counts, PolicyCounts } from './http/tally.ts'
export { Trust, type TrustOptions } from './http/trust.ts'
export { canonicalAddress } from './policy/address.ts'
export type { PolicyDocument } from './policy/document.ts'
export type { Identity } from './policy/facts.ts'
export type { AnswerKind } from './policy/overflow.ts'
export type { KeptAnswer, Said, Verdict } from './policy/verdict.ts'
