import type { Decision } from '../../core/decision.ts'
import { outlastsRule } from '../lease/terms.ts'
import { numbersOf, opOf } from './ask.ts'
import { BatchError, Call, isErrorOf } from './calls.ts'
import { faultOf } from './fault.ts'
import { nextPermit } from './permits.ts'
import { name as newMarker } from './pulse.ts'
import { decisionOfOne, type Member } from './question.ts'
import { grant } from './script.generated.ts'

/** What the store knows of its memory. */
export interface Memory {
  /** Undefined in a cluster, where it is on another node than most states. */
  readonly markerKey: string | undefined
  readonly marker: string
  readonly lostUs: number
  /** Somebody should look at the marker. */
  suspect(): void
}

/** Who asks for units. */
export interface Grantee {
  readonly resolve: (decision: Decision) => void
  readonly reject: (fault: unknown) => void
  /** Units that came after the question was given up are nobody's. */
  readonly late: (decision: Decision) => void
  readonly rebased: (stepMs: number) => void
}

/** Units asked for by an instance that decides with them itself. */
export class GrantQuestion {
  readonly stored: string
  readonly member: Member
  private readonly key: string
  private readonly least: number
  private readonly most: number
  private readonly nowUs: number
  private readonly permit: number
  private readonly grantee: Grantee

  constructor(
    member: Member,
    stored: string,
    key: string,
    least: number,
    most: number,
    nowUs: number,
    grantee: Grantee,
  ) {
    this.member = member
    this.stored = stored
    this.key = key
    this.least = least
    this.most = most
    this.nowUs = nowUs
    this.permit = member.list ? nextPermit() : 0
    this.grantee = grantee
  }

  /** Adds the arguments of the policy of several questions. */
  askPolicy(rest: string[], questions: number): void {
    const { list, change, source } = this.member
    const { lease, rule } = source
    const { unit } = rule.script
    const covers = lease !== undefined && outlastsRule(rule, lease)
    rest.push(`${lease?.ttlUs ?? 0}`, covers ? '1' : '0', `${unit}`, `${rule.limit * unit}`, `${questions}`)
    const at = rest.length
    rest.push('', opOf(true, list, change))
    this.member.ask(rest, 0, 0, this.nowUs)
    rest[at] = `${rest.length - at - 1}`
  }

  /** Adds the arguments of the question alone. */
  ask(rest: string[]): void {
    rest.push(`${this.least}`, `${this.most}`, `${this.permit}`)
  }

  answer(answer: readonly unknown[]): void {
    if (isErrorOf(answer)) this.fail(faultOf(new BatchError(String(answer[0]))))
    else this.grantee.resolve(this.read(answer))
  }

  fail(fault: unknown): void {
    this.grantee.reject(fault)
  }

  late(answer: readonly unknown[]): void {
    if (isErrorOf(answer)) return
    const decision = this.read(answer)
    if (decision.allowed) this.grantee.late(decision)
  }

  private read(answer: readonly unknown[]): Decision {
    const numbers = numbersOf(answer)
    const { key, permit, member, least, grantee } = this
    const passes = (numbers[1] as number) >= 0
    const cost = passes ? (numbers[numbers.length - 1] as number) / member.source.rule.script.unit : least
    return decisionOfOne(member, key, cost, permit, true, numbers, grantee.rebased)
  }
}

/** Questions for units that travel together. */
export class AskGrants extends Call {
  private readonly questions: readonly GrantQuestion[]
  private readonly memory: Memory

  constructor(questions: readonly GrantQuestion[], memory: Memory) {
    const { markerKey, marker, lostUs } = memory
    // Questions of a policy stand together, so that what they share is said once.
    const sorted: GrantQuestion[] = []
    const policies = new Map<Member, GrantQuestion[]>()
    for (const question of questions) {
      const known = policies.get(question.member)
      if (known === undefined) policies.set(question.member, [question])
      else known.push(question)
    }
    for (const group of policies.values()) sorted.push(...group)
    const keys = sorted.map(({ stored }) => stored)
    if (markerKey !== undefined) keys.push(markerKey)
    const rest = [
      `${keys.length}`,
      ...keys,
      markerKey === undefined ? '' : newMarker(),
      marker,
      `${lostUs}`,
      `${policies.size}`,
    ]
    for (const group of policies.values()) {
      ;(group[0] as GrantQuestion).askPolicy(rest, group.length)
      for (const question of group) question.ask(rest)
    }
    super(grant, keys.length, rest)
    this.questions = sorted
    this.memory = memory
  }

  succeed(answer: unknown): void {
    const answers = this.opened(answer)
    this.questions.forEach((question, index) => question.answer(answers[index] as unknown[]))
  }

  fail(fault: unknown): void {
    for (const question of this.questions) question.fail(fault)
  }

  override late(answer: unknown): void {
    const answers = this.opened(answer)
    this.questions.forEach((question, index) => question.late(answers[index] as unknown[]))
  }

  private opened(answer: unknown): readonly unknown[] {
    const answers = answer as readonly unknown[]
    const { length } = this.questions
    const [lostUs, changed] = [Number(answers[length]), Number(answers[length + 1])]
    if (changed === 1 || lostUs > this.memory.lostUs) this.memory.suspect()
    return answers
  }
}
