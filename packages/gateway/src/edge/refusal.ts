import type { Decision } from 'catraca'
import type { EdgeRequest, EdgeResponse } from './messages.ts'
import { answerProblem } from './problem.ts'

const quotaExceeded = 'https://iana.org/assignments/http-problem-types#quota-exceeded'
/** The most milliseconds that are ever promised, so that every client can read the number. */
const maxMs = Number.MAX_SAFE_INTEGER

/** The wait that callers are told: later than the limit needs by 10 to 20 %, so that they do not all come back at once. */
export function spreadMs(waitMs: number, random: () => number): number {
  return Math.min(maxMs, Math.ceil(waitMs * (1.1 + 0.1 * random())))
}

/** Answers 429 to requests over the limit. */
export class Refusal {
  private readonly policy: string
  private readonly limit: number
  private readonly windowSeconds: number
  private readonly rule: string
  private readonly random: () => number

  /** @param rule The limit in plain words, the beginning of the detail. @param random Gives numbers in [0, 1). */
  constructor(policy: string, limit: number, windowMs: number, rule: string, random: () => number) {
    this.policy = policy
    this.limit = limit
    this.windowSeconds = windowMs / 1_000
    this.rule = rule
    this.random = random
  }

  answer(request: EdgeRequest, response: EdgeResponse, decision: Decision): void {
    const retryAfterMs = spreadMs(decision.retryAfterMs, this.random)
    const retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1_000))
    const detail = `${this.rule} Try again in ${retryAfterSeconds} s.`
    const members = {
      type: quotaExceeded,
      title: 'Too many requests',
      'violated-policies': [this.policy],
      limit: this.limit,
      windowSeconds: this.windowSeconds,
      retryAfterSeconds,
      retryAfterMs,
    }
    answerProblem(request, response, 429, detail, members, ['Retry-After', String(retryAfterSeconds)])
  }
}
