import { CatracaError, show } from '../../core/errors.ts'
import { scaleUp } from '../../core/integer.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import {
  type Charge,
  graceUs,
  type Kinship,
  type Rule,
  raise,
  type ScriptForm,
  type Snapshot,
} from '../../core/rule.ts'
import { type Anchor, defaultAnchors, type Period, type PeriodName, parseAnchor, periodAt } from './period.ts'
import { type Zone, zoneOf } from './zone.ts'

/** Options of {@link quota}. */
export interface QuotaOptions {
  /** Units per period: a whole number from 1 to 10^15. */
  limit: number
  period: PeriodName
  /** IANA name such as `America/Sao_Paulo`. Default `UTC`. */
  timeZone?: string
  /**
   * Where periods begin, as wall time of the zone: `2027-01-31` or `2027-01-31T06:00`. A month that lacks the day begins
   * on its last. Default: midnight, Monday, the first of the month, the first of January.
   */
  anchor?: string
}

export const parameters: Parameters = {
  limit: { kind: 'integer', unit: 'units', min: 1, max: 1e15, words: 'units per period' },
  period: { kind: 'choice', of: ['day', 'week', 'month', 'year'], words: 'calendar period' },
  timeZone: {
    kind: 'text',
    like: 'an IANA zone such as "America/Sao_Paulo"',
    default: 'UTC',
    words: 'zone whose calendar counts',
  },
  anchor: {
    kind: 'text',
    like: 'a date that exists, "2027-01-31" or "2027-01-31T06:00"',
    default: '',
    words: 'where periods begin, as wall time of the zone',
  },
}

/**
 * Counts by calendar period of a zone. Periods are [start, end) as instants, so a day may last 23, 24, 24.5 or 25 hours,
 * begins when its date does (where midnight was skipped, at the jump), and a date that the zone skipped has no period.
 * Bound: exactly the limit per period.
 */
export function quota(options: QuotaOptions): Rule {
  const checked = checkOptions(parameters, options, 'quota')
  const period = checked['period'] as PeriodName
  const timeZone = checked['timeZone'] as string
  const text = checked['anchor'] as string | undefined
  const zone = zoneOf(timeZone)
  const anchor = text === undefined ? defaultAnchors[period] : parseAnchor(text)
  if (zone === undefined) throw invalid('timeZone', timeZone)
  if (anchor === undefined) throw invalid('anchor', text)
  return new Quota(checked['limit'] as number, period, zone, anchor, {
    timeZone,
    ...(text === undefined ? {} : { anchor: text }),
  })
}

function invalid(name: 'timeZone' | 'anchor', value: unknown): CatracaError {
  const path = `quota.${name}`
  const allowed = (parameters[name] as { like: string }).like
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}

/** State: `origin`, the start of the period, and `level`, the units counted in it. */
class Quota implements Rule {
  readonly algorithm = 'quota'
  readonly limit: number
  readonly tickUs = 1
  readonly graceTicks = graceUs
  readonly width = 2 as const
  readonly denial = 'quota' as const
  readonly holds = false as const
  readonly lease = 'never' as const
  readonly options: Readonly<Record<string, string | number>>
  readonly script: ScriptForm
  private readonly period: PeriodName
  private readonly zone: Zone
  private readonly anchor: Anchor
  /** The period last looked up: all keys share it, and looking one up costs some µs. */
  private start = 0
  private end = 0
  private told: { start: number; texts: readonly string[] } = { start: -1, texts: [] }

  constructor(limit: number, period: PeriodName, zone: Zone, anchor: Anchor, rest: Record<string, string>) {
    this.limit = limit
    this.period = period
    this.zone = zone
    this.anchor = anchor
    this.options = { limit, period, ...rest }
    this.script = {
      kind: 'q',
      name: `q${period}/${rest['timeZone']}/${rest['anchor'] ?? ''},${limit};`,
      numbers: [`${limit}`],
      unit: 1,
      lifeMs: 0,
      timed: (nowUs) => this.boundaries(nowUs),
    }
  }

