import type { Decision, LeaseTerms, PolicyDecision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import { type LeaseBounds, leaseBounds } from '../stores/lease/terms.ts'
import { applies, displaces, matches } from './applies.ts'
import { type Bounds, boundsOf } from './bounds.ts'
import type { Mode, StoreFailure } from './document.ts'
import type { Enforcer } from './enforcer.ts'
import { overflowWords, splitWords } from './excess-words.ts'
import type { Descriptor, Facts, Identity } from './facts.ts'
import type { Home } from './home.ts'
import { valueOf } from './key-part.ts'
import { modeFor, type Split } from './mode.ts'
import { normalPath } from './path.ts'
import type { Policies, Policy, Stage } from './policy.ts'
import { planOf } from './variant.ts'
import { type Language, ruleWords } from './words.ts'

/** Why a policy is not asked about a request. */
export type NotAsked = 'off' | 'other identity' | 'other route' | 'exempt' | `${string} stands in`

/** One policy seen from one request. Nothing is counted to find it. */
export interface Explanation {
  readonly policy: string
  /** True when the policy is asked. */
  readonly applies: boolean
  readonly notAsked?: NotAsked
  readonly stage: Stage
  readonly mode: Mode
  /** For whom it is enforced, in words; undefined for all, or for nobody. */
  readonly enforcedFor?: Words
  /** The policy beside which it is tried. */
  readonly candidateOf?: string
  /** What a request over the limit is answered, in words; undefined where it is refused. */
  readonly overflow?: Words
  /** The parts of the key and their values; undefined is a value the request does not have. */
  readonly key: readonly { readonly part: string; readonly value: string | undefined }[]
  /** The declared plan of the caller; undefined for callers without identity. */
  readonly plan: string | undefined
  /** Whose numbers count: `default`, `plan pro`, `client acme`. */
  readonly variant: string
  /** What shares the budget: all requests, or those on the routes of the policy. */
  readonly scope: 'all routes' | 'its routes'
  readonly algorithm: string
  readonly rule: Words
  readonly cost: number
  /** Microseconds of a tick of the rule. */
  readonly tickUs: number
  readonly bounds: Bounds
  /** Where its state lives: in this process, or in the store that instances share. */
  readonly store: Home
  readonly onStoreFailure: StoreFailure
  /** How instances hold units of it, and by how much that can be wrong. Undefined: each request is asked for. */
  readonly lease?: ExplainedLease
  /** What the policy would say now. */
  readonly says: PolicyDecision
}

/** The same in both languages. */
export interface Words {
  readonly en: string
  readonly pt: string
}

/** A lease, and its bounds in units of one key. */
export interface ExplainedLease {
  readonly block: number
  readonly ttlMs: number
  /** Instances that the bounds are for; undefined where they are counted: then the bounds are for each of them. */
  readonly instances: number | undefined
  readonly bounds: LeaseBounds
}

/** Every policy of the document, in its order, seen from a request; a promise where there is a shared store. */
export function explain(enforcer: Enforcer, facts: Facts, exempt: boolean): Explanation[] | Promise<Explanation[]> {
  const policies = enforcer.current
  const all = policies.list.map((policy) => silentOn(policy, enforcer, facts, exempt))
  const say = (decisions: readonly Decision[]): Explanation[] =>
    all.map((one, at) => {
      const [says] = (decisions[at] as Decision).policies as [PolicyDecision]
      return { ...one, says: { ...says, mode: one.mode === 'observe' ? 'observe' : 'enforce' } }
    })
  if (!enforcer.isShared) return say(policies.list.map((policy) => enforcer.peekHere(policy, facts)))
  return Promise.all(policies.list.map(async (policy) => enforcer.peek(policy, facts))).then(say)
}

/** Everything but what the policy would say. */
function silentOn(policy: Policy, enforcer: Enforcer, facts: Facts, exempt: boolean): Omit<Explanation, 'says'> {
  const variant = enforcer.variantOf(policy, facts)
  const rule = enforcer.ruleOf(policy, variant)
  const { label, overflow: answers } = variant
  const terms = enforcer.leaseOf(policy, variant)
  const notAsked = exempt ? 'exempt' : reasonNotAsked(policy, facts)
  return {
    policy: policy.name,
    applies: notAsked === undefined,
    ...(notAsked !== undefined && { notAsked }),
    stage: policy.stage,
    mode: modeFor(policy, facts),
    ...(policy.split !== undefined && {
      enforcedFor: inBoth((language) => splitWords(policy.split as Split, language)),
    }),
    ...(policy.candidateOf !== undefined && { candidateOf: policy.candidateOf }),
    ...(answers.length > 1 && { overflow: inBoth((language) => overflowWords(answers, language) ?? '') }),
    key: policy.parts.map((part) => ({ part: part.text, value: valueOf(part, facts) })),
    plan: facts.identity === undefined ? undefined : planOf(facts.identity.plan, enforcer.current),
    variant: label,
    scope: policy.routes === undefined ? 'all routes' : 'its routes',
    algorithm: rule.algorithm,
    rule: inBoth((language) => ruleWords(rule, language)),
    cost: policy.cost,
    tickUs: rule.tickUs,
    bounds: boundsOf(rule),
    store: enforcer.homeOf(policy),
    onStoreFailure: policy.onStoreFailure,
    ...(terms !== undefined && { lease: explainedLease(rule, terms, enforcer.current) }),
  }
}

function inBoth(say: (language: Language) => string): Words {
  return { en: say('en'), pt: say('pt') }
}

/** A lease with its bounds for the instances that a document states; for one where they are counted. */
export function explainedLease(rule: Rule, terms: LeaseTerms, { storeFailure }: Policies): ExplainedLease {
  const { expectedInstances } = storeFailure ?? { expectedInstances: 1 }
  const instances = expectedInstances === 'live' ? undefined : expectedInstances
  const { held, over, under } = leaseBounds(rule, terms, instances ?? 1)
  const bounds = { held, over, under: instances === undefined ? held : under }
  return { block: terms.block, ttlMs: terms.ttlUs / 1_000, instances, bounds }
}

function reasonNotAsked(policy: Policy, facts: Facts): NotAsked | undefined {
  if (modeFor(policy, facts) === 'off') return 'off'
  if (!matches(policy, facts)) {
    const anywhere = { ...policy, routes: undefined }
    return matches(anywhere, facts) ? 'other route' : 'other identity'
  }
  if (applies(policy, facts)) return undefined
  const other = policy.displacedBy.find((one) => displaces(one, facts))
  return `${other?.name} stands in`
}

/** Facts from plain data. `networkOf` makes an address what it is counted as. */
export function factsOf(
  { method, path, attributes = {}, now }: Descriptor,
  { caseSensitive }: Policies,
  networkOf: (address: string) => string,
): Facts {
  const { client, user, tenant, plan, address = 'unknown' } = attributes
  const identity: Identity = {
    ...(client !== undefined && { client }),
    ...(user !== undefined && { user }),
    ...(tenant !== undefined && { tenant }),
    ...(plan !== undefined && { plan }),
  }
  return {
    method,
    path: normalPath(path, caseSensitive),
    address: networkOf(address),
    peer: address,
    credential: attributes['api-key'],
    identity: Object.keys(identity).length === 0 ? undefined : identity,
    failed: false,
    units: 1,
    nowUs: now === undefined ? undefined : Math.round(now * 1_000),
    header: (name) => attributes[`header:${name}`],
    cookie: (name) => attributes[`cookie:${name}`],
    query: (name) => attributes[`query:${name}`],
    bodyField: (name) => attributes[`body:${name}`],
  }
}
