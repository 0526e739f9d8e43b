import { durationUs } from '../core/duration.ts'
import { type ErrorCode, isCatracaError, show } from '../core/errors.ts'
import { nearest, type Parameter } from '../core/parameters.ts'

/** The form of a value as plain data: read by the checker below, by the JSON Schema and by the pages. */
export type Shape =
  | Parameter
  | { kind: 'flag'; default?: boolean; words: string }
  /** A `secret` one may hold a password: messages do not show it. */
  | { kind: 'pattern'; like: string; pattern: string; default?: string; secret?: true; words: string }
  | { kind: 'list'; of: Shape; min: number; words: string }
  | { kind: 'map'; of: Shape; name: string; min: number; pattern?: string; words: string }
  | ObjectShape
  /** An object whose other keys depend on one of them. */
  | { kind: 'variant'; key: string; of: Readonly<Record<string, ObjectShape>>; words: string }
  /** The first shape that takes values of the given type of JSON. */
  | { kind: 'either'; of: readonly Shape[]; words: string }

export interface ObjectShape {
  kind: 'object'
  keys: Readonly<Record<string, Shape>>
  required: readonly string[]
  words: string
}

/** Names and numbers that lead to a place in a document. */
export type Place = readonly (string | number)[]

/** One thing that is wrong in a document. */
export interface Problem {
  readonly code: ErrorCode
  readonly place: Place
  /** What was found there; for an unknown key its name. */
  readonly value: unknown
  /** What is wrong and what is allowed, without the place. */
  readonly words: string
  /** The known name that was probably meant. */
  readonly near?: string
}

/** A place as text: `policies.login.per[1]`. */
export function placeText(place: Place): string {
  return place.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    return text === '' ? part : `${text}.${part}`
  }, '')
}

/** Every difference between a value and a shape, in the order of the document. Never throws. */
export function problemsOf(shape: Shape, value: unknown, place: Place = []): Problem[] {
  switch (shape.kind) {
    case 'integer': {
      const fits = Number.isSafeInteger(value) && (value as number) >= shape.min && (value as number) <= shape.max
      return fits ? [] : wrong(place, value, `a whole number of ${shape.unit} from ${shape.min} to ${shape.max}`)
    }
    case 'duration':
      return durationProblems(value, place)
    case 'choice':
      return shape.of.includes(value as string) ? [] : wrongChoice(place, value, shape.of)
    case 'text':
      return typeof value === 'string' && value !== '' ? [] : wrong(place, value, shape.like)
    case 'pattern':
      if (typeof value === 'string' && new RegExp(shape.pattern).test(value)) return []
      return shape.secret === true ? wrongSecret(place, shape.like) : wrong(place, value, shape.like)
    case 'flag':
      return typeof value === 'boolean' ? [] : wrong(place, value, 'true or false')
    case 'list':
      if (!Array.isArray(value) || value.length < shape.min) {
        return wrong(place, value, `a list${shape.min > 0 ? ` of at least ${shape.min}` : ''}: ${shape.words}`)
      }
      return value.flatMap((one, index) => problemsOf(shape.of, one, [...place, index]))
    case 'map':
      return mapProblems(shape, value, place)
    case 'object':
      return objectProblems(shape, value, place)
    case 'variant':
      return variantProblems(shape, value, place)
    default:
      return eitherProblems(shape.of, shape.words, value, place)
  }
}

function durationProblems(value: unknown, place: Place): Problem[] {
  try {
    durationUs(value, '')
    return []
  } catch (error) {
    if (!isCatracaError(error)) throw error
    const words = error.message.replace(/^.*?; allowed: /, '').replace(/ \[CATRACA_\w+\]$/, '')
    return [{ code: error.code, place, value, words: `is ${show(value)}; allowed: ${words}` }]
  }
}

function mapProblems(shape: Shape & { kind: 'map' }, value: unknown, place: Place): Problem[] {
  if (!isObject(value)) return wrong(place, value, `an object, ${shape.name} by ${shape.name}: ${shape.words}`)
  const names = Object.keys(value)
  if (names.length < shape.min) return wrong(place, value, `at least ${shape.min} ${shape.name}`)
  return names.flatMap((name) => {
    const at = [...place, name]
    if (name === '' || (shape.pattern !== undefined && !new RegExp(shape.pattern).test(name))) {
      const allowed = shape.pattern === undefined ? 'a name that is not empty' : nameWords
      return [
        {
          code: 'CATRACA_NAME_INVALID',
          place: at,
          value: name,
          words: `is no name here; allowed: ${allowed}`,
        } as const,
      ]
    }
    return problemsOf(shape.of, value[name], at)
  })
}

function objectProblems(shape: ObjectShape, value: unknown, place: Place): Problem[] {
  if (!isObject(value)) return wrong(place, value, `an object with ${Object.keys(shape.keys).join(', ')}`)
  const found = Object.keys(value).flatMap((name): Problem[] => {
    if (!Object.hasOwn(shape.keys, name)) return [unknownKey(name, Object.keys(shape.keys), place)]
    // As in code, where an option that is undefined is one that was not given.
    return value[name] === undefined ? [] : problemsOf(shape.keys[name] as Shape, value[name], [...place, name])
  })
  const missing = shape.required.filter((name) => !Object.hasOwn(value, name) || value[name] === undefined)
  return [...found, ...missing.map((name) => missingKey(name, shape.keys[name] as Shape, place))]
}

