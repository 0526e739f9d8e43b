import { createLimiter, type Decision, type Limiter, type PolicyDecision, type Rule } from 'catraca'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { us } from './support/engine.ts'
import { numRuns } from './support/every-rule.ts'
import { costOf, type History, histories, instantOf, lastUs, startOf } from './support/histories.ts'
import { type Setting, type Specimen, type Subject, subjects } from './support/subjects.ts'

interface Part {
  readonly subject: string
  readonly setting: Setting
}

/** Rules of one stack share a start, so calendars that are known for some weeks only stay out. */
const anywhere = ({ from, to }: Specimen): boolean => to - from > 5 * 365 * 86_400_000_000
const part = fc.oneof(
  ...subjects.map((subject) =>
    subject.settings
      .filter((setting) => anywhere(subject.specimen(setting)))
      .map((setting) => ({ subject: subject.name, setting })),
  ),
)
const parts = fc.array(part, { minLength: 2, maxLength: 3 })

const specimenOf = ({ subject, setting }: Part): Specimen =>
  (subjects.find(({ name }) => name === subject) as Subject).specimen(setting)

/** A stack of rules that all count the same caller. */
class Stack {
  readonly specimens: readonly Specimen[]
  private readonly limiter: Limiter<Readonly<Record<string, Rule>>>
  private readonly keys: Readonly<Record<string, string>>

  constructor(list: readonly Part[]) {
    this.specimens = list.map(specimenOf)
    this.limiter = createLimiter(Object.fromEntries(this.specimens.map(({ rule }, index) => [`p${index}`, rule])))
    this.keys = Object.fromEntries(this.specimens.map((_, index) => [`p${index}`, 'a']))
  }

  take(at: number, cost: number): Decision {
    return this.limiter.take(this.keys, { now: at / 1_000, cost })
  }

  peek(at: number, cost: number): Decision {
    return this.limiter.peek(this.keys, { now: at / 1_000, cost })
  }

  /** The specimen whose instants a step goes by. */
  guide(index: number): Specimen {
    return this.specimens[index % this.specimens.length] as Specimen
  }
}

/** `ask` answers and says when. */
function playStack(
  stack: Stack,
  history: History,
  ask: (at: number, cost: number) => readonly [number, Decision],
): void {
  let now = startOf(stack.guide(0), history)
  let last: Decision | undefined
  history.steps.forEach((step, index) => {
    now = instantOf(stack.guide(index), step, now, last)
    ;[now, last] = ask(now, costOf(stack.guide(step.share), step, last))
  })
}

function everyStack(
  title: string,
  holds: (stack: Stack, history: History) => void,
  clock: 'steady' | 'set' = 'steady',
): void {
  test(title, () => {
    fc.assert(
      fc.property(parts, histories(25, clock), (list, history) => holds(new Stack(list), history)),
      { numRuns },
    )
  })
}

function judged(stack: Stack, history: History): void {
  const judges = stack.specimens.map((specimen) => specimen.judge())
  playStack(stack, history, (at, cost) => {
    const shown = judges.map((judge) => judge.peek(at, cost))
    const passes = shown.every(({ reason }) => reason === 'ok')
    const decision = stack.take(at, cost)
    if (!passes) for (const judge of judges) judge.notice(at)
    const answers = passes ? judges.map((judge) => judge.take(at, cost)) : shown
    expect(decision.allowed).toBe(passes)
    expect(decision.policies.map(figures)).toEqual(
      answers.map(({ reason, remaining, retryUs, resetUs }) => [reason === 'ok', remaining, retryUs, resetUs]),
    )
    return [at, decision]
  })
}

everyStack('a stack passes what all its judges pass, and shows each as it is', judged)

everyStack('a stack is the judges’ while the clock is set ahead and back', judged, 'set')

everyStack(
  'a refused stack leaves every policy as it was and names the one with the longest wait',
  (stack, history) => {
    playStack(stack, history, (at, cost) => {
      const before = stack.peek(at, 1).policies
      const decision = stack.take(at, cost)
      const { policies } = decision
      const named = policies.find(({ policy }) => policy === decision.policy) as PolicyDecision
      if (decision.allowed) {
        const shares = policies.map(({ remaining, limit }) => remaining / limit)
        expect(named.remaining / named.limit).toBe(Math.min(...shares))
        expect(policies.every(({ remaining }, index) => remaining < (before[index] as PolicyDecision).remaining)).toBe(
          true,
        )
      } else {
        expect(stack.peek(at, 1).policies.map(state)).toEqual(before.map(state))
        expect(policies.map(state)).toEqual(before.map(state))
        expect(named.allowed).toBe(false)
        expect(decision.retryAfterMs).toBe(Math.max(...policies.map(({ retryAfterMs }) => retryAfterMs)))
      }
      return [at, decision]
    })
  },
)

everyStack('a caller of a stack that waits as told passes, and not before', (stack, history) => {
  playStack(stack, history, (at, cost) => {
    const decision = stack.take(at, cost)
    const told = at + us(decision.retryAfterMs)
    if (decision.allowed || told > lastUs) return [at, decision]
    expect(stack.take(told - 1, cost).allowed).toBe(false)
    const passed = stack.take(told, cost)
    expect(passed.allowed).toBe(true)
    return [told, passed]
  })
})

const state = ({ remaining, resetAfterMs }: PolicyDecision) => [remaining, us(resetAfterMs)]
const figures = ({ allowed, remaining, retryAfterMs, resetAfterMs }: PolicyDecision) => [
  allowed,
  remaining,
  us(retryAfterMs),
  us(resetAfterMs),
]
