import type { Decision } from '../../core/decision.ts'
import { StoreFault } from '../remote.ts'
import { Call } from './calls.ts'
import { nextPermit } from './permits.ts'
import type { Member, Question } from './question.ts'
import { decide } from './script.generated.ts'

/** What decides a question that the store did not answer. */
export type Otherwise = (fault: unknown) => Decision

/** Who waits for a question, and what decides it where the store does not. */
interface Waiter {
  readonly resolve: (decision: Decision) => void
  readonly reject: (fault: unknown) => void
  readonly otherwise: Otherwise | undefined
}

/** What a question needs of the ledger it is asked for. */
interface Ledger {
  member(place: number): Member
  nameOf(place: number, key: string, tag: string | undefined): string
  readOne(ask: AskOne, answer: readonly number[]): Decision
  readSeveral(ask: AskSeveral, answer: readonly number[]): Decision
  abandon(decision: Decision): void
  send(ask: Call): void
}

/** A question on its way to the store. */
abstract class Ask extends Call {
  readonly charge: boolean
  /** When it was sent, by the clock here. */
  readonly sentUs: number
  protected readonly ledger: Ledger
  protected readonly waiter: Waiter
  /** True for a question that is asked once more, by the clock of the store. */
  repeated = false

  constructor(
    ledger: Ledger,
    keyCount: number,
    rest: readonly string[],
    charge: boolean,
    sentUs: number,
    waiter: Waiter,
  ) {
    super(decide, keyCount, rest)
    this.ledger = ledger
    this.charge = charge
    this.sentUs = sentUs
    this.waiter = waiter
  }

  succeed(answer: unknown): void {
    const numbers = numbersOf(answer)
    if (numbers.length > 1) this.waiter.resolve(this.read(numbers))
    else if (this.repeated) this.fail(new StoreFault('refuses', 'the clock of the store moved while it was asked'))
    else {
      // The clock here is off by more than a period of a quota: once more, with the periods of the store's time.
      const again = this.at(numbers[0] as number)
      again.repeated = true
      this.ledger.send(again)
    }
  }

  fail(fault: StoreFault): void {
    const { otherwise, resolve, reject } = this.waiter
    if (otherwise === undefined) reject(fault)
    else resolve(otherwise(fault))
  }

  override late(answer: unknown): void {
    const numbers = numbersOf(answer)
    if (this.charge && numbers.length > 1 && this.holds) this.ledger.abandon(this.read(numbers))
  }

  protected abstract read(answer: readonly number[]): Decision
  /** The same question with the numbers of another time. */
  protected abstract at(nowUs: number): Ask
  protected abstract get holds(): boolean
}

/** A question to one policy. */
export class AskOne extends Ask {
  readonly place: number
  readonly member: Member
  readonly key: string
  readonly tag: string | undefined
  readonly cost: number
  readonly permit: number

  constructor(
    ledger: Ledger,
    place: number,
    key: string,
    tag: string | undefined,
    cost: number,
    charge: boolean,
    nowUs: number,
    waiter: Waiter,
  ) {
    const member = ledger.member(place)
    const permit = member.list ? nextPermit() : 0
    const name = ledger.nameOf(place, key, tag)
    const rest =
      charge && member.change === 'k'
        ? member.alone(name, cost, permit, nowUs)
        : member.ask(['1', name, opOf(charge, member.list, member.change)], cost, permit, nowUs)
    super(ledger, 1, rest, charge, nowUs, waiter)
    this.place = place
    this.member = member
    this.key = key
    this.tag = tag
    this.cost = cost
    this.permit = permit
  }

  protected read(answer: readonly number[]): Decision {
    return this.ledger.readOne(this, answer)
  }

  protected at(nowUs: number): AskOne {
    return new AskOne(this.ledger, this.place, this.key, this.tag, this.cost, this.charge, nowUs, this.waiter)
  }

  protected get holds(): boolean {
    return this.member.list
  }
}

/** A question to several policies, of which all are charged or none. */
export class AskSeveral extends Ask implements Question {
  readonly places: readonly number[]
  readonly members: readonly Member[]
  readonly asked: readonly string[]
  readonly tags: readonly string[] | undefined
  readonly costs: readonly number[]
  readonly permits: readonly number[]

  constructor(
    ledger: Ledger,
    places: readonly number[],
    asked: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
    nowUs: number,
    waiter: Waiter,
  ) {
    const { length } = places
    const members: Member[] = []
    const permits: number[] = []
    const rest = [`${length}`]
    let list = false
    let changes = ''
    for (let index = 0; index < length; index++) {
      const place = places[index] as number
      const member = ledger.member(place)
      members.push(member)
      permits.push(member.list ? nextPermit() : 0)
      rest.push(ledger.nameOf(place, asked[index] as string, tags?.[index]))
      if (member.list) list = true
      changes += member.change
    }
    rest.push(opOf(charge, list, changes))
    for (let index = 0; index < length; index++) {
      ;(members[index] as Member).ask(rest, costs[index] as number, permits[index] as number, nowUs)
    }
    super(ledger, length, rest, charge, nowUs, waiter)
    this.places = places
    this.members = members
    this.asked = asked
    this.tags = tags
    this.costs = costs
    this.permits = permits
  }

  protected read(answer: readonly number[]): Decision {
    return this.ledger.readSeveral(this, answer)
  }

  protected at(nowUs: number): AskSeveral {
    const { ledger, places, asked, tags, costs, charge, waiter } = this
    return new AskSeveral(ledger, places, asked, tags, costs, charge, nowUs, waiter)
  }

  protected get holds(): boolean {
    return this.members.some(({ list }) => list)
  }
}

/** Clients can be told to give numbers as texts. */
export function numbersOf(answer: unknown): readonly number[] {
  const numbers = answer as readonly number[]
  return typeof numbers[0] === 'number' ? numbers : numbers.map(Number)
}

/** What the script is to do, at its length of two letters or more. */
export function opOf(charge: boolean, list: boolean, changes: string): string {
  return (charge ? 't' : 'p') + (list ? 'l' : '.') + changes
}
