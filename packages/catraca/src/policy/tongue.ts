/** Names of the units of time, singular and plural, from the day down. */
export type UnitNames = Readonly<
  Record<'day' | 'hour' | 'minute' | 'second' | 'millisecond', readonly [singular: string, plural: string]>
>

const unitsUs = { day: 86_400_000_000, hour: 3_600_000_000, minute: 60_000_000, second: 1_000_000, millisecond: 1_000 }

/**
 * How a language writes whole numbers and lengths of time. The rules are its own and not the machine's: `Intl` groups
 * differently from one version of its data to the next.
 */
export class Tongue {
  private readonly group: string
  private readonly point: string
  private readonly units: UnitNames
  private readonly isSingular: (value: number) => boolean

  /** @param group Between groups of three digits. @param point Before decimals. */
  constructor(group: string, point: string, units: UnitNames, isSingular: (value: number) => boolean) {
    this.group = group
    this.point = point
    this.units = units
    this.isSingular = isSingular
  }

  /** `500000` as `500,000` or `500.000`. */
  number(value: number): string {
    return String(value).replaceAll(/\B(?=(?:\d{3})+$)/g, this.group)
  }

  /**
   * A whole number of microseconds in its largest whole unit, as `15 minutes`; with decimals as `1.5 seconds` from one
   * second up, and in milliseconds below.
   */
  length(us: number): string {
    const unit = unitOf(us)
    const unitUs = unitsUs[unit]
    const rest = us % unitUs
    const decimals = rest === 0 ? '' : this.point + String(rest / unitUs).slice(2)
    const [singular, plural] = this.units[unit]
    return `${this.number(Math.floor(us / unitUs))}${decimals} ${this.isSingular(us / unitUs) ? singular : plural}`
  }

  /** The unit that is exactly as long, as `minute`; undefined for other lengths. */
  unit(us: number): string | undefined {
    const unit = unitOf(us)
    return unitsUs[unit] === us ? this.units[unit][0] : undefined
  }
}

function unitOf(us: number): keyof typeof unitsUs {
  if (us < unitsUs.second) return 'millisecond'
  return (['day', 'hour', 'minute'] as const).find((unit) => us % unitsUs[unit] === 0) ?? 'second'
}
