import { CatracaError, show } from '../core/errors.ts'
import type { NormalPath } from './path.ts'
import { percentDecoded, segmentEscaped } from './percent.ts'

/** `*` or `:name`: any one segment. */
const one = Symbol('*')
/** `**`: any number of segments, also none. */
const many = Symbol('**')
type Segment = string | typeof one | typeof many

/** Methods and a path pattern. Made by {@link parseRoute}. */
export class Route {
  /** As it was written. */
  readonly text: string
  private readonly methods: readonly string[] | undefined
  private readonly segments: readonly Segment[]
  /** Names of the parameters, each at the place of its segment. */
  private readonly names: readonly (string | undefined)[]
  /** The whole path where the pattern is one. */
  private readonly literal: string | undefined

  /** @internal Use {@link parseRoute}. */
  constructor(
    text: string,
    methods: readonly string[] | undefined,
    segments: readonly Segment[],
    names: readonly (string | undefined)[],
  ) {
    this.text = text
    this.methods = methods
    this.segments = segments
    this.names = names
    this.literal = segments.every((segment) => typeof segment === 'string') ? `/${segments.join('/')}` : undefined
  }

  /**
   * True when some server could understand the request as one of this route, that is when any reading of its path fits.
   * This is the question for a limit: what reaches the handler is counted. Methods are compared as they stand, in upper
   * case. Cost: a comparison for a path without parameters, else one pass over the path.
   */
  matches(method: string, path: NormalPath): boolean {
    if (this.methods !== undefined && !this.methods.includes(method)) return false
    if (typeof path === 'string') return this.fits(path)
    for (const reading of path) if (this.fits(reading)) return true
    return false
  }

  /**
   * True when every server must understand the request as one of this route. This is the question for an exception from a
   * limit: `/health/../login` may be a path under `/health`, or it may be the login.
   */
  matchesSurely(method: string, path: NormalPath): boolean {
    if (this.methods !== undefined && !this.methods.includes(method)) return false
    if (typeof path === 'string') return this.fits(path)
    for (const reading of path) if (!this.fits(reading)) return false
    return true
  }

  /**
   * Values of the `:name` parameters in the first reading that fits, decoded, and in lower case unless cases are told
   * apart; undefined when none fits. The method does not matter.
   */
  params(path: NormalPath): Record<string, string> | undefined {
    for (const reading of typeof path === 'string' ? [path] : path) {
      const starts: number[] = []
      if (!this.walk(reading, starts)) continue
      return Object.fromEntries(
        this.names.flatMap((name, index) => {
          if (name === undefined) return []
          const [segment = ''] = reading.slice(starts[index]).split('/', 1)
          return [[name, percentDecoded(segment)]]
        }),
      )
    }
    return undefined
  }

  /** True for a route with a parameter of that name. */
  has(name: string): boolean {
    return this.names.includes(name)
  }

  private fits(path: string): boolean {
    return this.literal === undefined ? this.walk(path) : this.literal === path
  }

  /**
   * Greedy: each `**` takes as little as lets the next part of the pattern fit, and only the last one met is ever widened,
   * so the work is at most segments of the path × segments of the pattern. `starts` is filled with where segments begin.
   */
  private walk(path: string, starts?: number[]): boolean {
    const { segments } = this
    const { length } = path
    // Begin of the segment that comes next; beyond the length at the end.
    let at = length === 1 ? 2 : 1
    let index = 0
    let lastMany = -1
    let widenedTo = 0
    for (;;) {
      const segment = segments[index]
      if (segment === many) {
        lastMany = index++
        widenedTo = at
        continue
      }
      if (at > length) return segment === undefined
      if (segment !== undefined) {
        const end = endOf(path, at)
        if (segment === one || (end - at === segment.length && path.startsWith(segment, at))) {
          if (starts !== undefined) starts[index] = at
          at = end + 1
          index++
          continue
        }
      }
      if (lastMany === -1) return false
      widenedTo = endOf(path, widenedTo) + 1
      at = widenedTo
      index = lastMany + 1
    }
  }
}

function endOf(path: string, at: number): number {
  const slash = path.indexOf('/', at)
  return slash === -1 ? path.length : slash
}

const pattern = /^(?:([A-Z]+(?:-[A-Z]+)*(?:\|[A-Z]+(?:-[A-Z]+)*)*) +)?((?:\/|\*\*).*)$/
/** What stands for something else in other dialects of patterns must not silently mean itself here. */
const notLiteral = /[*?#\\;{}()[\]<>|"^`\s]|^:/

/**
 * Reads `[METHODS ]/path`: `GET /v1/reports/:id`, `GET|POST /x/*`, `GET /health/**`. Without methods all are meant; GET also
 * means HEAD. A path may begin with `**`. A segment `:name` or `*` stands for any one, `**` for any number, also none; others stand for
 * themselves, decoded, in any case of letters unless `caseSensitive`. A slash at the end means nothing.
 *
 * @param path Path of the route in the configuration. A text that is no route throws `CATRACA_OPTION_INVALID` with it.
 */
export function parseRoute(text: string, path: string, caseSensitive = false): Route {
  const match = typeof text === 'string' ? pattern.exec(text) : null
  if (match === null) throw invalid(text, path)
  const [, methods, written = ''] = match
  const raw = written.split('/')
  if (raw[0] === '') raw.shift()
  if (raw.at(-1) === '') raw.pop()
  const segments: Segment[] = []
  const names: (string | undefined)[] = []
  for (const part of raw) {
    const name = /^:([A-Za-z_]\w*)$/.exec(part)?.[1]
    if (part === '**' && segments.at(-1) === many) continue
    if (name !== undefined && names.includes(name)) throw invalid(text, path, `${show(name)} only once`)
    const segment = part === '**' ? many : part === '*' || name !== undefined ? one : literalOf(part, caseSensitive)
    if (segment === undefined) throw invalid(text, path)
    segments.push(segment)
    names.push(name)
  }
  const known = methods?.split('|')
  if (known?.includes('GET')) known.push('HEAD')
  return new Route(text, known, segments, names)
}

/** A segment as it stands in a normal path; undefined for one that cannot stand there. */
function literalOf(part: string, caseSensitive: boolean): string | undefined {
  if (notLiteral.test(part)) return undefined
  const decoded = percentDecoded(part)
  if (decoded === '' || decoded === '.' || decoded === '..') return undefined
  return segmentEscaped(caseSensitive ? decoded : decoded.toLowerCase())
}

const allowed =
  'a path such as "/v1/reports/:id", methods in front such as "GET" or "GET|POST" when not all are meant; in it :name or * ' +
  'for one segment, ** for any number, %xx for characters such as ; ( ) { }; no . or .. or empty segment'

function invalid(value: unknown, path: string, rule = allowed): CatracaError {
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${rule}`, { path, value })
}
