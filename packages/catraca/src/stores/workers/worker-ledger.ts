import type { Decision, Source } from '../../core/decision.ts'
import { storedKey } from '../key.ts'
import type { CentralLedger, StoreFault } from '../remote.ts'
import { makeRule } from '../rule-form.ts'
import type { Questions } from './questions.ts'
import { type Body, chargeOf, decisionOf, formOf, type PolicyForm } from './wire.ts'

/** One limiter's states in the memory of the primary, seen from a worker. Nothing here decides without it. */
export class WorkerLedger implements CentralLedger {
  private readonly questions: Questions
  /** Its number on the channel. */
  private readonly ledger: number
  private readonly onClose: () => void
  /** The number of every form of a policy that was ever in the list. */
  private readonly byForm = new Map<string, number>()
  private readonly numbers = new WeakMap<Source, number>()
  private policies: readonly Source[] = []
  /** The numbers of the policies, in their order. */
  private members: readonly number[] = []
  private closed = false

  constructor(questions: Questions, ledger: number, name: string, policies: readonly Source[], onClose: () => void) {
    this.questions = questions
    this.ledger = ledger
    this.onClose = onClose
    questions.tell(['open', ledger, name, this.take(policies)])
  }

  replace(policies: readonly Source[]): void {
    this.questions.tell(['replace', this.ledger, this.take(policies)])
  }

  tryApply(): undefined {
    return undefined
  }

  apply(
    members: readonly number[],
    keys: readonly string[],
    _tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
    otherwise?: (fault: unknown) => Decision,
  ): Promise<Decision> {
    const sources = members.map((member) => this.policies[member] as Source)
    const places = members.map((member) => this.members[member] as number)
    const read = (numbers: readonly number[]): Decision => decisionOf(sources, keys, costs, charge, numbers)
    return new Promise((resolve, reject) => {
      this.questions.ask(['apply', this.ledger, places, keys.map(storedKey), costs, charge ? 1 : 0], {
        answered: (numbers) => resolve(read(numbers)),
        failed: (fault) => (otherwise === undefined ? reject(fault) : resolve(otherwise(fault))),
        // A permit that came after its question was given up is nobody's.
        late: (numbers) => {
          if (charge) this.abandon(read(numbers).stack.filter(({ source }) => source.rule.holds))
        },
      })
    })
  }

  grant(member: number, key: string, _tag: string | undefined, least: number, most: number): Promise<Decision> {
    const source = this.policies[member] as Source
    const read = ([units = 0, ...numbers]: readonly number[]): Decision =>
      decisionOf([source], [key], [units], true, numbers)
    return new Promise((resolve, reject) => {
      this.questions.ask(['grant', this.ledger, this.members[member] as number, storedKey(key), least, most], {
        answered: (numbers) => resolve(read(numbers)),
        failed: reject,
        late: (numbers) => this.abandon([read(numbers)]),
      })
    })
  }

  reserve(member: number, key: string, _tag: string | undefined, cost: number, maxWaitUs: number): Promise<Decision> {
    const source = this.policies[member] as Source
    const body: Body = ['reserve', this.ledger, this.members[member] as number, storedKey(key), cost, maxWaitUs]
    return this.decided(body, (numbers) => decisionOf([source], [key], [cost], true, numbers))
  }

  applyUpTo(
    members: readonly number[],
    keys: readonly string[],
    _tags: readonly string[] | undefined,
    most: number,
  ): Promise<Decision> {
    const sources = members.map((member) => this.policies[member] as Source)
    const places = members.map((member) => this.members[member] as number)
    return this.decided(['upTo', this.ledger, places, keys.map(storedKey), most], ([units = 1, ...numbers]) => {
      const costs = members.map(() => units)
      return decisionOf(sources, keys, costs, true, numbers)
    })
  }

  async settle(decision: Decision, units: number): Promise<number> {
    const number = this.numbers.get(decision.source)
    if (number === undefined || decision.charged === 0 || units === decision.charged || this.closed) return 0
    if (units < decision.charged) return this.refund(decision, decision.charged - units)
    const charge = chargeOf(decision, storedKey(decision.key))
    const [changed = 0] = await this.ask(['settle', this.ledger, number, charge, units])
    return changed
  }

  /** Asks for a decision; what is charged after the question was given up is given back. */
  private decided(body: Body, read: (numbers: readonly number[]) => Decision): Promise<Decision> {
    return new Promise((resolve, reject) => {
      this.questions.ask(body, {
        answered: (numbers) => resolve(read(numbers)),
        failed: reject,
        late: (numbers) => this.abandon(read(numbers).stack),
      })
    })
  }

  async refund(decision: Decision, units: number): Promise<number> {
    const number = this.numbers.get(decision.source)
    if (number === undefined || decision.charged === 0 || this.closed) return 0
    const charge = chargeOf(decision, storedKey(decision.key))
    const [given = 0] = await this.ask(['refund', this.ledger, number, charge, units])
    return given
  }

  async renew(decision: Decision): Promise<boolean> {
    if (decision.charged === 0 || this.closed) return false
    const [renewed] = await this.ask(['renew', this.ledger, decision.prior])
    return renewed === 1
  }

  async charge(member: number, key: string, _tag: string | undefined, units: number): Promise<void> {
    await this.ask(['charge', this.ledger, this.members[member] as number, storedKey(key), units])
  }

  async reset(member: number, key: string): Promise<void> {
    await this.ask(['reset', this.ledger, this.members[member] as number, storedKey(key)])
  }

  async block(member: number, key: string, _tag: string | undefined, us: number): Promise<void> {
    await this.ask(['block', this.ledger, this.members[member] as number, storedKey(key), us])
  }

  close(): void {
    this.closed = true
    this.questions.tell(['close', this.ledger])
    this.onClose()
  }

  /** Takes over a list and says it with the numbers of its policies. Throws for a rule that cannot cross the channel. */
  private take(policies: readonly Source[]): [number, PolicyForm][] {
    const forms = policies.map(formOf)
    for (const [, algorithm, options] of forms) makeRule(algorithm, options)
    this.members = forms.map((form, index) => {
      const text = JSON.stringify(form)
      const number = this.byForm.get(text) ?? this.byForm.size
      this.byForm.set(text, number)
      this.numbers.set(policies[index] as Source, number)
      return number
    })
    this.policies = policies
    return this.members.map((number, index) => [number, forms[index] as PolicyForm])
  }

  /** Gives back what nobody knows of. */
  private abandon(decisions: readonly Decision[]): void {
    for (const one of decisions) if (one.charged > 0) this.refund(one, one.cost).catch(() => {})
  }

  private ask(body: Body): Promise<readonly number[]> {
    return new Promise((answered, failed: (fault: StoreFault) => void) => {
      this.questions.ask(body, { answered, failed })
    })
  }
}
