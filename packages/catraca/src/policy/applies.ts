import type { Facts } from './facts.ts'
import { modeFor } from './mode.ts'
import type { Policy } from './policy.ts'

/** True when a policy speaks about a request: it matches, and no enforced policy that applies stands in for it. */
export function applies(policy: Policy, facts: Facts): boolean {
  if (!matches(policy, facts)) return false
  if (facts.failed && policy.identity === 'anonymous') return true
  for (const other of policy.displacedBy) if (displaces(other, facts)) return false
  return true
}

/** True when a policy surely stands in for another: a path that servers read in different ways must not choose the laxer. */
export function displaces(policy: Policy, facts: Facts): boolean {
  return modeFor(policy, facts) === 'enforce' && applies(policy, facts) && isOnRoute(policy, facts, true)
}

/** True when a policy is enforced for a request, whatever stands in for it. */
export function isEnforced(policy: Policy, facts: Facts): boolean {
  return matches(policy, facts) && modeFor(policy, facts) === 'enforce'
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
