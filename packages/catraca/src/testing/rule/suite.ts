import type { Decision } from '../../core/decision.ts'
import { type Duration, durationUs } from '../../core/duration.ts'
import { seededRandom } from '../../core/random.ts'
import type { Rule } from '../../core/rule.ts'
import { createLimiter } from '../../limiter/create-limiter.ts'
import type { Limiter } from '../../limiter/limiter.ts'
import type { DeclareTest } from '../adapter/app.ts'
import { equal } from '../check.ts'
import { mostWithin } from './most-within.ts'

/** What a rule promises, for {@link ruleSuite}. */
export interface RulePromise {
  /** Most units that start in any half-open span of `window`. */
  readonly units: number
  readonly window: Duration
}

const start = Date.UTC(2026, 0)
const seeds = [1, 2, 3, 4, 5, 6, 7, 8]
const steps = 300

/** One key under a rule, in memory, whose time is the test's. */
class Subject {
  readonly rule: Rule
  readonly limiter: Limiter<Rule>
  /** Whole µs, so that times can be added without a rounding. */
  nowUs = start * 1_000

  constructor(make: () => Rule) {
    this.rule = make()
    this.limiter = createLimiter(this.rule)
  }

  take(cost = 1, key = 'key'): Decision {
    return this.limiter.take(key, { cost, now: this.nowUs / 1_000 })
  }

  peek(cost = 1, key = 'key'): Decision {
    return this.limiter.peek(key, { cost, now: this.nowUs / 1_000 })
  }

  close(): void {
    this.limiter.close()
  }
}

/**
 * Tests that a rule keeps what every rule promises, seen through a limiter in memory, over repeatable random traffic: what
 * `remaining` says passes and no more; a refusal costs nothing and its wait is exact; a cost above the limit never passes;
 * keys do not touch each other; what is given back was charged, and never more; a clock that goes back gives nothing; after
 * `resetAfterMs` nothing is used. With `most` also that no span admits more. About a dozen tests.
 *
 * @param test Declares a test: `test` of vitest, `node:test`, jest. @param make A fresh rule whose limit is at least 3.
 * @param most What it promises; undefined for one that limits no span, such as requests in flight.
 */
