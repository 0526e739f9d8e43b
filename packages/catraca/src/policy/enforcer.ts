import { nowUs as clockUs } from '../core/clock.ts'
import type { Decision, Issuer, Source } from '../core/decision.ts'
import type { Ledger, Store, StoreHooks } from '../stores/store.ts'
import type { Facts } from './facts.ts'
import { keyOf } from './key-part.ts'
import type { Policies, Policy, Stage, Variant } from './policy.ts'
import type { Verdict } from './verdict.ts'

/**
 * Enforces a document over a store. Each stage is one stack: its policies are asked together, and all are charged or
 * none. Observed policies are asked one by one beside it, each with the state it would have if it were enforced alone.
 */
export class Enforcer implements Issuer {
  private policies: Policies
  private byStage: Readonly<Record<Stage, Stacked>>
  private readonly ledger: Ledger
  /** Time last given by a caller, in µs; what has no time of its own goes by it. */
  private givenUs: number | undefined

  constructor(policies: Policies, store: Store, name: string, hooks: StoreHooks) {
    this.policies = policies
    this.byStage = stacksOf(policies)
    this.ledger = store.open(name, this.sources(), hooks)
  }

  /** The document that is enforced now. */
  get current(): Policies {
    return this.policies
  }

  /** Replaces the document. What was used stays used, also where numbers change. */
  replace(policies: Policies): void {
    this.policies = policies
    this.byStage = stacksOf(policies)
    this.ledger.replace(this.sources())
  }

  /**
   * Asks the policies of one stage and adds what they say to `verdict`. False when the request is refused: what earlier
   * stages charged was given back then, except by policies that count attempts.
   *
   * @param only Asks these policies alone, where given.
   */
  ask(stage: Stage, facts: Facts, verdict: Verdict, only?: (policy: Policy) => boolean): boolean {
    if (facts.nowUs !== undefined) this.given(facts.nowUs)
    const { enforced, observed } = this.byStage[stage]
    for (const policy of observed) {
      if (!applies(policy, facts) || only?.(policy) === false) continue
      const variant = variantOf(policy, facts, this.policies)
      verdict.observed.push({ policy, decision: this.take(policy, variant, facts, true) })
    }
    const asked: Policy[] = []
    const members: number[] = []
    const keys: string[] = []
    const costs: number[] = []
    for (const policy of enforced) {
      if (!applies(policy, facts) || only?.(policy) === false) continue
      asked.push(policy)
      members.push(variantOf(policy, facts, this.policies).member)
      keys.push(keyOf(policy.parts, facts))
      costs.push(policy.cost * facts.units)
    }
    if (asked.length === 0) return true
    const decision = this.ledger.applySome(members, keys, costs, facts.nowUs, true)
    const { stack } = decision
    if (decision.allowed) {
      for (let at = 0; at < asked.length; at++) this.admit(verdict, asked[at] as Policy, stack[at] as Decision)
      return true
    }
    this.giveBack(verdict, facts.nowUs)
    for (let at = 0; at < asked.length; at++) {
      const one = stack[at] as Decision
      if (!one.allowed) verdict.refusing.push({ policy: asked[at] as Policy, decision: one })
    }
    return false
  }

  /** What a policy would say, without charging it. */
  peek(policy: Policy, facts: Facts): Decision {
    return this.take(policy, variantOf(policy, facts, this.policies), facts, false)
  }

  /** The variant that counts for a request: its client's, its plan's, or the policy's own. */
  variantOf(policy: Policy, facts: Facts): Variant {
    return variantOf(policy, facts, this.policies)
  }

  /** Gives back what a verdict charged, all of it or up to `units` of each; says nothing of policies that count attempts. */
  giveBack(verdict: Verdict, nowUs = this.nowUs()): void {
    const kept = verdict.admitted.filter(({ policy }) => policy.keepsAttempts)
    for (const { policy, decision } of verdict.admitted) {
      if (!policy.keepsAttempts || decision.source.rule.holds) this.ledger.refund(decision, decision.cost, nowUs)
    }
    verdict.admitted.length = 0
    verdict.admitted.push(...kept)
    verdict.holds = false
  }

