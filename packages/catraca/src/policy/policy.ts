import { registry } from '../algorithms/registry.ts'
import type { LeaseTerms, RuleChange } from '../core/decision.ts'
import { durationUs } from '../core/duration.ts'
import { CatracaError, isCatracaError, show } from '../core/errors.ts'
import { nearest } from '../core/parameters.ts'
import type { Rule } from '../core/rule.ts'
import { leaseTerms } from '../stores/lease/options.ts'
import type { StoreFailureOptions } from '../stores/remote.ts'
import { nat64Prefix } from './address.ts'
import { AddressList } from './address-list.ts'
import type {
  CandidateEntry,
  IdentityMatch,
  Mode,
  OverrideEntry,
  PolicyDocument,
  PolicyEntry,
  StoreFailure,
} from './document.ts'
import { documentShape, overrideShape } from './document-shape.ts'
import { staysInProcess } from './home.ts'
import { type KeyPart, type PartContext, parsePart, partWords } from './key-part.ts'
import { readMode, type Split } from './mode.ts'
import { type OverflowEntry, readOverflow, rejectOnly, type Strategy } from './overflow.ts'
import { parseRoute, type Route } from './route.ts'
import { type Place, type Problem, placeText, problemsOf, unknownKey } from './shape.ts'

/** When the key of a policy is known: before credentials are looked at, after, or once the body was read. */
export type Stage = 'address' | 'identity' | 'body'
export const stages: readonly Stage[] = ['address', 'identity', 'body']

/** A rule of a policy and for whom it is. */
export interface Variant {
  /** `default`, `plan pro` or `client acme`. */
  readonly label: string
  readonly rule: Rule
  /** What a request over the limit is answered; the last is `reject`. */
  readonly overflow: readonly Strategy[]
  /** Its place among all variants of all policies. */
  readonly member: number
}

/** One policy of a document, ready to be asked. */
export interface Policy {
  readonly index: number
  readonly name: string
  readonly entry: PolicyEntry
  readonly stage: Stage
  readonly identity: IdentityMatch | undefined
  /** Undefined for all routes. */
  readonly routes: readonly Route[] | undefined
  readonly parts: readonly KeyPart[]
  readonly cost: number
  readonly mode: Mode
  /** Set where it is enforced for part of its callers; `mode` is then `enforce`. */
  readonly split: Split | undefined
  readonly keepsAttempts: boolean
  readonly onStoreFailure: StoreFailure
  readonly onRuleChange: RuleChange
  readonly exact: boolean
  /** Undefined where the document says nothing. */
  readonly lease: LeaseTerms | undefined
  /** The one part by which a cluster keeps states together; undefined: the key. */
  readonly tag: readonly KeyPart[] | undefined
  readonly base: Variant
  /** Undefined when no plan differs. */
  readonly byPlan: ReadonlyMap<string, Variant> | undefined
  readonly byClient: ReadonlyMap<string, Variant> | undefined
  /** Policies that stand in for this one where they are enforced. */
  readonly displacedBy: readonly Policy[]
  /** The policy beside which this one is tried. */
  readonly candidateOf: string | undefined
}

/** A checked document. Made by {@link readPolicies}. */
export interface Policies {
  readonly document: PolicyDocument
  readonly list: readonly Policy[]
  /** All variants of all policies. */
  readonly variants: readonly { readonly policy: Policy; readonly variant: Variant }[]
  readonly plans: ReadonlySet<string>
  readonly defaultPlan: string | undefined
  /** Undefined when the document does not say how many instances there are. */
  readonly storeFailure: StoreFailureOptions | undefined
  readonly caseSensitive: boolean
  readonly exemptRoutes: readonly Route[]
  readonly exemptAddresses: AddressList
  readonly exemptClients: ReadonlySet<string>
  /** Kinds of answers that some policy lists. */
  readonly answers: ReadonlySet<Strategy['kind']>
  /** True where some policy counts by credential. */
  readonly usesCredentials: boolean
}

/**
 * Everything that is wrong in a document, in its order; empty when it can be enforced. Never throws.
 *
 * @param shared The states live in a store that instances share: then the document must say how many there are.
 */
export function policyProblems(document: unknown, shared = false): Problem[] {
  const problems = problemsOf(documentShape, document)
  if (problems.length > 0) return problems
  return new Reader(document as PolicyDocument, shared).problems
}

/**
 * Checks a document and prepares it for asking. Throws the first of its problems as a `CatracaError`, whose message says
 * how many more there are.
 *
 * @param shared As for {@link policyProblems}.
 */
