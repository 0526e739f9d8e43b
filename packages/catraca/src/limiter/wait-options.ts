import { checkCost } from '../core/cost.ts'
import { rejectUnknown } from '../core/parameters.ts'
import { optionInvalid } from './arguments.ts'
import type { Signal } from './signal.ts'

/** Options of `wait`. */
export interface WaitOptions {
  /** Units the request costs: a positive safe integer. Default 1. */
  cost?: number
  /** Longest wait in milliseconds, 0 to 2,147,483,647 (24 days); fractions allowed. Default 30,000. */
  maxWaitMs?: number
  /** Ends the wait when it aborts, with a refusal `aborted` that cost nothing. An `AbortSignal`. */
  signal?: Signal
}

/** Options of `wait`, checked. */
export interface Wait {
  readonly cost: number
  readonly maxWaitUs: number
  readonly signal: Signal | undefined
}

const names = ['cost', 'maxWaitMs', 'signal'] as const
const defaultMaxWaitMs = 30_000
/** What timers can be armed for. */
const longestWaitMs = 2 ** 31 - 1

/** How many may wait in one limiter, where nothing else is said. */
export const defaultMaxWaiting = 10_000

/** Throws for options that are unknown or out of range. */
export function checkWait(options: unknown): Wait {
  rejectUnknown(names, options, 'options')
  const { cost = 1, maxWaitMs = defaultMaxWaitMs, signal } = options as WaitOptions
  if (typeof maxWaitMs !== 'number' || !(maxWaitMs >= 0 && maxWaitMs <= longestWaitMs)) {
    throw optionInvalid('options.maxWaitMs', maxWaitMs, `milliseconds from 0 to ${longestWaitMs}`)
  }
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw optionInvalid('options.signal', signal, 'an AbortSignal')
  }
  return { cost: checkCost(cost), maxWaitUs: Math.floor(maxWaitMs * 1_000), signal }
}

/** Throws for anything but 1 to a million. */
export function checkMaxWaiting(maxWaiting: unknown): number {
  if (Number.isSafeInteger(maxWaiting) && (maxWaiting as number) >= 1 && (maxWaiting as number) <= 1e6) {
    return maxWaiting as number
  }
  throw optionInvalid('options.maxWaiting', maxWaiting, 'a whole number from 1 to 1000000')
}
