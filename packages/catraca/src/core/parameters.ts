import { type Duration, durationUs } from './duration.ts'
import { CatracaError, show } from './errors.ts'

/** One option of a rule, store or limiter as plain data: read by the checker here, by schemas and by pages. */
export type Parameter =
  | { kind: 'integer'; unit: string; min: number; max: number; default?: number | string; words: string }
  | { kind: 'duration'; default?: Duration; words: string }
  | { kind: 'choice'; of: readonly string[]; default?: string; words: string }
  | { kind: 'text'; like: string; default?: string; words: string }
export type Parameters = Readonly<Record<string, Parameter>>

/** Checked options: durations in microseconds; a default that names another option takes its value. */
export type Checked = Record<string, string | number | undefined>

/**
 * Checks `given` against `parameters`. Unknown names, missing values and values out of range throw a
 * {@link CatracaError} that names `where.option`, the value found and what is allowed.
 */
export function checkOptions(parameters: Parameters, given: unknown, where: string): Checked {
  rejectUnknown(Object.keys(parameters), given, where)
  const source = given as Record<string, unknown>
  const checked: Checked = {}
  for (const [name, parameter] of Object.entries(parameters)) {
    const path = `${where}.${name}`
    const value = source[name]
    if (value !== undefined) checked[name] = checkOne(parameter, value, path)
    else if (parameter.default === undefined) throw invalid(parameter, value, path)
    else if (typeof parameter.default === 'string' && parameter.default in parameters) {
      checked[name] = checked[parameter.default]
    } else if (parameter.default !== '') checked[name] = checkOne(parameter, parameter.default, path)
  }
  return checked
}

/** Throws `CATRACA_OPTION_UNKNOWN` for the first name of `given` that is not in `known`, with the nearest known one. */
export function rejectUnknown(known: readonly string[], given: unknown, where: string): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new CatracaError('CATRACA_OPTION_INVALID', `${where} is ${show(given)}; allowed: an object of options`, {
      path: where,
      value: given,
    })
  }
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue
    const near = nearest(name, known)
    const hint = near === undefined ? '' : `; did you mean ${near}?`
    throw new CatracaError(
      'CATRACA_OPTION_UNKNOWN',
      `${where}.${name} is unknown; allowed: ${known.join(', ')}${hint}`,
      {
        path: `${where}.${name}`,
        value: name,
      },
    )
  }
}

function checkOne(parameter: Parameter, value: unknown, path: string): string | number {
  switch (parameter.kind) {
    case 'duration':
      return durationUs(value, path)
    case 'integer':
      if (Number.isSafeInteger(value) && (value as number) >= parameter.min && (value as number) <= parameter.max) {
        return value as number
      }
      break
    case 'choice':
      if (parameter.of.includes(value as string)) return value as string
      break
    case 'text':
      if (typeof value === 'string' && value !== '') return value
      break
  }
  throw invalid(parameter, value, path)
}

function invalid(parameter: Parameter, value: unknown, path: string): CatracaError {
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed(parameter)}`, {
    path,
    value,
  })
}

function allowed(parameter: Parameter): string {
  if (parameter.kind === 'duration') return 'a duration such as "30s" or milliseconds'
  if (parameter.kind === 'choice') return parameter.of.map((choice) => JSON.stringify(choice)).join(', ')
  if (parameter.kind === 'text') return parameter.like
  return `a whole number of ${parameter.unit} from ${parameter.min} to ${parameter.max}`
}

/** The known name that was probably meant; undefined when none is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const near = known.toSorted((a, b) => distance(a, name) - distance(b, name))[0]
  return near !== undefined && distance(near, name) <= Math.min(3, Math.ceil(name.length / 2)) ? near : undefined
}

/** Edit distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + change))
    }
    row = next
  }
  return row[b.length] ?? 0
}