export function readPolicies(document: PolicyDocument, shared = false): Policies {
  const problems = problemsOf(documentShape, document)
  const reader = problems.length === 0 ? new Reader(document, shared) : undefined
  const [first, ...more] = reader?.problems ?? problems
  if (first !== undefined || reader === undefined) throw problemError(first as Problem, more.length)
  return reader.policies()
}

/** A problem as it is thrown. */
export function problemError({ code, place, value, words }: Problem, more = 0): CatracaError {
  const path = placeText(place)
  const rest = more === 0 ? '' : ` (and ${more} more)`
  return new CatracaError(code, `${path === '' ? 'the document' : path} ${words}${rest}`, { path, value })
}

type Draft = { -readonly [K in keyof Policy]: Policy[K] } & { displacedBy: Policy[] }

/** Behind the name of a policy: its candidate. */
const candidateSuffix = '.candidate'
/** What a candidate has from its policy: whom it counts, and how. */
const sharedWithCandidate: readonly string[] = [
  'per',
  'match',
  'cost',
  'charge',
  'onStoreFailure',
  'onRuleChange',
  'refunds',
  'tag',
  'exact',
]
/** Rules behind which requests have places in a line of their own also where many instances count together. */
const reserving: readonly string[] = ['token-bucket', 'gcra', 'leaky-meter', 'leaky-queue']

/** Reads a document whose shape is right, collecting what is wrong in its meaning. */
class Reader {
  readonly problems: Problem[] = []
  private readonly document: PolicyDocument
  private readonly drafts: Draft[] = []
  private readonly variants: { policy: Policy; variant: Variant }[] = []
  private readonly plans: ReadonlySet<string>
  private readonly exemptRoutes: readonly Route[]
  private readonly exemptAddresses: AddressList
  private readonly storeFailure: StoreFailureOptions | undefined
  private readonly shared: boolean

  constructor(document: PolicyDocument, shared: boolean) {
    this.document = document
    this.shared = shared
    this.plans = this.readPlans()
    this.storeFailure = this.readStoreFailure(shared)
    const { exempt = {}, trust } = document
    this.exemptRoutes = this.routes(exempt.routes ?? [], ['exempt', 'routes'])
    this.exemptAddresses = this.addresses(exempt.addresses ?? [], ['exempt', 'addresses'])
    this.addresses(trust?.from ?? [], ['trust', 'from'])
    this.readNat64(trust?.nat64 ?? [])
    for (const name of Object.keys(document.capacity?.clients ?? {}))
      this.checkPlan(name, ['capacity', 'clients', name])
    for (const [name, entry] of Object.entries(document.policies)) this.readPolicy(name, entry)
    for (const policy of this.drafts) this.readInsteadOf(policy)
    for (const [name, { candidate }] of Object.entries(document.policies)) {
      if (candidate !== undefined) this.readCandidate(name, candidate)
    }
  }

  policies(): Policies {
    const { document } = this
    return {
      document,
      list: this.drafts,
      variants: this.variants,
      plans: this.plans,
      defaultPlan: document.plans?.default,
      storeFailure: this.storeFailure,
      caseSensitive: document.caseSensitive ?? false,
      exemptRoutes: this.exemptRoutes,
      exemptAddresses: this.exemptAddresses,
      exemptClients: new Set(document.exempt?.clients),
      answers: new Set(this.variants.flatMap(({ variant }) => variant.overflow.map(({ kind }) => kind))),
      usesCredentials: this.drafts.some(({ parts }) => parts.some(({ kind }) => kind === 'api-key')),
    }
  }

  private readPlans(): ReadonlySet<string> {
    const { plans } = this.document
    const names = new Set(plans?.names)
    if (plans !== undefined && !names.has(plans.default)) {
      this.wrong(['plans', 'default'], plans.default, `one of plans.names: ${plans.names.join(', ')}`)
    }
    return names
  }

  private readStoreFailure(shared: boolean): StoreFailureOptions | undefined {
    const { storeFailure, defaults } = this.document
    const place = ['storeFailure', 'expectedInstances']
    const own = storeFailure?.expectedInstances
    const other = defaults?.expectedInstances
    const expectedInstances = own ?? other
    if (own !== undefined && other !== undefined && own !== other) {
      this.wrong(place, own, `${other}, as defaults.expectedInstances says, or only one of the two`)
    }
    if (expectedInstances === undefined) {
      const words =
        'is missing, which a shared store needs; write storeFailure: { expectedInstances: 6 } with the number of ' +
        'instances from 1 to 100000, or live'
      if (shared) this.problems.push({ code: 'CATRACA_OPTION_INVALID', place, value: undefined, words })
      return undefined
    }
    const { limit, window } = storeFailure?.ceiling ?? {}
    if (limit === undefined || window === undefined) return { expectedInstances }
    return { expectedInstances, ceiling: { limit, windowUs: durationUs(window, 'storeFailure.ceiling.window') } }
  }

