import { createLimiter, type Decision, type Limiter, type Rule } from 'catraca'
import type { Answer } from '../../model/judge.ts'

export const us = (ms: number): number => Math.round(ms * 1_000)

/** A limiter of one rule with one caller, asked in whole µs. */
export class Engine {
  readonly limiter: Limiter<Rule>
  /** Steps of `clock.step` events with source `state`, in µs, since they were last taken. */
  private steppedUs = 0

  constructor(rule: Rule) {
    this.limiter = createLimiter(rule, {
      on: {
        'clock.step': ({ stepMs, source }) => {
          if (source === 'state') this.steppedUs = us(stepMs)
        },
      },
    })
  }

  take(at: number, cost: number): Decision {
    return this.limiter.take('a', { now: at / 1_000, cost })
  }

  peek(at: number, cost: number): Decision {
    return this.limiter.peek('a', { now: at / 1_000, cost })
  }

  /** How far the state was ahead of the clock at the last broken step; 0 when there was none. */
  takeStep(): number {
    const step = this.steppedUs
    this.steppedUs = 0
    return step
  }
}

/** The figures of a decision as the judge gives them. */
export function answerOf(decision: Decision): Omit<Answer, 'steppedUs'> {
  return {
    reason: decision.reason,
    remaining: decision.remaining,
    retryUs: us(decision.retryAfterMs),
    resetUs: us(decision.resetAfterMs),
    delayUs: us(decision.delayMs),
  }
}
