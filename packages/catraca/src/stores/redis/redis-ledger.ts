import { nowUs as clockUs } from '../../core/clock.ts'
import { Decision, decide as decideStack, peeked, type Source } from '../../core/decision.ts'
import type { CentralLedger } from '../remote.ts'
import { AskOne, AskSeveral, type Otherwise, opOf } from './ask.ts'
import { GrantQuestion } from './ask-grant.ts'
import { AskDecision, type Asking } from './ask-verbs.ts'
import { type Call, type Calls, PromisedCall } from './calls.ts'
import { DenyCache } from './deny-cache.ts'
import type { Grants } from './grants.ts'
import { KeyNames, sameTag } from './keys.ts'
import { nextPermit } from './permits.ts'
import { decisionOf, decisionOfOne, Member, reservationOf } from './question.ts'
import { amend, reserve, upTo } from './script.generated.ts'

/** What a ledger needs of its store. */
export interface LedgerStore {
  readonly calls: Calls
  readonly prefix: string
  readonly cluster: boolean
  readonly grants: Grants
  rebased(name: string, stepMs: number): void
  charged(): void
}

/** One limiter's states in Redis. Nothing here decides without it. */
export class RedisLedger implements CentralLedger {
  private readonly store: LedgerStore
  private readonly name: string
  private members: Member[] = []
  private names: KeyNames[] = []
  private readonly denials = new DenyCache()
  /** Tags of decisions that have one, to find their states again. */
  private readonly tagOf = new WeakMap<Decision, string>()
  private readonly onClose: () => void
  private readonly rebased: (stepMs: number) => void

  constructor(store: LedgerStore, name: string, policies: readonly Source[], onClose: () => void) {
    this.store = store
    this.name = name
    this.onClose = onClose
    this.rebased = (stepMs) => store.rebased(name, stepMs)
    this.replace(policies)
  }

  replace(policies: readonly Source[]): void {
    this.members = policies.map((source) => new Member(source))
    this.names = policies.map(({ name }) => new KeyNames(this.store.prefix, this.name, name))
    this.denials.clear()
  }

