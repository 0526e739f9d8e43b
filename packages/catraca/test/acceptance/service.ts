import { concurrency, createLimiter, type Decision, tokenBucket } from 'catraca'

/** A call that a deterministic service served: whole microseconds of lab time. */
export interface Call {
  readonly admittedUs: number
  readonly endUs: number
  /** Permits held just after it was admitted, as the limiter tells them. */
  readonly inFlight: number
}

export interface Flow {
  /** Permits. */
  limit: number
  /** Requests offered and allowed by the rate limit, evenly spaced. */
  perSecond: number
  serviceUs: number
  seconds: number
  /** Requests served at once; the others wait in order. Default: all. */
  servers?: number
}

/** An even flow to a rate limit and a concurrency limit before a service; at an instant ends come before arrivals. */
export function flow({ limit, perSecond, serviceUs, seconds, servers = Number.POSITIVE_INFINITY }: Flow): Call[] {
  const limiter = createLimiter({
    rate: tokenBucket({ limit: perSecond, window: '1s' }),
    inFlight: concurrency({ limit, permitTtl: '10m' }),
  })
  const calls: Call[] = []
  const held: { endUs: number; decision: Decision }[] = []
  for (let index = 0; index < perSecond * seconds; index++) {
    const nowUs = Math.ceil((index * 1_000_000) / perSecond)
    while (held[0] !== undefined && held[0].endUs <= nowUs) held.shift()?.decision.release()
    const decision = limiter.take({ rate: 'all', inFlight: 'all' }, { now: nowUs / 1_000 })
    if (!decision.allowed) continue
    const startUs = Math.max(nowUs, calls[calls.length - servers]?.endUs ?? 0)
    const endUs = startUs + serviceUs
    held.push({ endUs, decision })
    const permits = decision.policies[1]
    calls.push({ admittedUs: nowUs, endUs, inFlight: limit - (permits?.remaining ?? Number.NaN) })
  }
  return calls
}

/** Permits held at the end of the last call admitted before a second begins. */
export function inFlightAt(calls: readonly Call[], second: number): number {
  return calls.findLast(({ admittedUs }) => admittedUs < second * 1_000_000)?.inFlight ?? 0
}
