import { Decision, decide as decideStack, peeked, type Source } from '../../core/decision.ts'
import { reasonCode } from '../../core/reason.ts'
import type { Rule } from '../../core/rule.ts'

/** What of a question to one policy never changes, as texts. */
export class Member {
  readonly source: Source
  /** What its change of rule does, as the script reads it; empty for `keep`. */
  readonly change: string
  readonly list: boolean
  private readonly unit: number
  private readonly oneCost: string
  private readonly life: string

  constructor(source: Source) {
    const { script } = source.rule
    this.source = source
    this.change = source.onRuleChange === 'proportional' ? 'p' : source.onRuleChange === 'reset' ? 'r' : 'k'
    this.list = script.kind === 'l'
    this.unit = script.unit
    this.oneCost = `${script.unit}`
    this.life = `${script.lifeMs}`
  }

  /** Adds the arguments of a question: letter, name, cost in levels, life, numbers of the rule, then those of the time. */
  ask(args: string[], cost: number, permit: number, nowUs: number): void {
    const { kind, name, numbers, timed } = this.source.rule.script
    args.push(kind, name, cost === 1 ? this.oneCost : `${cost * this.unit}`, this.life)
    for (let index = 0; index < numbers.length; index++) args.push(numbers[index] as string)
    if (this.list) args.push(`${permit}`)
    else if (timed !== undefined) args.push(...timed(nowUs))
  }
}

/** One question on its way, and what its answer means. */
export interface Question {
  readonly members: readonly Member[]
  readonly keys: readonly string[]
  readonly costs: readonly number[]
  readonly charge: boolean
  readonly permits: readonly number[]
}

/** A state as of the answer. Used for one after the other. */
const scratch = new Float64Array(3)

/**
 * Reads an answer of the script: µs now, then of each policy its level before the charge, as −1 − level where it refuses.
 * What follows from the level is computed by the rule itself, as in memory. Undefined where the question came with the
 * periods of another time.
 */
export function decisionOf(question: Question, answer: readonly number[], rebased: (stepMs: number) => void): Decision {
  const { members, charge } = question
  const first = answer[0] as number
  const long = first < 0
  const nowUs = long ? -first : first
  let mask = long ? (answer[answer.length - 1] as number) : 0
  const said: Said[] = []
  let at = 1
  let all = true
  for (const member of members) {
    const atLength = mask % 2 === 1
    mask = (mask - (mask % 2)) / 2
    const one = read(member, answer, at, atLength)
    at += one.size
    if (one.stepUs > 0 && charge) rebased(one.stepUs / 1_000)
    if (!one.passes) all = false
    said.push(one)
  }
  const taken = charge && all
  const bits = taken ? 0 : peeked
  const parts = members.map((member, index) => part(question, member, index, said[index] as Said, nowUs, taken, bits))
  return parts.length === 1 ? (parts[0] as Decision) : decideStack(parts, charge ? 0 : peeked)
}

/** The time of an answer that has nothing else to say. */
export function timeOnly(answer: readonly number[]): number | undefined {
  return answer.length === 1 ? answer[0] : undefined
}

interface Said {
  readonly size: number
  readonly passes: boolean
  readonly level: number
  /** Stored time less now, in ticks; undefined where it follows from the rule. */
  readonly lead: number | undefined
  readonly prior: number
  readonly wait: number
  readonly blockedUs: number
  readonly stepUs: number
}

function read(member: Member, answer: readonly number[], at: number, atLength: boolean): Said {
  const coded = answer[at] as number
  const passes = coded >= 0
  const level = passes ? coded : -1 - coded
  const { kind } = member.source.rule.script
  const more = (offset: number): number => answer[at + offset] as number
  if (atLength) {
    const [prior, wait] = member.list ? [0, more(2)] : [more(2), 0]
    return { size: 5, passes, level, lead: more(1), prior, wait, blockedUs: more(3), stepUs: more(4) }
  }
  if (member.list) {
    return { size: 3, passes, level, lead: more(1), prior: 0, wait: more(2), blockedUs: 0, stepUs: 0 }
  }
  const prior = kind === 'c' ? more(1) : 0
  return { size: kind === 'c' ? 2 : 1, passes, level, lead: undefined, prior, wait: 0, blockedUs: 0, stepUs: 0 }
}

function part(
  question: Question,
  member: Member,
  index: number,
  said: Said,
  nowUs: number,
  taken: boolean,
  bits: number,
): Decision {
  const { source } = member
  const { rule } = source
  const key = question.keys[index] as string
  const cost = question.costs[index] as number
  const impossible = cost > rule.limit
  const blocked = said.blockedUs > 0 && !impossible
  const code = reasonCode(said.passes ? 'ok' : impossible ? 'impossible' : blocked ? 'blocked' : rule.denial) | bits
  if (member.list) {
    const level = taken ? said.level + cost : said.level
    const wait = said.passes ? 0 : impossible ? Infinity : Math.max(said.wait, said.blockedUs)
    const left = blocked ? 0 : Math.max(0, rule.limit - level)
    const lead = taken ? Math.max(0, said.lead ?? 0) : (said.lead ?? 0)
    return new Decision(source, key, code, nowUs, cost, left, lead, level, question.permits[index] as number, wait)
  }
  const now = tickOf(nowUs, rule)
  // A key never seen has the stored time that the answer did not say.
  scratch.fill(0)
  if (said.lead === undefined) rule.charge(scratch, 0, now, 0, 0)
  else scratch[0] = now + said.lead
  scratch[1] = said.level
  scratch[2] = said.prior
  let waitUs = 0
  if (!said.passes) {
    const wait = rule.wait(scratch, 0, now, cost)
    waitUs = Math.max(wait === Infinity ? Infinity : (now + wait) * rule.tickUs - nowUs, said.blockedUs)
  }
  if (taken) rule.charge(scratch, 0, now, cost, 0)
  const left = blocked ? 0 : rule.remaining(scratch, 0, now)
  const lead = (scratch[0] as number) - now
  return new Decision(source, key, code, nowUs, cost, left, lead, scratch[1] as number, scratch[2] as number, waitUs)
}

export function tickOf(nowUs: number, { tickUs }: Rule): number {
  return tickUs === 1 ? nowUs : Math.floor(nowUs / tickUs)
}
