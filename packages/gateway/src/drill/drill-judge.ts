import { createLimiter, type Rule } from 'catraca'
import type { Fault } from './drill-faults.ts'
import type { Drilled } from './drill-plan.ts'
import type { Answer } from './drill-traffic.ts'

/** When what happened, in ms since the traffic began. */
export interface Phases {
  readonly faultMs: number
  readonly restoredMs: number
  readonly endMs: number
}

/** What one policy did. */
export interface Verdict {
  readonly policy: string
  readonly mode: Drilled['mode']
  readonly good: boolean
  /** What it did otherwise than declared; empty where all is good. */
  readonly wrong: readonly string[]
  readonly before: Count
  readonly during: Count
  readonly after: Count
  readonly longestMs: number
}

/** Answers of one phase, and what they may have been at most. */
export interface Count {
  readonly admitted: number
  readonly refused: number
  readonly unavailable: number
  /** Requests that may pass at most; undefined where there is no bound. */
  readonly most: number | undefined
}

/** Decisions take the deadline until the breaker opens: after this time the declared mode must have taken over. */
const entryMs = 1_000
/** After the fault has ended, the store must decide again within this time. */
const recoveryMs = 2_000
/** No answer may take longer: the deadline of the store and a busy machine. */
const slowMs = 1_500

/** Compares what was answered with what the policy declares. */
export function judge(
  drilled: Drilled,
  edges: number,
  fault: Fault,
  phases: Phases,
  answers: readonly Answer[],
): Verdict {
  const { policy, mode, rule, share, cost, over: leased, held } = drilled
  const { faultMs, restoredMs, endMs } = phases
  const own = answers.filter((answer) => answer.policy === policy)
  const within = (from: number, to: number): Answer[] => own.filter(({ atMs }) => atMs >= from && atMs < to)
  const steady = fault.outage ? within(faultMs + entryMs, restoredMs) : within(faultMs, restoredMs)
  const again = within(restoredMs + (fault.outage ? recoveryMs : 0), endMs)
  const most = (units: number): number => Math.floor(units / cost)
  const duringMost = most(edges * greatest(share, restoredMs - faultMs) + greatest(rule, entryMs) + held)
  const before = counted(within(0, faultMs), most(greatest(rule, faultMs) + leased))
  const during = counted(
    within(faultMs, restoredMs),
    fault.outage ? (mode === 'open' ? undefined : duringMost) : most(greatest(rule, restoredMs - faultMs) + leased),
  )
  const after = counted(again, most(greatest(rule, endMs - restoredMs) + leased))
  const longestMs = own.reduce((longest, { tookMs }) => Math.max(longest, tookMs), 0)

  const wrong: string[] = []
  const check = (fine: boolean, words: string): void => {
    if (!fine) wrong.push(words)
  }
  const over = (name: string, { admitted, most: bound }: Count): void =>
    check(bound === undefined || admitted <= bound, `${name} ${admitted} passed, at most ${bound} may`)
  over('before the fault', before)
  const busy = 'is this machine too busy for the timeout of the store?'
  check(
    before.unavailable === 0,
    `before the fault ${before.unavailable} requests were answered 503 or not at all; ${busy}`,
  )
  if (fault.outage) {
    const passed = number(steady, 'admitted')
    const closed = number(steady, 'closed')
    if (mode === 'closed') {
      // What the edges hold when the store goes is spent first.
      const spent = Math.min(passed, most(held))
      check(passed === spent, `it declares closed, and ${passed} requests passed while the store was gone`)
      check(
        closed + spent === steady.length,
        `it declares closed, and ${steady.length - closed} of ${steady.length} answers were not 503 with Retry-After`,
      )
    } else {
      const gone = steady.length - passed - number(steady, 'limited')
      check(
        gone === 0,
        `it declares ${mode}, and ${gone} requests were answered 503 or not at all while the store was gone`,
      )
      if (mode === 'open')
        check(
          passed === steady.length,
          `it declares open, and ${steady.length - passed} of ${steady.length} were refused`,
        )
      else over('while the store was gone', during)
    }
  } else over('during the fault', during)
  over('after the fault', after)
  check(
    after.unavailable === 0,
    `${recoveryMs} ms after the fault ${after.unavailable} requests were still answered 503 or not at all`,
  )
  check(steady.length > 0 && again.length > 0, 'nothing was answered')
  check(longestMs < slowMs, `the longest answer took ${Math.round(longestMs)} ms`)
  return { policy, mode, good: wrong.length === 0, wrong, before, during, after, longestMs: Math.round(longestMs) }
}

function counted(answers: readonly Answer[], most: number | undefined): Count {
  const admitted = number(answers, 'admitted')
  const refused = number(answers, 'limited')
  return { admitted, refused, unavailable: answers.length - admitted - refused, most }
}

function number(answers: readonly Answer[], kind: Answer['kind']): number {
  return answers.filter((answer) => answer.kind === kind).length
}

const simulatedStepMs = 10

/**
 * The most units that a rule admits in so many ms to callers that take all they can, played by the rule itself. Windows of
 * the clock may begin anywhere, so one more limit counts; so does a step for the pace of real clocks.
 */
function greatest(rule: Rule, ms: number): number {
  const limiter = createLimiter(rule)
  const { limit } = rule
  let units = 0
  for (let now = 0; now <= ms + simulatedStepMs; now += simulatedStepMs) {
    const { remaining } = limiter.peek('drill', { now })
    if (remaining === 0) continue
    const decision = limiter.take('drill', { cost: remaining, now })
    if (!decision.allowed) continue
    units += remaining
    if (rule.holds) limiter.release(decision)
  }
  limiter.close()
  const aligned = ['fixed-window', 'sliding-counter', 'quota'].includes(rule.algorithm)
  return rule.holds ? Infinity : units + (aligned ? limit : 0)
}
