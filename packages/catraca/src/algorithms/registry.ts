import type { Parameters } from '../core/parameters.ts'
import type { Rule } from '../core/rule.ts'
import { concurrency, parameters as concurrencyParameters } from './concurrency/concurrency.ts'
import { fixedWindow, parameters as fixedWindowParameters } from './fixed-window/fixed-window.ts'
import { gcra, parameters as gcraParameters } from './gcra/gcra.ts'
import { leakyMeter, parameters as leakyMeterParameters } from './leaky-meter/leaky-meter.ts'
import { leakyQueue, parameters as leakyQueueParameters } from './leaky-queue/leaky-queue.ts'
import { quota, parameters as quotaParameters } from './quota/quota.ts'
import { slidingCounter, parameters as slidingCounterParameters } from './sliding-counter/sliding-counter.ts'
import { slidingLog, parameters as slidingLogParameters } from './sliding-log/sliding-log.ts'
import { tokenBucket, parameters as tokenBucketParameters } from './token-bucket/token-bucket.ts'

/** A kind of rule: how it is made, and its options as data. */
export interface RuleKind {
  /** Makes a rule from options that are checked here. */
  readonly make: (options: never) => Rule
  readonly parameters: Parameters
}

/** Every kind of rule by the name that documents and decisions use. To add one: its folder, and a line here. */
export const registry: Readonly<Record<string, RuleKind>> = {
  'token-bucket': { make: tokenBucket, parameters: tokenBucketParameters },
  gcra: { make: gcra, parameters: gcraParameters },
  'leaky-meter': { make: leakyMeter, parameters: leakyMeterParameters },
  'leaky-queue': { make: leakyQueue, parameters: leakyQueueParameters },
  'fixed-window': { make: fixedWindow, parameters: fixedWindowParameters },
  'sliding-counter': { make: slidingCounter, parameters: slidingCounterParameters },
  'sliding-log': { make: slidingLog, parameters: slidingLogParameters },
  quota: { make: quota, parameters: quotaParameters },
  concurrency: { make: concurrency, parameters: concurrencyParameters },
}
