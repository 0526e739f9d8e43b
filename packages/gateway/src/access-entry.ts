import type { Verdict } from 'catraca/http'
import type { Asked } from './edge/asked.ts'
import type { EdgeResponse } from './edge/messages.ts'
import type { AccessEntry } from './options.ts'

/** What is told of a request whose answer is over. `startMs` is on the monotonic clock. */
export function accessEntry(
  asked: Asked,
  response: EdgeResponse,
  verdict: Verdict,
  unknownKey: boolean,
  startMs: number,
): AccessEntry {
  const durationMs = performance.now() - startMs
  const { answer, binding, identity } = verdict
  const { client, plan, keyId } = identity ?? {}
  const would = verdict.observed.filter(({ decision }) => !decision.allowed).map(({ policy }) => policy.name)
  return {
    time: new Date(Date.now() - durationMs).toISOString(),
    address: verdict.address,
    method: asked.method,
    url: asked.target,
    status: response.headersSent ? response.statusCode : 0,
    durationMs: Math.round(durationMs * 1_000) / 1_000,
    ...(client !== undefined && { client }),
    ...(plan !== undefined && { plan }),
    ...(keyId !== undefined && { keyId }),
    decision: unknownKey ? 'unknown-key' : binding === undefined ? 'exempt' : verdict.allowed ? 'admitted' : 'refused',
    ...(answer !== 'pass' && answer !== 'reject' && { answer }),
    ...(binding !== undefined && { policy: binding.policy.name, remaining: binding.decision.remaining }),
    ...(!verdict.allowed && binding !== undefined && { retryAfterMs: binding.decision.retryAfterMs }),
    ...(isDegraded(verdict) && { degraded: true }),
    ...(would.length > 0 && { wouldRefuse: would }),
  }
}

function isDegraded({ admitted, refusing }: Verdict): boolean {
  return [...admitted, ...refusing].some(({ decision }) => decision.degraded)
}
