import { Decision, decide as decideStack, peeked, type Source } from '../../core/decision.ts'
import { reasonCode } from '../../core/reason.ts'
import type { Rule } from '../../core/rule.ts'
import { startUsOf, tooLate } from '../reservation.ts'

/** What of a question to one policy never changes, as texts. */
export class Member {
  readonly source: Source
  /** What its change of rule does, as the script reads it; `k` for `keep`. */
  readonly change: 'k' | 'p' | 'r'
  /** True where the state is a list. */
  readonly list: boolean
  /** True where the script says what is in use, the lead and the wait: of a list, and of a counter in parts. */
  readonly told: boolean
  /** Numbers of a short answer: level; prior of a counter; lead and wait where they are told. */
  readonly size: 1 | 2 | 3
  private readonly oneCost: string
  private readonly life: string

  constructor(source: Source) {
    const { script } = source.rule
    this.source = source
    this.change = source.onRuleChange === 'proportional' ? 'p' : source.onRuleChange === 'reset' ? 'r' : 'k'
    this.list = script.kind === 'l'
    this.told = this.list || script.kind === 's'
    this.size = this.told ? 3 : script.name.startsWith('c') ? 2 : 1
    this.oneCost = `${script.unit}`
    this.life = `${script.lifeMs}`
  }

  /** What is sent to take from this policy alone: one key, its name, the arguments. */
  alone(stored: string, cost: number, permit: number, nowUs: number): string[] {
    const { kind, name, numbers } = this.source.rule.script
    // The common ones, made at their full length at once.
    const [first, second] = numbers as readonly [string, string]
    if (kind === 'b') return ['1', stored, kind, name, this.costText(cost), this.life, first]
    if (kind === 'c') return ['1', stored, kind, name, this.costText(cost), this.life, first, second]
    return this.ask(['1', stored], cost, permit, nowUs)
  }

  /** Adds the arguments of a question: letter, name, cost in levels, life, numbers of the rule, then those of the time. */
  ask(rest: string[], cost: number, permit: number, nowUs: number): string[] {
    const { kind, name, numbers, timed } = this.source.rule.script
    rest.push(kind, name, this.costText(cost), this.life, ...numbers)
    if (this.list) rest.push(`${permit}`)
    else if (timed !== undefined) rest.push(...timed(nowUs))
    return rest
  }

  private costText(cost: number): string {
    return cost === 1 ? this.oneCost : `${cost * this.source.rule.script.unit}`
  }
}

/** A question to several policies on its way; `permits` for members that keep a list. */
export interface Question {
  readonly members: readonly Member[]
  /** Partition keys. */
  readonly asked: readonly string[]
  readonly costs: readonly number[]
  readonly permits: readonly number[]
  readonly charge: boolean
}

/** A state as of the answer. Used for one after the other. */
const scratch = new Float64Array(3) as Float64Array & { 0: number; 1: number; 2: number }

/**
 * Reads an answer of the script: µs now, then of each policy its level before the charge, as −1 − level where it refuses.
 * What follows from the level is computed by the rule itself, as in memory. `rebased` hears of states of a broken clock.
 */
export function decisionOf(question: Question, answer: readonly number[], rebased: Rebased): Decision {
  const { members, asked, costs, permits, charge } = question
  const first = answer[0] as number
  const long = first < 0
  const nowUs = long ? -first : first
  let mask = long ? (answer[answer.length - 1] as number) : 0
  const taken = charge && allPass(members, answer, mask)
  const bits = taken ? 0 : peeked
  const parts: Decision[] = []
  let at = 1
  for (let index = 0; index < members.length; index++) {
    const member = members[index] as Member
    const atLength = mask % 2 === 1
    mask = (mask - (mask % 2)) / 2
    const [key, cost, permit] = [asked[index] as string, costs[index] as number, permits[index] as number]
    parts.push(part(member, key, cost, permit, nowUs, taken, bits, answer, at, atLength, charge ? rebased : undefined))
    at += atLength ? sizeAtLength : member.size
  }
  return decideStack(parts, charge ? 0 : peeked)
}

/** As {@link decisionOf} of one policy alone. */
export function decisionOfOne(
  member: Member,
  key: string,
  cost: number,
  permit: number,
  charge: boolean,
  answer: readonly number[],
  rebased: Rebased,
): Decision {
  const first = answer[0] as number
  const taken = charge && (answer[1] as number) >= 0
  const bits = taken ? 0 : peeked
  return first < 0
    ? part(member, key, cost, permit, -first, taken, bits, answer, 1, true, charge ? rebased : undefined)
    : part(member, key, cost, permit, first, taken, bits, answer, 1, false, undefined)
}

/** As {@link decisionOfOne} for a question that may start up to `maxWaitUs` later: see `Ledger.reserve`. */
export function reservationOf(
  member: Member,
  key: string,
  cost: number,
  maxWaitUs: number,
  answer: readonly number[],
  rebased: Rebased,
): Decision {
  const { source } = member
  const { rule } = source
  const refused = (answer[1] as number) < 0
  // As of the answer: what the state was before a charge.
  const before = refused ? [answer[0] as number, -1 - (answer[1] as number), ...answer.slice(2)] : answer
  const asked = decisionOfOne(member, key, cost, 0, false, before, rebased)
  const long = (answer[0] as number) < 0
  if (long && (answer[5] as number) > 0) rebased((answer[5] as number) / 1_000)
  const blocked = long && (answer[4] as number) > 0
  const { nowUs } = asked
  scratch[0] = asked.origin
  scratch[1] = asked.level
  scratch[2] = asked.prior
  const startUs = startUsOf(rule, scratch, 0, nowUs, cost)
  if (refused) {
    const decision = decisionOfOne(member, key, cost, 0, true, answer, () => {})
    return blocked || decision.waitUs > 0 ? decision : tooLate(decision, startUs, maxWaitUs)
  }
  const now = tickOf(nowUs, rule)
  rule.charge(scratch, 0, now, cost, 0)
  const left = rule.remaining(scratch, 0, now)
  return new Decision(source, key, 0, nowUs, cost, left, scratch[0] - now, scratch[1], scratch[2], startUs)
}

