import { Decision, degraded, peeked, type Source } from '../../core/decision.ts'
import { reasonCode } from '../../core/reason.ts'
import type { StoreFailureMode } from '../remote.ts'

/** The wait that is told to one whom only the store can let pass: it may be back at any time. In µs. */
export const onlyStoreUs = 1_000_000

export function modeOf({ onStoreFailure = 'local' }: Source): StoreFailureMode {
  return onStoreFailure
}

/** The answer of a policy in mode `closed`: nobody passes. */
export function refuseClosed(source: Source, key: string, cost: number, nowUs: number): Decision {
  const state = reasonCode('store-closed') | degraded
  return new Decision(source, key, state, nowUs, cost, 0, 0, 0, 0, onlyStoreUs)
}

/** The answer of a policy that does not count: everybody passes, nothing is charged. */
export function passUncounted(source: Source, key: string, cost: number, nowUs: number): Decision {
  return new Decision(source, key, peeked | degraded, nowUs, cost, source.rule.limit, 0, 0, 0, 0)
}

/**
 * The answer of a policy in mode `local` to a request that its share can never admit and its limit can: the same refusal
 * with a wait that ends, as the store decides again some time.
 */
export function unlessStoreReturns(local: Decision, limit: number): Decision {
  if (local.waitUs !== Infinity || local.cost > limit) return local
  return refused(local, reasonCode(local.source.rule.denial), local.remaining, onlyStoreUs)
}

/** The answer of a policy in mode `local` that would let pass, had the ceiling over all callers not been reached. */
export function refuseAtCeiling(local: Decision, ceiling: Decision): Decision {
  const waitUs = ceiling.waitUs === Infinity ? onlyStoreUs : ceiling.waitUs
  if (!local.allowed && local.waitUs >= waitUs) return local
  return refused(local, reasonCode('ceiling'), Math.min(local.remaining, ceiling.remaining), waitUs)
}

/** The same answer, where no more units would pass now than the ceiling has left. */
export function withinCeiling(local: Decision, left: number): Decision {
  if (local.remaining <= left) return local
  const { source, key, state, nowUs, cost, lead, level, prior, waitUs } = local
  return new Decision(source, key, state, nowUs, cost, left, lead, level, prior, waitUs)
}

function refused(local: Decision, reason: number, remaining: number, waitUs: number): Decision {
  const { source, key, nowUs, cost, lead, level, prior } = local
  return new Decision(source, key, reason | degraded, nowUs, cost, remaining, lead, level, prior, waitUs)
}