function variantProblems(shape: Shape & { kind: 'variant' }, value: unknown, place: Place): Problem[] {
  const names = Object.keys(shape.of)
  if (!isObject(value)) return wrong(place, value, `an object with ${shape.key}: ${names.join(', ')}`)
  const choice = value[shape.key]
  if (choice === undefined) return [missingKey(shape.key, { kind: 'choice', of: names, words: '' }, place)]
  if (typeof choice !== 'string' || !Object.hasOwn(shape.of, choice)) {
    return wrongChoice([...place, shape.key], choice, names)
  }
  const { keys, required, words } = shape.of[choice] as ObjectShape
  const own = { kind: 'choice', of: names, words: '' } as const
  return objectProblems({ kind: 'object', keys: { [shape.key]: own, ...keys }, required, words }, value, place)
}

function eitherProblems(shapes: readonly Shape[], words: string, value: unknown, place: Place): Problem[] {
  const results = shapes.filter((shape) => takesType(shape, value)).map((shape) => problemsOf(shape, value, place))
  const [first] = results
  if (first === undefined) return wrong(place, value, words)
  return results.find((problems) => problems.length === 0) ?? first
}

/** True when the value is of the type of JSON the shape speaks of, so that its complaints are to the point. */
function takesType(shape: Shape, value: unknown): boolean {
  switch (shape.kind) {
    case 'integer':
      return typeof value === 'number'
    case 'flag':
      return typeof value === 'boolean'
    case 'list':
      return Array.isArray(value)
    case 'map':
    case 'object':
    case 'variant':
      return isObject(value)
    case 'duration':
      return typeof value === 'number' || typeof value === 'string'
    default:
      return typeof value === 'string'
  }
}

export function unknownKey(name: string, known: readonly string[], place: Place): Problem {
  const near = nearest(name, known)
  const words = `is unknown; allowed: ${known.join(', ')}${near === undefined ? '' : `; did you mean ${near}?`}`
  return { code: 'CATRACA_OPTION_UNKNOWN', place: [...place, name], value: name, words, ...(near && { near }) }
}

function missingKey(name: string, shape: Shape, place: Place): Problem {
  const words = `is missing; allowed: ${allowedWords(shape)}`
  return { code: 'CATRACA_OPTION_INVALID', place: [...place, name], value: undefined, words }
}

function wrong(place: Place, given: unknown, allowed: string): Problem[] {
  const value = withoutPassword(given)
  return [{ code: 'CATRACA_OPTION_INVALID', place, value, words: `is ${show(value)}; allowed: ${allowed}` }]
}

function wrongSecret(place: Place, allowed: string): Problem[] {
  const words = `is not shown here, since it may hold a password; allowed: ${allowed}`
  return [{ code: 'CATRACA_OPTION_INVALID', place, value: undefined, words }]
}

/** An address that was written where none belongs may have a password in it. */
function withoutPassword(value: unknown): unknown {
  return typeof value === 'string' ? value.replace(/:.*@/s, ':…@').replace(/(:\/\/[^?]*)\?.*/s, '$1?…') : value
}

function wrongChoice(place: Place, given: unknown, choices: readonly string[]): Problem[] {
  const value = withoutPassword(given)
  const near = typeof value === 'string' ? nearest(value, choices) : undefined
  const hint = near === undefined ? '' : `; did you mean ${near}?`
  const words = `is ${show(value)}; allowed: ${choices.join(', ')}${hint}`
  return [{ code: 'CATRACA_OPTION_INVALID', place, value, words, ...(near && { near }) }]
}

const nameWords = 'a letter, then up to 63 letters, digits, "_", "." or "-"'

/** What may stand in a place, in a few words. */
export function allowedWords(shape: Shape): string {
  switch (shape.kind) {
    case 'integer':
      return `a whole number of ${shape.unit} from ${shape.min} to ${shape.max}`
    case 'duration':
      return 'a duration such as "30s", or milliseconds'
    case 'choice':
      return shape.of.join(', ')
    case 'text':
    case 'pattern':
      return shape.like
    case 'flag':
      return 'true or false'
    case 'object':
      return `an object with ${Object.keys(shape.keys).join(', ')}`
    case 'variant':
      return `an object with ${shape.key}: ${Object.keys(shape.of).join(', ')}`
    default:
      return shape.words
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A name that must be one of those declared elsewhere in the document. */
export function unknownName(
  name: string,
  known: readonly string[],
  place: Place,
  what: string,
  code: ErrorCode = 'CATRACA_OPTION_INVALID',
): Problem {
  const near = nearest(name, known)
  const hint = near === undefined ? '' : `; did you mean ${near}?`
  const words = `is ${show(name)}, which is no ${what} here; allowed: ${known.join(', ') || 'none'}${hint}`
  return { code, place, value: name, words, ...(near !== undefined && { near }) }
}