  wait(state: Float64Array, at: number, now: number, cost: number): number {
    const origin = state[at] as number
    if (this.count(origin, state[at + 1] as number, now) + cost <= this.limit) return 0
    return cost > this.limit ? Infinity : this.endOf(this.time(origin, now)) - now
  }

  remaining(state: Float64Array, at: number, now: number): number {
    return Math.max(0, this.limit - this.count(state[at] as number, state[at + 1] as number, now))
  }

  charge(state: Float64Array, at: number, now: number, cost: number): Float64Array {
    const origin = state[at] as number
    state[at + 1] = this.count(origin, state[at + 1] as number, now) + cost
    state[at] = this.startOf(this.time(origin, now))
    return state
  }

  refund(state: Float64Array, at: number, now: number, charge: Charge, units: number): number {
    if (state[at] !== charge.origin || now >= this.endOf(charge.origin)) return 0
    const give = Math.min(units, state[at + 1] as number)
    state[at + 1] = (state[at + 1] as number) - give
    return give
  }

  originAt(state: Float64Array, at: number): number {
    return state[at] as number
  }

  levelAt(state: Float64Array, at: number): number {
    return state[at + 1] as number
  }

  endsAt(state: Float64Array, at: number): number {
    return this.endOf(state[at] as number)
  }

  used(state: Float64Array, at: number, now: number): number {
    return this.count(state[at] as number, state[at + 1] as number, now)
  }

  kinship(from: Rule): Kinship {
    if (!(from instanceof Quota)) return 'none'
    const names = ['period', 'timeZone', 'anchor']
    return names.every((name) => from.options[name] === this.options[name]) ? 'same' : 'none'
  }

  /** Quotas of one calendar count together, each up to its own limit. */
  adopt(
    state: Float64Array,
    at: number,
    nowUs: number,
    from: Rule,
    fromState: Float64Array,
    fromAt: number,
  ): Float64Array {
    if (this.kinship(from) === 'none') return raise(this, state, at, nowUs, from, fromState, fromAt)
    state[at] = fromState[fromAt] as number
    state[at + 1] = fromState[fromAt + 1] as number
    return state
  }

  rescale(state: Float64Array, at: number, from: Rule): void {
    state[at + 1] = scaleUp(state[at + 1] as number, from.limit, this.limit)
  }

  resetTicks({ lead, level }: Snapshot, now: number): number {
    const origin = now + lead
    return this.count(origin, level, now) === 0 ? 0 : this.endOf(this.time(origin, now)) - now
  }

  delayTicks(): number {
    return 0
  }

  /** The time that counts: a stored start that is ahead of now wins within the grace. */
  private time(origin: number, now: number): number {
    return origin > now && origin - now <= graceUs ? origin : now
  }

  /** Units counted in the period of that time; those of a start ahead of now are kept, also of a broken clock. */
  private count(origin: number, level: number, now: number): number {
    return origin >= this.startOf(now) ? level : 0
  }

  private startOf(now: number): number {
    this.find(now)
    return this.start
  }

  private endOf(now: number): number {
    this.find(now)
    return this.end
  }

  /** The starts of the period before, of this one and of the next, and the end of the next: a clock may be off. */
  private boundaries(now: number): readonly string[] {
    this.find(now)
    const { start, end } = this
    if (this.told.start !== start) {
      const near = (us: number): Period => periodAt(this.period, this.zone, this.anchor, Math.floor(us / 1_000))
      const times = [near(start - 1).startMs * 1_000, start, end, near(end).endMs * 1_000]
      this.told = { start, texts: times.map(String) }
    }
    return this.told.texts
  }

  private find(now: number): void {
    if (now >= this.start && now < this.end) return
    const { startMs, endMs } = periodAt(this.period, this.zone, this.anchor, Math.floor(now / 1_000))
    this.start = startMs * 1_000
    this.end = endMs * 1_000
  }
}