type Rebased = (stepMs: number) => void

const sizeAtLength = 5

function allPass(members: readonly Member[], answer: readonly number[], mask: number): boolean {
  let at = 1
  let rest = mask
  for (const member of members) {
    if ((answer[at] as number) < 0) return false
    at += rest % 2 === 1 ? sizeAtLength : member.size
    rest = (rest - (rest % 2)) / 2
  }
  return true
}

function part(
  member: Member,
  key: string,
  cost: number,
  permit: number,
  nowUs: number,
  taken: boolean,
  bits: number,
  answer: readonly number[],
  at: number,
  atLength: boolean,
  rebased: Rebased | undefined,
): Decision {
  const coded = answer[at] as number
  if (atLength) {
    const [lead, more, blockedUs, stepUs] = answer.slice(at + 1, at + sizeAtLength) as [number, number, number, number]
    if (stepUs > 0) rebased?.(stepUs / 1_000)
    return member.told
      ? toldPart(member, key, cost, permit, nowUs, taken, bits, coded, lead, more, blockedUs)
      : statePart(member, key, cost, nowUs, taken, bits, coded, lead, more, blockedUs)
  }
  if (member.told) {
    const [lead, wait] = [answer[at + 1] as number, answer[at + 2] as number]
    return toldPart(member, key, cost, permit, nowUs, taken, bits, coded, lead, wait, 0)
  }
  const prior = member.size === 2 ? (answer[at + 1] as number) : 0
  return statePart(member, key, cost, nowUs, taken, bits, coded, undefined, prior, 0)
}

/** The decision of a rule whose state are numbers. `lead` is undefined where the stored time follows from the rule. */
function statePart(
  { source }: Member,
  key: string,
  cost: number,
  nowUs: number,
  taken: boolean,
  bits: number,
  coded: number,
  lead: number | undefined,
  prior: number,
  blockedUs: number,
): Decision {
  const { rule } = source
  const now = tickOf(nowUs, rule)
  // A key never seen has the stored time that the answer did not say.
  scratch[0] = 0
  scratch[1] = 0
  scratch[2] = 0
  if (lead === undefined) rule.charge(scratch, 0, now, 0, 0)
  else scratch[0] = now + lead
  scratch[1] = coded < 0 ? -1 - coded : coded
  scratch[2] = prior
  let code = bits
  let waitUs = 0
  let left: number
  if (coded < 0) {
    const wait = rule.wait(scratch, 0, now, cost)
    const impossible = wait === Infinity
    code |= reasonCode(impossible ? 'impossible' : blockedUs > 0 ? 'blocked' : rule.denial)
    waitUs = impossible ? Infinity : Math.max((now + wait) * rule.tickUs - nowUs, blockedUs)
    left = blockedUs > 0 && !impossible ? 0 : rule.remaining(scratch, 0, now)
  } else if (taken && rule.take !== undefined) {
    left = rule.take(scratch, 0, now, cost)
  } else {
    if (taken) rule.charge(scratch, 0, now, cost, 0)
    left = rule.remaining(scratch, 0, now)
  }
  return new Decision(source, key, code, nowUs, cost, left, scratch[0] - now, scratch[1], scratch[2], waitUs)
}

/** The decision of a rule whose state is not told, but what is in use, its stored time and the wait in µs. */
function toldPart(
  { source, list }: Member,
  key: string,
  cost: number,
  permit: number,
  nowUs: number,
  taken: boolean,
  bits: number,
  coded: number,
  lead: number,
  wait: number,
  blockedUs: number,
): Decision {
  const { rule } = source
  if (coded >= 0) {
    const level = taken ? coded + cost : coded
    const ahead = !taken ? lead : list ? Math.max(0, lead) : leadAfter(rule, tickOf(nowUs, rule), lead)
    return new Decision(source, key, bits, nowUs, cost, Math.max(0, rule.limit - level), ahead, level, permit, 0)
  }
  const level = -1 - coded
  const impossible = cost > rule.limit
  const blocked = blockedUs > 0 && !impossible
  const code = bits | reasonCode(impossible ? 'impossible' : blocked ? 'blocked' : rule.denial)
  const waitUs = impossible ? Infinity : Math.max(wait, blockedUs)
  const left = blocked ? 0 : Math.max(0, rule.limit - level)
  return new Decision(source, key, code, nowUs, cost, left, lead, level, permit, waitUs)
}

/** The lead once a counter in parts was charged, whose state but for its stored time is the store's. */
function leadAfter(rule: Rule, now: number, lead: number): number {
  scratch[0] = now + lead
  scratch[1] = 1
  rule.charge(scratch, 0, now, 1, 0)
  return scratch[0] - now
}

function tickOf(nowUs: number, { tickUs }: Rule): number {
  return tickUs === 1 ? nowUs : Math.floor(nowUs / tickUs)
}