  /** The candidate of a policy: a policy of its own that is observed wherever the other one is asked. */
  private readCandidate(name: string, candidate: CandidateEntry): void {
    const own = this.drafts.find((one) => one.name === name)
    if (own === undefined || own.mode === 'off') return
    const place = ['policies', name, 'candidate']
    const fullName = name + candidateSuffix
    if (this.drafts.some((one) => one.name === fullName)) {
      this.wrong(place, candidate, `no policy of the name ${fullName} beside it`)
      return
    }
    const whom = Object.entries(own.entry).filter(([key]) => sharedWithCandidate.includes(key))
    const entry = { ...Object.fromEntries(whom), ...candidate, mode: 'observe' } as PolicyEntry
    const draft = this.readPolicy(fullName, entry, place, ['policies', name])
    draft.displacedBy.push(...own.displacedBy)
    draft.candidateOf = name
  }

  /** @param at Where its rule stands. @param from Where whom it counts stands; a candidate takes that from its policy. */
  private readPolicy(name: string, entry: PolicyEntry, at: Place = ['policies', name], from: Place = at): Draft {
    const place = [...at]
    const routes = entry.match?.routes
    const matched = routes === undefined ? undefined : this.routes(routes, [...from, 'match', 'routes'])
    const parts = this.parts(entry.per, [...from, 'per'], matched)
    const rule = this.rule(entry, {}, [...place, 'rule'])
    const { mode, split } = readMode(entry.mode)
    const draft: Draft = {
      index: this.drafts.length,
      name,
      entry,
      stage: stageOf(parts, entry.match?.identity),
      identity: entry.match?.identity,
      routes: matched,
      parts,
      cost: entry.cost ?? 1,
      mode,
      split,
      keepsAttempts: entry.charge === 'attempts',
      onStoreFailure: entry.onStoreFailure ?? this.document.defaults?.onStoreFailure ?? 'local',
      onRuleChange: entry.onRuleChange ?? 'keep',
      exact: entry.exact ?? false,
      lease: this.lease(entry, rule, [...place, 'lease']),
      tag: entry.tag === undefined ? undefined : this.tag(entry.tag, parts, [...from, 'tag']),
      base: { label: 'default', rule: rule as Rule, overflow: rejectOnly, member: 0 },
      byPlan: undefined,
      byClient: undefined,
      displacedBy: [],
      candidateOf: undefined,
    }
    this.drafts.push(draft)
    this.checkClients(draft, [...place, 'mode', 'enforce', 'clients'])
    draft.base = this.variant(draft, 'default', rule, entry.overflow, place)
    draft.byPlan = this.overrides(draft, 'plan', entry.plans, [...place, 'plans'])
    draft.byClient = this.overrides(draft, 'client', entry.clients, [...place, 'clients'])
    return draft
  }

  /** Where no client is known yet, or none can be, a list of them would count for nobody. */
  private checkClients({ name, stage, identity, split }: Policy, place: Place): void {
    if (split === undefined || split.clients.size === 0) return
    if (stage !== 'address' && identity !== 'anonymous') return
    const why = stage === 'address' ? 'is asked before any client is known' : 'is for callers who are no client'
    this.wrong(place, [...split.clients], `percent alone, because ${name} ${why}`)
  }

  private variant(
    policy: Policy,
    label: string,
    rule: Rule | undefined,
    overflow: readonly OverflowEntry[] | undefined,
    place: Place,
  ): Variant {
    const list = this.overflow(policy, rule, overflow, [...place, 'overflow'])
    const variant: Variant = { label, rule: rule as Rule, overflow: list, member: this.variants.length }
    this.variants.push({ policy, variant })
    return variant
  }

