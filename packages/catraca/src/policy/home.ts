import type { Policy } from './policy.ts'

/** Where the state of a policy lives: in this process, or in the store that instances share. */
export type Home = 'memory' | 'shared'

/**
 * True for a policy that stays in the process also beside a shared store: floods are refused without a trip, and the gate
 * of verification, which needs an answer at once, reads it. The mode does not matter, so that changing it keeps the state.
 */
export function staysHere(policy: Policy): boolean {
  return countsStrangers(policy) || (policy.stage === 'address' && policy.routes === undefined)
}

/** The same beside processes of one machine: a trip to the next process is short, so only what the gate reads stays. */
export function staysInProcess(policy: Policy): boolean {
  return countsStrangers(policy)
}

/** True for the policies that failed verifications are charged to. */
export function guardsVerification(policy: Policy): boolean {
  return policy.mode === 'enforce' && countsStrangers(policy)
}

function countsStrangers({ identity, parts }: Policy): boolean {
  return identity === 'anonymous' && parts.length === 1 && parts[0]?.kind === 'address'
}
