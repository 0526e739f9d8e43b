import { applies } from './applies.ts'
import type { Mode } from './document.ts'
import type { Facts } from './facts.ts'
import type { Home } from './home.ts'
import { modeFor } from './mode.ts'
import type { Policies, Policy, Stage } from './policy.ts'

/** Narrows a question to some policies. */
export type Only = ((policy: Policy) => boolean) | undefined

/** Policies of a stage that live in one place: those asked together, and those asked beside them. */
export interface Stacked {
  readonly enforced: readonly Policy[]
  readonly observed: readonly Policy[]
}

/** The policies of a stage by where they live; `shared` is undefined where there are none. */
export interface Stacks {
  readonly memory: Stacked
  readonly shared: Stacked | undefined
}

/** Where the state of each policy lives. */
export type HomeOf = (policy: Policy) => Home

/** The stacks of every stage. */
export function stacksOf({ list }: Policies, homeOf: HomeOf): Record<Stage, Stacks> {
  const of = (stage: Stage): Stacks => {
    const at = (home: Home): Stacked => ({
      enforced: list.filter((one) => one.stage === stage && one.mode === 'enforce' && homeOf(one) === home),
      observed: list.filter((one) => one.stage === stage && mayObserve(one) && homeOf(one) === home),
    })
    const shared = at('shared')
    const none = shared.enforced.length === 0 && shared.observed.length === 0
    return { memory: at('memory'), shared: none ? undefined : shared }
  }
  return { address: of('address'), identity: of('identity'), body: of('body') }
}

/** The place of each variant in the ledger of its home. */
export function placesOf({ variants }: Policies, homeOf: HomeOf): number[] {
  const next = { memory: 0, shared: 0 }
  return variants.map(({ policy }) => next[homeOf(policy)]++)
}

function mayObserve({ mode, split }: Policy): boolean {
  return mode === 'observe' || split?.otherwise === 'observe'
}

/** The policies that speak about a request in a mode. */
export function select(policies: readonly Policy[], facts: Facts, only: Only, mode: Mode): Policy[] {
  const asked: Policy[] = []
  for (const policy of policies) if (isAsked(policy, facts, only, mode)) asked.push(policy)
  return asked
}

/** True when a policy speaks about a request in a mode. */
export function isAsked(policy: Policy, facts: Facts, only: Only, mode: Mode): boolean {
  if (!applies(policy, facts) || only?.(policy) === false) return false
  return policy.split === undefined || modeFor(policy, facts) === mode
}