  tryApply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
  ): Decision | undefined {
    if (this.denials.isEmpty) return undefined
    const now = clockUs()
    let denied: Decision | undefined
    let known: (Decision | undefined)[] | undefined
    for (let index = 0; index < members.length; index++) {
      const name = deniedAs(keys[index] as string, tags?.[index])
      const found = this.denials.find(members[index] as number, name, costs[index] as number, now)
      if (found === undefined) continue
      if (members.length === 1) return found
      denied = found
      known ??= members.map(() => undefined)
      known[index] = found
    }
    if (denied === undefined || known === undefined) return undefined
    const { nowUs } = denied
    const parts = known.map((one, index) => {
      if (one !== undefined) return one
      // Not asked: that nothing is left errs on the safe side, and the policy does not say no.
      const { source } = this.members[members[index] as number] as Member
      return new Decision(source, keys[index] as string, peeked, nowUs, costs[index] as number, 0, 0, 0, 0, 0)
    })
    return decideStack(parts, 0)
  }

  apply(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
    otherwise?: Otherwise,
  ): Promise<Decision> {
    if (this.store.cluster && members.length > 1 && !sameTag(tags ?? keys)) {
      const apart = this.applyApart(members, keys, tags, costs, charge)
      return otherwise === undefined ? apart : apart.catch(otherwise)
    }
    return this.ask(members, keys, tags, costs, charge, otherwise)
  }

  grant(
    member: number,
    key: string,
    tag: string | undefined,
    least: number,
    most: number,
    patient = false,
  ): Promise<Decision> {
    const stored = this.nameOf(member, key, tag)
    const sentUs = clockUs()
    return new Promise((resolve, reject) => {
      const known = (decision: Decision): Decision => {
        if (tag !== undefined) this.tagOf.set(decision, tag)
        return decision
      }
      const question = new GrantQuestion(this.member(member), stored, key, least, most, sentUs, {
        resolve: (decision) => {
          if (decision.allowed) this.store.charged()
          else this.learn(member, decision, tag, sentUs)
          resolve(known(decision))
        },
        reject,
        late: (decision) => {
          this.refund(known(decision), decision.cost).catch(() => {})
        },
        rebased: this.rebased,
      })
      this.store.grants.send(question, patient)
    })
  }

  reserve(member: number, key: string, tag: string | undefined, cost: number, maxWaitUs: number): Promise<Decision> {
    const asked = this.member(member)
    const shapes = asked.source.rule.algorithm === 'leaky-queue' ? '1' : '0'
    return this.decided({
      script: reserve,
      keys: [this.nameOf(member, key, tag)],
      args: (nowUs) => asked.ask([`${maxWaitUs}`, shapes, opOf(true, false, asked.change)], cost, 0, nowUs),
      read: (answer) => this.known(reservationOf(asked, key, cost, maxWaitUs, answer, this.rebased), [tag]),
    })
  }

  applyUpTo(
    places: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    most: number,
  ): Promise<Decision> {
    if (this.store.cluster && places.length > 1 && !sameTag(tags ?? keys))
      return this.upToApart(places, keys, tags, most)
    const members = places.map((place) => this.member(place))
    const permits = members.map(({ list }) => (list ? nextPermit() : 0))
    const list = members.some((member) => member.list)
    return this.decided({
      script: upTo,
      keys: places.map((place, index) => this.nameOf(place, keys[index] as string, tags?.[index])),
      args: (nowUs) => {
        const args = [`${most}`, ...members.map(({ source }) => `${source.rule.script.unit}`)]
        args.push(opOf(true, list, members.map(({ change }) => change).join('')))
        members.forEach((member, index) => member.ask(args, 1, permits[index] as number, nowUs))
        return args
      },
      read: (answer) => {
        const units = answer[answer.length - 1] as number
        const question = { members, asked: keys, costs: members.map(() => units), permits, charge: true }
        const decision = decisionOf(question, answer.slice(0, -1), this.rebased)
        return this.known(places.length === 1 ? (decision.stack[0] as Decision) : decision, tags)
      },
    })
  }

  /** Asks how much passes, then for that: what another took in between is asked for once more, then refused. */
  private async upToApart(
    places: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    most: number,
  ): Promise<Decision> {
    const ones = places.map(() => 1)
    let decision = await this.applyApart(places, keys, tags, ones, false)
    for (let tries = 0; tries < 2; tries++) {
      const room = Math.min(most, ...decision.stack.map(({ remaining }) => remaining))
      const units = Math.max(1, room)
      decision = await this.applyApart(
        places,
        keys,
        tags,
        ones.map(() => units),
        true,
      )
      if (decision.allowed || units === 1) return decision
    }
    return this.applyApart(places, keys, tags, ones, true)
  }

  async settle(decision: Decision, units: number): Promise<number> {
    const { charged, source, key } = decision
    if (charged === 0 || units === charged) return 0
    if (units < charged) return this.refund(decision, charged - units)
    const index = this.placeOf(source)
    if (index < 0 || source.rule.holds) return 0
    const member = this.member(index)
    const args = member.ask([`s.${member.change}`], units - charged, nextPermit(), clockUs())
    const added = await this.amend(index, key, this.tagOf.get(decision), args)
    return added === 0 ? 0 : -added
  }

  refund(decision: Decision, units: number): Promise<number> {
    const { source, key } = decision
    const index = this.placeOf(source)
    if (index < 0 || decision.charged === 0) return Promise.resolve(0)
    const { rule } = source
    const { script } = rule
    const tag = this.tagOf.get(decision)
    this.denials.forget(index, deniedAs(key, tag))
    const asked = `${Math.min(units, decision.charged)}`
    const args = ['r', script.name, `${script.lifeMs}`]
    if (script.kind === 'l') args.push(`${decision.prior}`, asked, '0', `${decision.nowUs}`)
    else {
      const shapes = rule.algorithm === 'leaky-queue' ? '1' : '0'
      args.push(`${decision.origin}`, asked, `${decision.level}`, `${decision.nowUs}`, `${decision.prior}`, shapes)
    }
    return this.amend(index, key, tag, args).then((given) => given / script.unit)
  }

  renew(decision: Decision): Promise<boolean> {
    const { source, key } = decision
    const index = this.members.findIndex((member) => member.source.name === source.name)
    if (index < 0 || decision.charged === 0) return Promise.resolve(false)
    const { script } = source.rule
    const life = script.numbers[1] as string
    const args = [
      'n',
      script.name,
      `${script.lifeMs}`,
      `${decision.prior}`,
      `${decision.charged}`,
      life,
      `${decision.nowUs}`,
    ]
    return this.amend(index, key, this.tagOf.get(decision), args).then((found) => found > 0)
  }

  async charge(member: number, key: string, tag: string | undefined, units: number): Promise<void> {
    const asked = this.member(member)
    const args = asked.ask([`c.${asked.change}`], units, nextPermit(), clockUs())
    await this.amend(member, key, tag, args)
  }

  async reset(member: number, key: string, tag: string | undefined): Promise<void> {
    const { script } = (this.members[member] as Member).source.rule
    await this.amend(member, key, tag, ['g', script.name, `${Math.max(script.lifeMs, 1_000)}`, '0'])
  }

  async block(member: number, key: string, tag: string | undefined, us: number): Promise<void> {
    const { script } = (this.members[member] as Member).source.rule
    await this.amend(member, key, tag, ['b', script.name, `${Math.max(script.lifeMs, 1_000)}`, `${us}`])
  }

  close(): void {
    this.denials.clear()
    this.onClose()
  }

  /** Asks in one trip. */
  private ask(
    places: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
    otherwise: Otherwise | undefined,
  ): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject, otherwise }
      const now = clockUs()
      this.store.calls.send(
        places.length === 1
          ? new AskOne(this, places[0] as number, keys[0] as string, tags?.[0], costs[0] as number, charge, now, waiter)
          : new AskSeveral(this, places, keys, tags, costs, charge, now, waiter),
      )
    })
  }

  /** @internal */
  member(place: number): Member {
    return this.members[place] as Member
  }

  /** @internal */
  nameOf(place: number, key: string, tag: string | undefined): string {
    return (this.names[place] as KeyNames).nameOf(key, tag)
  }

  /** @internal */
  readOne(ask: AskOne, answer: readonly number[]): Decision {
    const { member, key, cost, permit, charge, tag } = ask
    const decision = decisionOfOne(member, key, cost, permit, charge, answer, this.rebased)
    if (tag !== undefined) this.tagOf.set(decision, tag)
    if (charge) {
      if (decision.allowed) this.store.charged()
      else this.learn(ask.place, decision, tag, ask.sentUs)
    }
    return decision
  }

  /** @internal */
  readSeveral(ask: AskSeveral, answer: readonly number[]): Decision {
    const decision = decisionOf(ask, answer, this.rebased)
    const { tags, charge, places, sentUs } = ask
    const { stack } = decision
    if (tags !== undefined) stack.forEach((one, index) => this.tagOf.set(one, tags[index] as string))
    if (charge && decision.allowed) this.store.charged()
    else if (charge) stack.forEach((one, index) => this.learn(places[index] as number, one, tags?.[index], sentUs))
    return decision
  }

  /** @internal Sends a question. */
  send(ask: Call): void {
    this.store.calls.send(ask)
  }

  /** Remembers a refusal. */
  private learn(place: number, decision: Decision, tag: string | undefined, sentUs: number): void {
    const { source } = decision
    if (decision.allowed || source.rule.holds || source.refunds === true) return
    this.denials.add(place, deniedAs(decision.key, tag), decision, sentUs)
  }

  /** @internal A permit that came after its call was given up is nobody's. */
  abandon(decision: Decision): void {
    for (const one of decision.stack) if (one.source.rule.holds) this.refund(one, one.cost).catch(() => {})
  }

  /**
   * Policies on several nodes of a cluster cannot be asked in one trip: all are charged at once, each alone, and where one
   * refuses the others are given back. In between another caller can be refused what is then given back.
   */
  private async applyApart(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
  ): Promise<Decision> {
    const groups = new Map<string, number[]>()
    members.forEach((_, index) => {
      const tag = (tags ?? keys)[index] as string
      groups.set(tag, [...(groups.get(tag) ?? []), index])
    })
    const pick = <T>(from: readonly T[], group: readonly number[]): T[] => group.map((index) => from[index] as T)
    const asked = [...groups.values()].map(async (group) => {
      const own = tags === undefined ? undefined : pick(tags, group)
      const decision = await this.ask(
        pick(members, group),
        pick(keys, group),
        own,
        pick(costs, group),
        charge,
        undefined,
      )
      return { group, decision }
    })
    const settled = await Promise.allSettled(asked)
    const failure = settled.find((one) => one.status === 'rejected')
    const answered = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const all = failure === undefined && answered.every(({ decision }) => decision.allowed)
    const parts: Decision[] = []
    for (const { group, decision } of answered) {
      const undo = charge && !all && decision.allowed
      await Promise.all(
        decision.stack.map(async (one, place) => {
          if (undo) {
            await this.refund(one, one.cost).catch(() => 0)
            one.state |= peeked
          }
          parts[group[place] as number] = one
        }),
      )
    }
    if (failure !== undefined) throw failure.reason
    return decideStack(parts, 0)
  }

  private amend(member: number, key: string, tag: string | undefined, args: readonly string[]): Promise<number> {
    this.denials.forget(member, deniedAs(key, tag))
    const name = (this.names[member] as KeyNames).nameOf(key, tag)
    const call = new PromisedCall(amend, [name], args)
    this.store.calls.send(call)
    // A quota that was asked with the periods of another time says the time: nothing was done.
    return call.promise.then((answer) => (Array.isArray(answer) ? 0 : Number(answer)))
  }

  /** The place of a policy, after a replacement that of the first of its name; −1 where there is none. */
  private placeOf(source: Source): number {
    return this.members.findIndex((member) => member.source === source || member.source.name === source.name)
  }

  private decided(asking: Omit<Asking, 'resolve' | 'reject' | 'late'>): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const whole: Asking = {
        ...asking,
        resolve: (decision) => {
          if (decision.allowed) this.store.charged()
          resolve(decision)
        },
        reject,
        late: (decision) => {
          for (const one of decision.stack) this.refund(one, one.cost).catch(() => {})
        },
      }
      this.store.calls.send(new AskDecision(whole, clockUs(), (again) => this.store.calls.send(again)))
    })
  }

  /** Remembers under which tags a decision was made. */
  private known(decision: Decision, tags: readonly (string | undefined)[] | undefined): Decision {
    decision.stack.forEach((one, index) => {
      const tag = tags?.[index]
      if (tag !== undefined) this.tagOf.set(one, tag)
    })
    return decision
  }
}

/** Under which a refusal is known: a key under two tags has two states. */
function deniedAs(key: string, tag: string | undefined): string {
  return tag === undefined ? key : `${tag.length}:${tag}${key}`
}