export function ruleSuite(test: DeclareTest, make: () => Rule, most?: RulePromise): void {
  const { algorithm, limit, holds, tickUs } = make()
  const declare = (name: string, run: (subject: Subject) => void): void => {
    test(`${algorithm}: ${name}`, async () => {
      const subject = new Subject(make)
      try {
        run(subject)
      } finally {
        subject.close()
      }
    })
  }

  declare('what remains passes at once, and no unit more', (subject) => {
    walk(subject, (nextCost) => {
      const { remaining } = subject.peek()
      if (remaining < limit) equal(subject.peek(remaining + 1).allowed, false, 'one unit more than remains')
      if (remaining > 0) equal(subject.peek(remaining).allowed, true, `all ${remaining} that remain`)
      const taken = subject.take(nextCost)
      equal(taken.allowed, nextCost <= remaining, `a cost of ${nextCost} where ${remaining} remain`)
      if (taken.allowed) equal(taken.remaining, remaining - nextCost, 'what remains after it')
    })
  })

  declare('a refusal costs nothing', (subject) => {
    walk(subject, (nextCost) => {
      const before = subject.peek()
      const { allowed, charged } = subject.take(nextCost)
      if (allowed) return
      const after = subject.peek()
      equal([charged, after.remaining, after.waitUs], [0, before.remaining, before.waitUs], 'the state after a refusal')
    })
  })

  if (!holds) {
    declare('the wait of a refusal is exact: refused before it, admitted at it', (subject) => {
      const slackUs = Math.max(1_000, tickUs)
      walk(subject, (nextCost) => {
        const { allowed, retryAfterMs } = subject.take(nextCost)
        if (allowed) return
        const endUs = subject.nowUs + Math.round(retryAfterMs * 1_000)
        if (endUs - slackUs > subject.nowUs) {
          subject.nowUs = endUs - slackUs
          equal(subject.peek(nextCost).allowed, false, `${slackUs / 1_000} ms before the wait is over`)
        }
        subject.nowUs = endUs
        equal(subject.take(nextCost).allowed, true, `after a wait of ${retryAfterMs} ms`)
      })
    })
  }

  declare('a cost above the limit never passes, and costs nothing', (subject) => {
    const { allowed, reason, retryAfterMs } = subject.take(limit + 1)
    equal([allowed, reason, retryAfterMs], [false, 'impossible', Infinity], 'a cost above the limit')
    equal(subject.take(limit).allowed, true, 'the whole limit')
  })

  declare('keys do not touch each other', (subject) => {
    subject.take(limit, 'one')
    equal([subject.take(1, 'one').allowed, subject.take(limit, 'other').allowed], [false, true], 'another key')
  })

  declare('what is given back was charged, once and never more', (subject) => {
    walk(subject, (nextCost) => {
      const before = subject.peek().remaining
      const taken = subject.take(nextCost)
      if (!taken.allowed) return
      equal(subject.limiter.refund(taken), nextCost, 'given back at once')
      equal(subject.peek().remaining, before, 'what remains after it')
      equal(subject.limiter.refund(taken), 0, 'given back again')
      subject.take(nextCost)
    })
  })

  declare('a clock that goes back gives nothing', (subject) => {
    walk(subject, (nextCost, random) => {
      subject.take(nextCost)
      const { remaining } = subject.peek()
      const { nowUs } = subject
      subject.nowUs = nowUs - Math.floor(random() * 30_000_000)
      if (subject.peek().remaining > remaining)
        throw new Error(`more remains after the clock went back than ${remaining}`)
      subject.nowUs = nowUs
    })
  })

  declare('when it says so nothing is used any more', (subject) => {
    walk(subject, (nextCost) => {
      const { resetAfterMs } = subject.take(nextCost)
      const { nowUs } = subject
      subject.nowUs = nowUs + Math.round(resetAfterMs * 1_000)
      equal(subject.peek().remaining, limit, `after ${resetAfterMs} ms`)
      subject.nowUs = nowUs
    })
  })

  declare('what was reset is as never seen', (subject) => {
    const taken = subject.take(limit)
    subject.limiter.reset('key')
    equal(subject.peek().remaining, limit, 'what remains after a reset')
    equal(subject.limiter.refund(taken), 0, 'given back from before the reset')
  })

  if (most === undefined) return
  const windowUs = durationUs(most.window, 'most.window')
  declare(`in no span of ${most.window} more than ${most.units} start`, (subject) => {
    const admitted: { readonly atUs: number; readonly units: number }[] = []
    walk(subject, (nextCost) => {
      const { allowed, delayMs } = subject.take(nextCost)
      if (allowed) admitted.push({ atUs: subject.nowUs + Math.round(delayMs * 1_000), units: nextCost })
    })
    const found = mostWithin(admitted, windowUs)
    if (found > most.units)
      throw new Error(`${found} units start within ${most.window}; promised: at most ${most.units}`)
  })
}

/** Random costs at random times, small and large steps mixed, the same for a seed. */
function walk(subject: Subject, each: (nextCost: number, random: () => number) => void): void {
  const { limit } = subject.rule
  for (const seed of seeds) {
    const random = seededRandom(seed)
    subject.nowUs += 400 * 86_400_000_000
    // A window or a bucket of any length is met by some of these.
    const scaleMs = 10 ** (1 + Math.floor(random() * 6))
    for (let step = 0; step < steps / seeds.length; step++) {
      subject.nowUs += Math.floor(random() ** 3 * scaleMs * 1_000)
      each(1 + Math.floor(random() ** 4 * limit), random)
    }
  }
}