  /** Gives the permits of a verdict back; a second time does nothing. */
  releaseAll(verdict: Verdict, nowUs = this.nowUs()): void {
    if (!verdict.holds) return
    verdict.holds = false
    for (const { decision } of verdict.admitted) {
      if (decision.source.rule.holds) this.ledger.refund(decision, decision.cost, nowUs)
    }
  }

  release(decision: Decision): void {
    if (decision.source.rule.holds) this.ledger.refund(decision, decision.cost, this.nowUs())
  }

  close(): void {
    this.ledger.close()
  }

  private nowUs(): number {
    return this.givenUs ?? clockUs()
  }

  private given(nowUs: number): void {
    this.givenUs = nowUs
    this.ledger.given(nowUs)
  }

  private take(policy: Policy, variant: Variant, facts: Facts, charge: boolean): Decision {
    const cost = policy.cost * facts.units
    return this.ledger.applySome([variant.member], [keyOf(policy.parts, facts)], [cost], facts.nowUs, charge)
  }

  private admit(verdict: Verdict, policy: Policy, decision: Decision): void {
    verdict.admitted.push({ policy, decision })
    if (decision.source.rule.holds) verdict.holds = true
    const { delayMs } = decision
    if (delayMs > verdict.delayMs) verdict.delayMs = delayMs
  }

  private sources(): Source[] {
    return this.policies.variants.map(({ policy, variant }) => ({
      name: policy.name,
      rule: variant.rule,
      issuer: this,
    }))
  }
}

interface Stacked {
  readonly enforced: readonly Policy[]
  readonly observed: readonly Policy[]
}

function stacksOf({ list }: Policies): Record<Stage, Stacked> {
  const of = (stage: Stage): Stacked => ({
    enforced: list.filter((policy) => policy.stage === stage && policy.mode === 'enforce'),
    observed: list.filter((policy) => policy.stage === stage && policy.mode === 'observe'),
  })
  return { address: of('address'), identity: of('identity'), body: of('body') }
}

/** True when a policy speaks about a request: it matches, and no enforced policy that applies stands in for it. */
export function applies(policy: Policy, facts: Facts): boolean {
  if (!matches(policy, facts)) return false
  if (facts.failed && policy.identity === 'anonymous') return true
  for (const other of policy.displacedBy) if (displaces(other, facts)) return false
  return true
}

/** True when a policy surely stands in for another: a path that servers read in different ways must not choose the laxer. */
export function displaces(policy: Policy, facts: Facts): boolean {
  return policy.mode === 'enforce' && applies(policy, facts) && isOnRoute(policy, facts, true)
}

/** True when a request is one of those a policy is about. */
export function matches(policy: Policy, facts: Facts): boolean {
  const { identity } = policy
  return (identity === undefined || isKnownAs(identity, facts)) && isOnRoute(policy, facts, false)
}

/** @param surely In every reading of the path, not only in one. */
function isOnRoute({ routes }: Policy, { method, path }: Facts, surely: boolean): boolean {
  if (routes === undefined) return true
  for (const route of routes) {
    if (surely ? route.matchesSurely(method, path) : route.matches(method, path)) return true
  }
  return false
}

/** Who was verified as neither a client nor a user, an empty name included, is as good as anonymous. */
function isKnownAs(identity: Policy['identity'], { identity: known }: Facts): boolean {
  const client = known?.client !== undefined && known.client !== ''
  const user = known?.user !== undefined && known.user !== ''
  if (identity === 'client') return client
  return identity === 'user' ? user : !client && !user
}

function variantOf(policy: Policy, facts: Facts, policies: Policies): Variant {
  const { byClient, byPlan, base } = policy
  const { identity } = facts
  if ((byClient === undefined && byPlan === undefined) || identity === undefined) return base
  const { client } = identity
  const own = client === undefined ? undefined : byClient?.get(client)
  return own ?? byPlan?.get(planOf(identity.plan, policies) ?? '') ?? base
}

/** The declared plan, or the default for one that is not; undefined when the document has no plans. */
export function planOf(plan: string | undefined, { plans, defaultPlan }: Policies): string | undefined {
  return plan !== undefined && plans.has(plan) ? plan : defaultPlan
}