  private overflow(
    policy: Policy,
    rule: Rule | undefined,
    entries: readonly OverflowEntry[] | undefined,
    place: Place,
  ): readonly Strategy[] {
    if (entries === undefined) return rejectOnly
    const list = readOverflow(entries, policy.cost, (at, value, allowed) =>
      this.wrong([...place, ...at], value, allowed),
    )
    const accept = list.findIndex(({ kind }) => kind === 'accept')
    if (accept >= 0 && policy.stage === 'address') {
      const allowed = 'accept in a policy that is asked once the caller was verified, such as one with match.identity'
      this.wrong([...place, accept], 'accept', allowed)
    }
    const queue = list.findIndex(({ kind }) => kind === 'queue')
    const apart = this.shared && !staysInProcess(policy)
    if (queue >= 0 && apart && rule !== undefined && !reserving.includes(rule.algorithm)) {
      const words =
        `queues behind ${rule.algorithm}, which has no places that instances share; allowed: ${reserving.join(', ')}, ` +
        'or no shared store'
      this.problems.push({ code: 'CATRACA_WAIT_UNSUPPORTED', place: [...place, queue], value: entries[queue], words })
    }
    return list
  }

  private overrides(
    policy: Policy,
    kind: 'plan' | 'client',
    entries: Readonly<Record<string, OverrideEntry>> | undefined,
    place: Place,
  ): Map<string, Variant> | undefined {
    if (entries === undefined) return undefined
    const { entry } = policy
    const found = new Map<string, Variant>()
    for (const [name, given] of Object.entries(entries)) {
      const at = [...place, name]
      if (kind === 'plan') this.checkPlan(name, at)
      const problems = problemsOf(overrideShape(entry.rule.algorithm), given, at)
      this.problems.push(...problems)
      if (problems.length > 0) continue
      const { overflow = entry.overflow, ...options } = given
      found.set(name, this.variant(policy, `${kind} ${name}`, this.rule(entry, options, at), overflow, at))
    }
    return found.size === 0 ? undefined : found
  }

  private checkPlan(name: string, place: Place): void {
    if (this.plans.has(name)) return
    const near = nearest(name, [...this.plans])
    const declared = this.plans.size === 0 ? 'none, because plans.names is missing' : [...this.plans].join(', ')
    const words = `is not a declared plan; allowed: ${declared}${near === undefined ? '' : `; did you mean ${near}?`}`
    this.problems.push({ code: 'CATRACA_PLAN_UNKNOWN', place, value: name, words })
  }

  /** A rule from its entry, with what a plan or client says otherwise; errors name the place of what was written. */
  private rule(entry: PolicyEntry, override: Record<string, unknown>, place: Place): Rule | undefined {
    const { algorithm, ...options } = entry.rule
    const kind = registry[algorithm]
    return this.collect(place, () => kind?.make({ ...options, ...override } as never))
  }

  private lease({ lease, exact }: PolicyEntry, rule: Rule | undefined, place: Place): LeaseTerms | undefined {
    if (lease === undefined || rule === undefined) return undefined
    return this.collect(place, () => leaseTerms(rule, lease, 'lease', exact))
  }

  private parts(per: string | string[], place: Place, routes: readonly Route[] | undefined): KeyPart[] {
    const texts = typeof per === 'string' ? [per] : per
    const context = this.partContext(routes)
    const parts = texts.flatMap((text, index) => {
      const at = typeof per === 'string' ? place : [...place, index]
      const part = parsePart(text, context)
      const lacking = part === undefined ? partWords : lacks(part, context)
      if (part === undefined || lacking !== undefined) this.wrong(at, text, lacking as string)
      else if (texts.indexOf(text) !== index) this.wrong(at, text, 'each part once')
      return part ?? []
    })
    if (parts.length > 1 && parts.some(({ kind }) => kind === 'service')) {
      this.wrong(place, per, 'service on its own: it is everybody together')
    }
    return parts
  }

  /** States with other tags are other states: a caller who could choose the tag would have many budgets. */
  private tag(text: string, parts: readonly KeyPart[], place: Place): KeyPart[] | undefined {
    const tag = parsePart(text, this.partContext(undefined))
    const hasTenant = parts.some(({ kind }) => kind === 'client' || kind === 'user')
    const isFixed = tag?.kind === 'service' || (tag?.kind === 'tenant' && hasTenant)
    const same = parts.find((part) => part.text === text)
    if (same !== undefined) return [same]
    if (tag !== undefined && isFixed) return [tag]
    const own = parts.map((part) => part.text)
    this.wrong(place, text, [...new Set([...own, ...(hasTenant ? ['tenant'] : []), 'service'])].join(', '))
    return undefined
  }

