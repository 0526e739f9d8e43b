import type { Source } from '../../core/decision.ts'
import type { Channel } from './channel.ts'
import { HeldHere } from './held-here.ts'
import type { SharedStates } from './shared-states.ts'
import {
  type Answer,
  type Body,
  decisionOfCharge,
  isMessage,
  type Message,
  numbersOf,
  type PolicyForm,
  type Question,
} from './wire.ts'

/** A limiter of one worker. */
interface Use {
  readonly name: string
  readonly states: SharedStates
  /** The list in force. */
  forms: readonly PolicyForm[]
  /** Every policy that was ever in the list, by its number: charges of before can still be given back. */
  readonly policies: Map<number, Source>
  readonly held: HeldHere
}

type List = readonly (readonly [number: number, form: PolicyForm])[]

const done: readonly number[] = []

/** One worker, seen from the process that holds the memory. */
export class Attached {
  private readonly channel: Channel
  private readonly find: (name: string) => SharedStates
  private readonly drop: (name: string) => void
  private readonly ended: () => void
  private readonly stops: (() => void)[]
  private readonly uses = new Map<number, Use>()
  private answers: Answer[] = []
  private gone = false

  /** @param drop Is called with a name when this worker ends its use by itself; the last to do so ends the states. */
  constructor(channel: Channel, find: (name: string) => SharedStates, drop: (name: string) => void, ended: () => void) {
    this.channel = channel
    this.find = find
    this.drop = drop
    this.ended = ended
    this.stops = [
      channel.onMessage((message) => {
        if (isMessage('asks', message)) this.receive(message.list)
      }),
      channel.onClose(() => this.leave()),
    ]
  }

  /** Answers no more, and says so. */
  detach(): void {
    if (this.gone) return
    this.send({ catraca: 'closed' })
    this.leave()
  }

  private leave(): void {
    if (this.gone) return
    this.gone = true
    for (const stop of this.stops) stop()
    // Its states stay, for the one that comes in its place; what it held for work under way does not.
    for (const use of this.uses.values()) {
      use.held.giveBack()
      use.states.leave(use.forms, true)
    }
    this.uses.clear()
    this.ended()
  }

  private receive(questions: readonly Question[]): void {
    for (const [id, body] of questions) {
      let said: readonly number[] | string
      try {
        said = this.answer(body)
      } catch (error) {
        // Who asked must hear of it: a question without an answer would be waited for.
        said = String((error as Error)?.message ?? error)
      }
      if (id !== 0) this.answers.push([id, said])
    }
    const { answers } = this
    this.answers = []
    if (answers.length > 0) this.send({ catraca: 'answers', list: answers })
  }

  private answer(body: Body): readonly number[] {
    if (body[0] === 'probe') return done
    const [, ledger] = body
    if (body[0] === 'open') {
      const [, , name, list] = body
      this.open(ledger, name, list)
      return done
    }
    const use = this.uses.get(ledger)
    if (use === undefined) throw new Error('the limiter is not open')
    const tell = {
      evicted: (policy: string, key: string, limited: boolean) =>
        void this.answers.push([0, ledger, 'evicted', policy, key, limited]),
      rebased: (stepMs: number) => void this.answers.push([0, ledger, 'rebased', stepMs]),
    }
    return use.states.run(tell, () => this.answerOf(use, ledger, body))
  }

  private answerOf(
    use: Use,
    ledger: number,
    body: Exclude<Body, readonly ['open' | 'probe', ...unknown[]]>,
  ): readonly number[] {
    const { states, held } = use
    switch (body[0]) {
      case 'apply': {
        const [, , members, keys, costs, charge] = body
        const policies = members.map((member) => policyOf(use, member))
        const decision = states.apply(policies, keys, costs, charge === 1)
        for (const one of decision.stack) held.add(one)
        return numbersOf(decision)
      }
      case 'grant': {
        const [, , member, key, least, most] = body
        const decision = states.grant(policyOf(use, member), key, least, most)
        return [decision.cost, ...numbersOf(decision)]
      }
      case 'reserve': {
        const [, , member, key, cost, maxWaitUs] = body
        return numbersOf(states.reserve(policyOf(use, member), key, cost, maxWaitUs))
      }
      case 'upTo': {
        const [, , members, keys, most] = body
        const policies = members.map((member) => policyOf(use, member))
        const decision = states.applyUpTo(policies, keys, most)
        for (const one of decision.stack) held.add(one)
        return [decision.cost, ...numbersOf(decision)]
      }
      case 'settle': {
        const [, , member, charge, units] = body
        return [states.settle(decisionOfCharge(policyOf(use, member), charge), units)]
      }
      case 'refund': {
        const [, , member, charge, units] = body
        const policy = policyOf(use, member)
        const decision = decisionOfCharge(policy, charge)
        return [policy.rule.holds ? held.release(decision, units) : states.refund(decision, units)]
      }
      case 'renew':
        return [held.renew(body[2]) ? 1 : 0]
      case 'charge':
        states.charge(policyOf(use, body[2]), body[3], body[4])
        return done
      case 'reset':
        states.reset(policyOf(use, body[2]), body[3])
        return done
      case 'block':
        states.block(policyOf(use, body[2]), body[3], body[4])
        return done
      case 'replace':
        this.replace(use, body[2])
        return done
      default:
        this.close(ledger, use)
        return done
    }
  }

  private open(ledger: number, name: string, list: List): void {
    const states = this.find(name)
    const forms = list.map(([, form]) => form)
    const use: Use = { name, states, forms, policies: new Map(), held: new HeldHere(states) }
    number(use, list, states.join(forms))
    this.uses.set(ledger, use)
  }

  private replace(use: Use, list: List): void {
    const forms = list.map(([, form]) => form)
    number(use, list, use.states.exchange(use.forms, forms))
    use.forms = forms
  }

  private close(ledger: number, use: Use): void {
    use.held.giveBack()
    use.states.leave(use.forms, false)
    this.uses.delete(ledger)
    if (use.states.isUnused) this.drop(use.name)
  }

  private send(message: Message): void {
    try {
      this.channel.send(message)
    } catch {
      this.leave()
    }
  }
}

function number({ policies }: Use, list: List, sources: readonly Source[]): void {
  list.forEach(([member], index) => policies.set(member, sources[index] as Source))
}

function policyOf({ policies }: Use, number: number): Source {
  const policy = policies.get(number)
  if (policy === undefined) throw new Error('the policy is not known')
  return policy
}
