import { CatracaError, show } from './errors.ts'

/**
 * A length of time: milliseconds as a number, or a string such as `250ms`, `30s`, `15m`, `1h`, `1d`.
 * At least 1 µs, at most 36,500 days, and a whole number of microseconds (`0.5ms` is 500 µs).
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const unitUs = { ms: 1_000, s: 1_000_000, m: 60_000_000, h: 3_600_000_000, d: 86_400_000_000 } as const
const pattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const maxUs = 36_500 * unitUs.d

/** Microseconds of a {@link Duration}. Throws `CATRACA_DURATION_INVALID`, naming `path`, the value and what is allowed. */
export function durationUs(value: unknown, path: string): number {
  const us = rawUs(value)
  if (us === undefined) throw invalid(value, path)
  const whole = Math.round(us)
  // A decimal such as 0.1ms is not exact in binary: it counts as whole when it is whole to a millionth of its value.
  if (whole < 1 || whole > maxUs || Math.abs(us - whole) > whole * 1e-9) throw invalid(value, path)
  return whole
}

function rawUs(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value * 1_000 : undefined
  if (typeof value !== 'string') return undefined
  const match = pattern.exec(value)
  if (match === null) return undefined
  return Number(match[1]) * unitUs[match[2] as keyof typeof unitUs]
}

function invalid(value: unknown, path: string): CatracaError {
  const allowed =
    'milliseconds as a number, or a text such as "250ms", "30s", "15m", "1h", "1d"; 1 µs to 36500d, whole µs'
  return new CatracaError('CATRACA_DURATION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}

/** The shortest text of a duration in its largest whole unit: 60000000 µs is `1m`. */
export function durationText(us: number): string {
  for (const unit of ['d', 'h', 'm', 's', 'ms'] as const) {
    if (us % unitUs[unit] === 0) return `${us / unitUs[unit]}${unit}`
  }
  return `${us / 1_000}ms`
}

/** Milliseconds of a {@link Duration}. Throws `CATRACA_DURATION_INVALID`. */
export function durationMs(value: Duration): number {
  return durationUs(value, 'duration') / 1_000
}
