import { type Decision, decide, refusal, uncharged } from '../core/decision.ts'
import type { DenialReason } from '../core/reason.ts'

/**
 * What a stack answers to who does not wait in line: where others do, it refuses, so that they are not overtaken.
 * `waits` are those of {@link Waiting.queueWaitUs}.
 */
export function behindQueues(decision: Decision, waits: readonly number[]): Decision {
  const parts = decision.stack.map((one, at) => {
    const waitUs = waits[at] as number
    if (waitUs === 0) return uncharged(one)
    return one.waitUs === Infinity && !one.allowed
      ? one
      : refusal(
          one,
          one.allowed ? one.source.rule.denial : (one.reason as DenialReason),
          Math.max(one.waitUs, waitUs),
          0,
        )
  })
  return stackOf(parts)
}

/** Refusals that end by themselves; a block and a store that is closed are not waited for. */
export function isPassing(reason: Decision['reason']): boolean {
  return reason === 'limited' || reason === 'concurrency' || reason === 'quota'
}

/** The place of the policy that refuses for the longest. */
export function longest({ stack }: Decision): number {
  let at = 0
  let waitUs = -1
  stack.forEach((one, index) => {
    if (one.allowed || one.waitUs <= waitUs) return
    at = index
    waitUs = one.waitUs
  })
  return at
}

/** What is known of a stack of which one policy answered anew. */
export function withPart(known: Decision, at: number, part: Decision): Decision {
  return stackOf(known.stack.map((one, index) => (index === at ? part : one)))
}

/**
 * The refusal of one policy of a stack, with nothing charged by the others. Without a `reason` a refusal of its own keeps
 * its reason and its wait; `queueUs` is the least wait where others stand in its queue.
 */
export function refusedAt(known: Decision, at: number, reason: DenialReason | undefined, queueUs: number): Decision {
  const parts = known.stack.map((one, index) => {
    if (index !== at) return uncharged(one)
    if (reason === undefined && !one.allowed) return one
    const waitUs = Math.max(one.allowed ? 0 : one.waitUs, queueUs)
    return refusal(one, reason ?? one.source.rule.denial, waitUs)
  })
  return stackOf(parts)
}

/** A refusal of all that did not pass at once, for who gave up. */
export function aborted({ stack }: Decision): Decision {
  const parts = stack.map((one) =>
    one.allowed && one.waitUs === 0 ? uncharged(one) : refusal(one, 'aborted', one.waitUs),
  )
  return stackOf(parts)
}

function stackOf(parts: readonly Decision[]): Decision {
  return parts.length === 1 ? (parts[0] as Decision) : decide(parts, 0)
}
