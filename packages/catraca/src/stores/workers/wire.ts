import { Decision, decide, peeked, type RuleChange, type Source } from '../../core/decision.ts'
import { makeRule, optionsOf, type RuleOptions } from '../rule-form.ts'

/** A policy as it crosses the channel. Its rule is made anew on the other side. */
export type PolicyForm = readonly [name: string, algorithm: string, options: RuleOptions, onRuleChange: RuleChange]

/** What a charge was, for what is given back of it. */
export type ChargeForm = readonly [
  key: string,
  state: number,
  nowUs: number,
  cost: number,
  lead: number,
  level: number,
  prior: number,
]

/**
 * What a worker asks. Ledgers and policies are numbers that it chose: a policy keeps its number when the list is replaced,
 * so that what is given back later still says which one it is.
 */
export type Body =
  | readonly ['open', ledger: number, name: string, policies: readonly (readonly [number, PolicyForm])[]]
  | readonly ['replace', ledger: number, policies: readonly (readonly [number, PolicyForm])[]]
  | readonly ['close', ledger: number]
  | readonly [
      'apply',
      ledger: number,
      members: readonly number[],
      keys: readonly string[],
      costs: readonly number[],
      0 | 1,
    ]
  | readonly ['grant', ledger: number, member: number, key: string, least: number, most: number]
  | readonly ['reserve', ledger: number, member: number, key: string, cost: number, maxWaitUs: number]
  | readonly ['upTo', ledger: number, members: readonly number[], keys: readonly string[], most: number]
  | readonly ['settle', ledger: number, member: number, charge: ChargeForm, units: number]
  | readonly ['refund', ledger: number, member: number, charge: ChargeForm, units: number]
  | readonly ['renew', ledger: number, permit: number]
  | readonly ['charge', ledger: number, member: number, key: string, units: number]
  | readonly ['reset', ledger: number, member: number, key: string]
  | readonly ['block', ledger: number, member: number, key: string, us: number]
  | readonly ['probe']

/** A question under its number; 0 where nobody waits for an answer. */
export type Question = readonly [id: number, body: Body]

/**
 * The answer to a question: numbers, or a text that says why there is none. Under 0 what a ledger has to tell, as a hook
 * and its arguments.
 */
export type Answer =
  | readonly [id: number, said: readonly number[] | string]
  | readonly [0, ledger: number, hook: 'evicted', policy: string, key: string, limited: boolean]
  | readonly [0, ledger: number, hook: 'rebased', stepMs: number]

/** Messages of the two directions; everything else on the channel is somebody else's. */
export type Message =
  | { readonly catraca: 'asks'; readonly list: readonly Question[] }
  | { readonly catraca: 'answers'; readonly list: readonly Answer[] }
  /** The memory is closed: nobody answers any more. */
  | { readonly catraca: 'closed' }

export function isMessage<Kind extends Message['catraca']>(
  kind: Kind,
  message: unknown,
): message is Extract<Message, { catraca: Kind }> {
  return typeof message === 'object' && message !== null && (message as Message).catraca === kind
}

export function formOf({ name, rule, onRuleChange = 'keep' }: Source): PolicyForm {
  return [name, rule.algorithm, optionsOf(rule), onRuleChange]
}

/** Throws as the factory of the rule does. */
export function sourceOf([name, algorithm, options, onRuleChange]: PolicyForm, issuer: Source['issuer']): Source {
  return { name, rule: makeRule(algorithm, options), onRuleChange, issuer }
}

export function chargeOf({ state, nowUs, cost, lead, level, prior }: Decision, key: string): ChargeForm {
  return [key, state, nowUs, cost, lead, level, prior]
}

/** The decision again, as far as a refund looks at it. */
export function decisionOfCharge(source: Source, [key, state, nowUs, cost, lead, level, prior]: ChargeForm): Decision {
  return new Decision(source, key, state, nowUs, cost, 0, lead, level, prior, 0)
}

/** Numbers of one policy in an answer. */
const width = 6
/** Stands for a wait without an end, which not every channel can carry. */
const endless = -1

/** What was decided, in numbers: the time, then those of each policy. */
export function numbersOf({ nowUs, stack }: Decision): number[] {
  const numbers = [nowUs]
  for (const { state, remaining, lead, level, prior, waitUs } of stack) {
    numbers.push(state, remaining, lead, level, prior, waitUs === Infinity ? endless : waitUs)
  }
  return numbers
}

/** The decision of {@link numbersOf}, for the policies, keys and costs that were asked. */
export function decisionOf(
  sources: readonly Source[],
  keys: readonly string[],
  costs: readonly number[],
  charge: boolean,
  numbers: readonly number[],
): Decision {
  const nowUs = numbers[0] as number
  const parts = sources.map((source, index) => {
    const [state = 0, remaining = 0, lead = 0, level = 0, prior = 0, waitUs = 0] = numbers.slice(1 + index * width)
    const wait = waitUs === endless ? Infinity : waitUs
    const [key, cost] = [keys[index] as string, costs[index] as number]
    return new Decision(source, key, state, nowUs, cost, remaining, lead, level, prior, wait)
  })
  return parts.length === 1 ? (parts[0] as Decision) : decide(parts, charge ? 0 : peeked)
}