  private partContext(routes: readonly Route[] | undefined): PartContext {
    const { hashSecret, plans } = this.document
    return {
      routes,
      hashSecret,
      planOf: (plan) => (plan !== undefined && this.plans.has(plan) ? plan : plans?.default),
    }
  }

  private readNat64(prefixes: readonly string[]): void {
    for (const [index, prefix] of prefixes.entries()) {
      if (nat64Prefix(prefix) === undefined) {
        this.wrong(['trust', 'nat64', index], prefix, 'an IPv6 prefix of 96 bits such as 64:ff9b::/96')
      }
    }
  }

  private routes(texts: readonly string[], place: Place): Route[] {
    const { caseSensitive = false } = this.document
    return texts.flatMap((text, index) => {
      const at = [...place, index]
      return this.collect(at, () => parseRoute(text, placeText(at), caseSensitive)) ?? []
    })
  }

  private addresses(texts: readonly string[], place: Place): AddressList {
    const good = texts.filter((text, index) => {
      const at = [...place, index]
      return this.collect(at, () => new AddressList([text], placeText(at))) !== undefined
    })
    return new AddressList(good, placeText(place))
  }

  private readInsteadOf(policy: Draft): void {
    const { insteadOf } = policy.entry
    if (insteadOf === undefined) return
    const place = ['policies', policy.name, 'insteadOf']
    const other = this.drafts.find(({ name }) => name === insteadOf)
    if (other === undefined) {
      const names = this.drafts.map(({ name }) => name).filter((name) => name !== policy.name)
      const { words } = unknownKey(insteadOf, names, place)
      this.problems.push({ code: 'CATRACA_POLICY_UNKNOWN', place, value: insteadOf, words })
      return
    }
    if (stages.indexOf(policy.stage) > stages.indexOf(other.stage)) {
      const words = `is ${show(insteadOf)}, which is asked before ${policy.name} can be; allowed: a policy of the stage ${policy.stage} or later`
      this.problems.push({ code: 'CATRACA_OPTION_INVALID', place, value: insteadOf, words })
      return
    }
    const chain = [policy.name]
    for (let next: Draft | undefined = other; next !== undefined; ) {
      chain.push(next.name)
      if (next === policy) {
        const words = `stands in for itself: ${chain.join(' instead of ')}`
        this.problems.push({ code: 'CATRACA_POLICY_CYCLE', place, value: insteadOf, words })
        return
      }
      if (chain.indexOf(next.name) < chain.length - 1) return
      const following: string | undefined = next.entry.insteadOf
      next = this.drafts.find(({ name }) => name === following)
    }
    other.displacedBy.push(policy)
  }

  /** Runs what may throw a `CatracaError`, and keeps it as a problem at this place. */
  private collect<T>(place: Place, run: () => T): T | undefined {
    try {
      return run()
    } catch (error) {
      if (!isCatracaError(error)) throw error
      const { code, value, path = '' } = error
      const message = error.message.replace(/ \[CATRACA_\w+\]$/, '')
      const words = message.startsWith(`${path} `) ? message.slice(path.length + 1) : message
      // A rule names its option behind its own name, as in `tokenBucket.limit`.
      const option = /^[a-zA-Z]+\.(\w+)$/.exec(path)?.[1]
      this.problems.push({ code, place: option === undefined ? place : [...place, option], value, words })
      return undefined
    }
  }

  private wrong(place: Place, value: unknown, allowed: string): void {
    this.problems.push({
      code: 'CATRACA_OPTION_INVALID',
      place,
      value,
      words: `is ${show(value)}; allowed: ${allowed}`,
    })
  }
}

/** What a document lacks for a part of a key; undefined where it can be read. */
function lacks({ kind, name }: KeyPart, { hashSecret, routes, planOf }: PartContext): string | undefined {
  if (kind === 'api-key' && hashSecret === undefined) {
    return 'api-key where the document has a hashSecret, because secrets never become keys'
  }
  if (kind === 'plan' && planOf(undefined) === undefined) return 'plan where plans.names says which'
  if (kind === 'route' && routes === undefined) return 'route where match.routes says which'
  if (kind === 'param' && routes?.every((route) => route.has(name)) !== true) {
    return `a parameter that every route of match.routes has, such as :${name}`
  }
  return undefined
}

function stageOf(parts: readonly KeyPart[], identity: IdentityMatch | undefined): Stage {
  if (parts.some(({ kind }) => kind === 'body')) return 'body'
  return identity === undefined && parts.every(({ kind }) => kind === 'address') ? 'address' : 'identity'
}
