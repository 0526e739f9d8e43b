import { createLimiter, type Decision, type Rule } from 'catraca'

/** One key under one rule: the decision of each arrival, in order. */
export function run(rule: Rule, times: readonly number[], cost = 1): Decision[] {
  const limiter = createLimiter(rule)
  return times.map((now) => limiter.take('key', { now, cost }))
}

/** Instants at which requests were admitted. */
export function admitted(rule: Rule, times: readonly number[], cost = 1): number[] {
  const decisions = run(rule, times, cost)
  return times.filter((_, index) => decisions[index]?.allowed)
}

/** Instants at which admitted requests leave a queue: arrival plus `delayMs`. */
export function departures(rule: Rule, times: readonly number[]): number[] {
  const decisions = run(rule, times)
  return times.flatMap((now, index) => {
    const decision = decisions[index]
    return decision?.allowed ? [now + decision.delayMs] : []
  })
}

/** The most instants in any half-open span [t, t + spanMs). */
export function mostWithin(times: readonly number[], spanMs: number): number {
  return mostUntil(times, (first, last) => last < first + spanMs)
}

/** The most instants in any closed span [t, t + spanMs]. */
export function mostWithinClosed(times: readonly number[], spanMs: number): number {
  return mostUntil(times, (first, last) => last <= first + spanMs)
}

function mostUntil(times: readonly number[], together: (first: number, last: number) => boolean): number {
  let most = 0
  let from = 0
  for (let to = 0; to < times.length; to++) {
    while (!together(times[from] as number, times[to] as number)) from++
    most = Math.max(most, to - from + 1)
  }
  return most
}

/** How many of the instants lie in [fromMs, toMs). */
export function countIn(times: readonly number[], fromMs: number, toMs: number): number {
  return times.filter((time) => time >= fromMs && time < toMs).length
}

/** Instants and how many requests each of them had. */
export function tally(times: readonly number[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const time of times) counts[time] = (counts[time] ?? 0) + 1
  return counts
}
