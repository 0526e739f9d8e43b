import { capacityOf, instances, type Law, mostOf, shareOf } from './plan.ts'

/** One admission, as the caller was told. */
export interface Admission {
  /** When it was decided, by the clock that decided: the server's, or that of the process. */
  readonly us: number
  readonly cost: number
  /** Of a permit: when its holder began to give it back, by the clock of the process. */
  readonly releasedUs?: number
  /** Of the process that was told. */
  readonly process: number
  /** True where the process decided by itself. */
  readonly degraded: boolean
  /** When the window began in which it is counted. */
  readonly windowUs?: number
  /** How far the clock of the server was put forward when it decided. */
  readonly offsetUs?: number
}

/** The clocks of processes and of the server are one machine's and read to a millisecond. */
const skewUs = 2_000

/**
 * Units admitted beyond a law, over the worst span; negative where that is not exhausted. Zero is the exact limit:
 * - bucket: burst + rate × T over every half-open span, which is the level of a bucket that never refuses;
 * - log: the limit in every half-open window;
 * - fixed: the limit in each window of the clock, where a clock that is put back counts its windows anew;
 * - first: the limit in each window of the key and all that overlap it, each admission in its own;
 * - counter: at each admission the count of its window and the share of the one before, of the last unit less than one;
 * - permits: those surely held at once, from the decision to when the holder began to give back or the permit ended.
 */
export function excess(law: Law, admissions: readonly Admission[]): number {
  const ordered = admissions.toSorted((a, b) => a.us - b.us)
  if (law.kind === 'bucket') return bucketExcess(law, ordered)
  if (law.kind === 'log') return mostIn(law.windowMs * 1_000, ordered) - law.limit
  if (law.kind === 'permits') return mostHeld(law.windowMs * 1_000, ordered) - law.limit
  const windowUs = law.windowMs * 1_000
  if (law.kind === 'first') return firstExcess(windowUs, ordered) - law.limit
  if (law.kind === 'counter') return counterExcess(windowUs, law.limit, ordered)
  const counts = new Map<string, number>()
  for (const { us, cost, offsetUs = 0 } of ordered) {
    const window = `${offsetUs}:${Math.floor((us + offsetUs) / windowUs)}`
    counts.set(window, (counts.get(window) ?? 0) + cost)
  }
  return Math.max(0, ...counts.values()) - law.limit
}

/** Most units in any half-open span of `windowUs`. */
export function mostIn(windowUs: number, ordered: readonly Admission[]): number {
  let most = 0
  let sum = 0
  let first = 0
  for (const { us, cost } of ordered) {
    sum += cost
    while ((ordered[first] as Admission).us <= us - windowUs) sum -= (ordered[first++] as Admission).cost
    most = Math.max(most, sum)
  }
  return most
}

function bucketExcess({ limit, windowMs, burst = limit }: Law, ordered: readonly Admission[]): number {
  // In units × µs of a window, so that every number is whole.
  const unit = windowMs * 1_000
  let level = 0
  let most = 0
  let before = ordered[0]?.us ?? 0
  for (const { us, cost } of ordered) {
    level = Math.max(0, level - (us - before) * limit) + cost * unit
    most = Math.max(most, level)
    before = us
  }
  return most / unit - burst
}

function firstExcess(windowUs: number, ordered: readonly Admission[]): number {
  const counts = new Map<number, number>()
  for (const { us, cost, windowUs: start = us } of ordered) {
    if (us < start || us >= start + windowUs) return Infinity
    counts.set(start, (counts.get(start) ?? 0) + cost)
  }
  const starts = [...counts.entries()]
  const overlapping = starts.map(([start]) =>
    starts.reduce((sum, [other, count]) => (other > start - windowUs && other <= start ? sum + count : sum), 0),
  )
  return Math.max(0, ...overlapping)
}

function counterExcess(windowUs: number, limit: number, ordered: readonly Admission[]): number {
  const counts = new Map<number, number>()
  let most = 0
  for (const { us, cost } of ordered) {
    const start = Math.floor(us / windowUs) * windowUs
    const count = (counts.get(start) ?? 0) + cost
    counts.set(start, count)
    // Whole numbers: the count and the weighed one before, in units × µs.
    const weighed = (counts.get(start - windowUs) ?? 0) * (windowUs - (us - start))
    most = Math.max(most, Math.floor((count * windowUs + weighed) / windowUs))
  }
  return most - limit
}

function mostHeld(lifeUs: number, ordered: readonly Admission[]): number {
  const changes = ordered.flatMap(({ us, cost, releasedUs = Infinity }) => {
    const endUs = Math.min(us + lifeUs, releasedUs - skewUs)
    return endUs <= us
      ? []
      : [
          { us, cost },
          { us: endUs, cost: -cost },
        ]
  })
  let most = 0
  let held = 0
  // Ends before beginnings of the same instant.
  for (const { cost } of changes.toSorted((a, b) => a.us - b.us || a.cost - b.cost)) {
    held += cost
    most = Math.max(most, held)
  }
  return most
}

export type Side = 'store' | 'share' | 'together'

/** What was admitted of one key beyond its limit, and how much of that the fault explains. */
export interface Finding {
  readonly side: Side
  readonly policy: string
  readonly key: string
  readonly over: number
  readonly bound: number
}

/**
 * Judges one key of one policy. `capacities`: how often the fault may have made the store forget the key; `held`: units
 * that instances may use later than the store charged them, as `leaseBounds` says.
 *
 * - store: what the store decided keeps the law. A store that forgot a key hands out its capacity once more, and from
 *   then on keeps the law again: one capacity each time. Units that are held when a span begins may be used in it.
 * - share: what a process decided by itself keeps the law of its share over the whole drill, through as many outages as
 *   there were, since states are kept between them: nothing more, however often the store flaps.
 * - together: every span of one window holds at most what the law admits in it (store), one capacity per loss, and what
 *   the shares admit in it. A share is at least one unit, so that is N where the limit is less than N.
 */
export function judge(
  policy: string,
  key: string,
  law: Law,
  all: readonly Admission[],
  capacities: number,
  held = 0,
): Finding[] {
  const lost = capacities * capacityOf(law) + held
  const share = shareOf(law)
  const findings: Finding[] = []
  const find = (side: Side, over: number, bound: number): void => {
    findings.push({ side, policy, key, over, bound })
  }
  const central = all.filter(({ degraded }) => !degraded)
  const local = all.filter(({ degraded }) => degraded)
  find('store', excess(law, central), lost)
  for (let process = 0; process < instances; process++) {
    const own = local.filter((one) => one.process === process)
    if (own.length > 0) find('share', excess(share, own), 0)
  }
  const bound = lost + (local.length > 0 ? instances * mostOf(share) : 0)
  find('together', together(law, all) - mostOf(law), bound)
  return findings
}

function together(law: Law, all: readonly Admission[]): number {
  const ordered = all.toSorted((a, b) => a.us - b.us)
  const windowUs = law.windowMs * 1_000
  return law.kind === 'permits' ? mostHeld(windowUs, ordered) : mostIn(windowUs, ordered)
}

/** The findings that the fault does not explain. */
export function beyond(findings: readonly Finding[]): Finding[] {
  // A bucket's excess is a quotient.
  return findings.filter(({ over, bound }) => over > bound + 1e-6)
}
