/**
 * Milliseconds; `limit` units per window, or permits at once that last `windowMs`. `first`: a fixed window that begins
 * with a key's first request.
 */
export interface Law {
  readonly kind: 'bucket' | 'log' | 'fixed' | 'first' | 'counter' | 'permits'
  readonly limit: number
  readonly windowMs: number
  /** Of a bucket: most units at one instant. */
  readonly burst?: number
}

export interface PlannedPolicy {
  readonly name: string
  readonly law: Law
  /** All requests count under one key, not each under its own. */
  readonly common?: true
}

export interface PlannedLimiter {
  readonly name: string
  readonly mode: 'local' | 'open' | 'closed'
  /** Several make a stack, of which all are charged or none. */
  readonly policies: readonly PlannedPolicy[]
  /** How instances hold units; undefined: each question goes to the store. `ttl` in ms. */
  readonly lease?: { readonly block: number; readonly ttl: number }
}

export type Plan = readonly PlannedLimiter[]

export const instances = 3
export const timeoutMs = 50
/** Decisions per second of each process: a little over what is asked of it, so that a late timer does not matter. */
export const rate = 1_150
export const floorRate = 1_000

export const hotKeys = 2
export const keys: readonly string[] = Array.from({ length: 20 }, (_, i) => (i < hotKeys ? `hot-${i}` : `cold-${i}`))
export const commonKey = 'all'

const bucket: Law = { kind: 'bucket', limit: 60, windowMs: 1_000, burst: 30 }

/** Each gets an equal part of the traffic; hot keys ask for about twice what they may have, the others for less. */
export const plan: Plan = [
  { name: 'bucket', mode: 'local', policies: [{ name: 'bucket', law: bucket }] },
  { name: 'log', mode: 'local', policies: [{ name: 'log', law: { kind: 'log', limit: 40, windowMs: 1_000 } }] },
  { name: 'shut', mode: 'closed', policies: [{ name: 'shut', law: { kind: 'fixed', limit: 50, windowMs: 1_000 } }] },
  { name: 'open', mode: 'open', policies: [{ name: 'open', law: bucket }] },
  { name: 'slots', mode: 'local', policies: [{ name: 'slots', law: { kind: 'permits', limit: 6, windowMs: 2_000 } }] },
  // Fewer units than instances: each share is one unit all the same.
  { name: 'scarce', mode: 'local', policies: [{ name: 'scarce', law: { kind: 'log', limit: 2, windowMs: 1_000 } }] },
  {
    name: 'stack',
    mode: 'local',
    policies: [
      { name: 'each', law: bucket },
      { name: 'total', law: { kind: 'fixed', limit: 300, windowMs: 1_000 }, common: true },
    ],
  },
]

const leased = { block: 8, ttl: 2_500 }

/**
 * Rules of which instances hold units. A lease lasts as long as any of them counts, the two windows of the counter, so
 * that a store that lost its memory hands out nothing again.
 */
export const leasePlan: Plan = [
  { name: 'bucket', mode: 'local', lease: leased, policies: [{ name: 'bucket', law: bucket }] },
  {
    name: 'log',
    mode: 'local',
    lease: leased,
    policies: [{ name: 'log', law: { kind: 'log', limit: 60, windowMs: 1_000 } }],
  },
  {
    name: 'shut',
    mode: 'closed',
    lease: leased,
    policies: [{ name: 'shut', law: { kind: 'fixed', limit: 60, windowMs: 1_000 } }],
  },
  {
    name: 'first',
    mode: 'local',
    lease: leased,
    policies: [{ name: 'first', law: { kind: 'first', limit: 60, windowMs: 1_000 } }],
  },
  {
    name: 'counter',
    mode: 'open',
    lease: leased,
    policies: [{ name: 'counter', law: { kind: 'counter', limit: 60, windowMs: 1_000 } }],
  },
  // One unit at a time: every key waits for the store, which is the law without a lease.
  {
    name: 'single',
    mode: 'local',
    lease: { block: 1, ttl: 2_500 },
    policies: [{ name: 'single', law: { kind: 'bucket', limit: 7, windowMs: 1_000, burst: 3 } }],
  },
  {
    name: 'stack',
    mode: 'local',
    lease: leased,
    policies: [
      { name: 'each', law: bucket },
      { name: 'total', law: { kind: 'fixed', limit: 300, windowMs: 1_000 }, common: true },
    ],
  },
]

/** Every policy with its limiter, in the order of the numbers that workers log. */
export function policiesOf(plan: Plan): readonly (PlannedPolicy & { readonly limiter: PlannedLimiter })[] {
  return plan.flatMap((limiter) => limiter.policies.map((policy) => ({ ...policy, limiter })))
}

/** What one process may admit of a law without the store. */
export function shareOf(law: Law): Law {
  const part = (units: number): number => Math.max(1, Math.floor(units / instances))
  return { ...law, limit: part(law.limit), ...(law.burst === undefined ? {} : { burst: part(law.burst) }) }
}

/** Most units at one instant: what a store that forgot a key hands out once more. */
export function capacityOf({ limit, burst = limit }: Law): number {
  return burst
}

/** Most units in a half-open span of one window; of permits those held at once. */
export function mostOf(law: Law): number {
  if (law.kind === 'bucket') return capacityOf(law) + law.limit
  // Two windows of the clock, or of a key.
  return law.kind === 'log' || law.kind === 'permits' ? law.limit : 2 * law.limit
}
