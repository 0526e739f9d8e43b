import type { Facts } from './facts.ts'
import type { Policies, Policy, Variant } from './policy.ts'

/** The variant that counts for a request: its client's, its plan's, or the policy's own. */
export function variantOf(policy: Policy, facts: Facts, policies: Policies): Variant {
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
