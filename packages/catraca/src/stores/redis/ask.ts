import type { Decision } from '../../core/decision.ts'
import { StoreFault } from '../remote.ts'
import { Call } from './calls.ts'
import { nextPermit } from './permits.ts'
import type { Member, Question } from './question.ts'
import { decide } from './script.generated.ts'

/** What decides a question that the store did not answer. */
export type Otherwise = (fault: unknown) => Decision

/** What is asked: places of policies, partition keys, tags, costs. */
export interface What {
  readonly places: readonly number[]
  readonly asked: readonly string[]
  readonly tags: readonly string[] | undefined
  readonly costs: readonly number[]
  readonly charge: boolean
}

/** What a question needs of the ledger it is asked for. */
interface Ledger {
  member(place: number): Member
  nameOf(place: number, key: string, tag: string | undefined): string
  read(ask: Ask, answer: readonly number[]): Decision
  abandon(ask: Ask, answer: readonly number[]): void
  send(ask: Ask): void
}

type Resolve = (decision: Decision) => void
type Reject = (fault: unknown) => void

/** A question on its way to the store. One object per question, as this is the hot path. */
export class Ask extends Call implements Question {
  readonly members: readonly Member[]
  readonly permits: readonly number[]
  readonly what: What
  /** When it was sent, by the clock here. */
  readonly sentUs: number
  private readonly ledger: Ledger
  private readonly resolve: Resolve
  private readonly reject: Reject
  private readonly otherwise: Otherwise | undefined
  /** True for a question that is asked once more, by the clock of the store. */
  private repeated = false

  private constructor(
    ledger: Ledger,
    what: What,
    members: readonly Member[],
    permits: readonly number[],
    names: readonly string[],
    args: readonly string[],
    sentUs: number,
    resolve: Resolve,
    reject: Reject,
    otherwise: Otherwise | undefined,
  ) {
    super(decide, names, args)
    this.ledger = ledger
    this.what = what
    this.members = members
    this.permits = permits
    this.sentUs = sentUs
    this.resolve = resolve
    this.reject = reject
    this.otherwise = otherwise
  }

  static of(
    ledger: Ledger,
    what: What,
    nowUs: number,
    resolve: Resolve,
    reject: Reject,
    otherwise: Otherwise | undefined,
  ): Ask {
    const { places, asked, tags, costs, charge } = what
    if (places.length === 1) {
      const member = ledger.member(places[0] as number)
      const permit = member.list ? nextPermit() : 0
      const name = ledger.nameOf(places[0] as number, asked[0] as string, tags?.[0])
      const cost = costs[0] as number
      let args: string[]
      if (charge && member.change === 'k') args = member.alone(cost, permit, nowUs)
      else member.ask((args = [opOf(charge, member.list, member.change)]), cost, permit, nowUs)
      return new Ask(ledger, what, [member], [permit], [name], args, nowUs, resolve, reject, otherwise)
    }
    const members = places.map((place) => ledger.member(place))
    const names = places.map((place, index) => ledger.nameOf(place, asked[index] as string, tags?.[index]))
    const permits = members.map(({ list }) => (list ? nextPermit() : 0))
    const list = members.some((member) => member.list)
    const changes = members.some(({ change }) => change !== 'k') ? members.map(({ change }) => change).join('') : ''
    const args = [opOf(charge, list, changes)]
    members.forEach((member, index) => member.ask(args, costs[index] as number, permits[index] as number, nowUs))
    return new Ask(ledger, what, members, permits, names, args, nowUs, resolve, reject, otherwise)
  }

  succeed(answer: unknown): void {
    const numbers = answer as readonly number[]
    if (numbers.length > 1) this.resolve(this.ledger.read(this, numbers))
    else if (this.repeated) this.fail(new StoreFault('refuses', 'the clock of the store moved while it was asked'))
    else this.repeat(numbers[0] as number)
  }

  fail(fault: StoreFault): void {
    if (this.otherwise === undefined) this.reject(fault)
    else this.resolve(this.otherwise(fault))
  }

  override late(answer: unknown): void {
    const numbers = answer as readonly number[]
    if (this.what.charge && numbers.length > 1 && this.members.some(({ list }) => list)) {
      this.ledger.abandon(this, numbers)
    }
  }

  /** The clock here is off by more than a period of a quota: once more, with the periods of the store's time. */
  private repeat(storeUs: number): void {
    const { ledger, what, resolve, reject, otherwise } = this
    const ask = Ask.of(ledger, what, storeUs, resolve, reject, otherwise)
    ask.repeated = true
    ledger.send(ask)
  }
}

/** What the script is to do, at its length of two letters or more. */
function opOf(charge: boolean, list: boolean, changes: string): string {
  return (charge ? 't' : 'p') + (list ? 'l' : '.') + changes
}
