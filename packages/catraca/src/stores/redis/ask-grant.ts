import type { Decision } from '../../core/decision.ts'
import { outlastsRule } from '../lease/terms.ts'
import { numbersOf, opOf } from './ask.ts'
import { Call } from './calls.ts'
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

/** What a grant needs of the ledger it is asked for. */
interface Ledger {
  nameOf(place: number, key: string, tag: string | undefined): string
  rebasedBy(stepMs: number): void
}

/** Numbers of an answer after those of a decision: levels charged, the instant of a loss, whether the marker is another. */
const more = 3

/** Units asked for by an instance that decides with them itself. */
export class AskGrant extends Call {
  readonly promise: Promise<Decision>
  readonly place: number
  readonly member: Member
  readonly key: string
  readonly tag: string | undefined
  private readonly least: number
  private readonly permit: number
  private readonly ledger: Ledger
  private readonly memory: Memory
  private readonly abandoned: (decision: Decision) => void
  private settle: [(decision: Decision) => void, (fault: unknown) => void] | undefined

  constructor(
    ledger: Ledger,
    memory: Memory,
    place: number,
    member: Member,
    key: string,
    tag: string | undefined,
    least: number,
    most: number,
    nowUs: number,
    abandoned: (decision: Decision) => void,
  ) {
    const { lease, rule } = member.source
    const { unit } = rule.script
    const permit = member.list ? nextPermit() : 0
    const { markerKey } = memory
    const keys = [ledger.nameOf(place, key, tag)]
    if (markerKey !== undefined) keys.push(markerKey)
    const rest = [`${keys.length}`, ...keys, newMarker(), memory.marker, `${memory.lostUs}`]
    rest.push(`${lease?.ttlUs ?? 0}`, lease !== undefined && outlastsRule(rule, lease) ? '1' : '0')
    rest.push(`${least * unit}`, `${unit}`, `${rule.limit * unit}`, opOf(true, member.list, member.change))
    super(grant, keys.length, member.ask(rest, most, permit, nowUs))
    this.ledger = ledger
    this.memory = memory
    this.place = place
    this.member = member
    this.key = key
    this.tag = tag
    this.least = least
    this.permit = permit
    this.abandoned = abandoned
    this.promise = new Promise((resolve, reject) => {
      this.settle = [resolve, reject]
    })
  }

  succeed(answer: unknown): void {
    this.settle?.[0](this.read(answer))
  }

  fail(fault: unknown): void {
    this.settle?.[1](fault)
  }

  override late(answer: unknown): void {
    const decision = this.read(answer)
    if (decision.allowed) this.abandoned(decision)
  }

  private read(answer: unknown): Decision {
    const numbers = numbersOf(answer)
    const [granted, lostUs, changed] = numbers.slice(-more) as [number, number, number]
    if (changed === 1 || lostUs > this.memory.lostUs) this.memory.suspect()
    const { key, permit, member, least } = this
    const passes = (numbers[1] as number) >= 0
    const cost = passes ? granted / member.source.rule.script.unit : least
    return decisionOfOne(member, key, cost, permit, true, numbers, (stepMs) => this.ledger.rebasedBy(stepMs))
  }
}
