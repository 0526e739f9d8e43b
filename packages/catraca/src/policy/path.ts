import { percentDecoded, segmentEscaped } from './percent.ts'

/**
 * The path of a request as routes see it: `/`, or segments with a `/` before each, decoded and in lower case; no empty
 * segment, no dot segment and no slash at the end.
 *
 * Servers do not agree on some targets: is `%2f` a separator or a character, does `/x/../login` reach `/login`? Such a
 * target has several readings, first the one that separates and resolves all. A character that is not what it looks like
 * in a reading (a slash inside a segment, a dot segment that counts as text) is percent-encoded in it.
 */
export type NormalPath = string | readonly string[]

const slash = 47
const backslash = 92

/**
 * The path of a raw request target: `/path?query`, or absolute as in `http://host/path`. Query and fragment are cut off.
 * Never throws. Cost: one pass over the characters of a path that needs nothing done; some µs for others, at most about
 * ten passes.
 *
 * @param caseSensitive Upper and lower case are told apart. Default false.
 */
export function normalPath(target: string, caseSensitive = false): NormalPath {
  const end = plainEnd(target, caseSensitive)
  if (end === -1) return readingsOf(target, caseSensitive)
  return end === target.length ? target : target.slice(0, end)
}

/** Where the path ends of a target that is normal as it stands; -1 when there is more to do than to cut it. */
function plainEnd(target: string, caseSensitive: boolean): number {
  if (target.charCodeAt(0) !== slash) return -1
  let before = 0
  let at = 0
  for (; at < target.length; at++) {
    const code = target.charCodeAt(at)
    if (code === 63) break // ?
    if (before === slash && (code === slash || code === 46)) return -1
    if (isSpecial(code) || (!caseSensitive && code >= 65 && code <= 90)) return -1
    before = code
  }
  return before === slash && at > 1 ? at - 1 : at
}

/** `#`, `%`, `;`, `\` and all beyond ASCII. */
function isSpecial(code: number): boolean {
  return code === 35 || code === 37 || code === 59 || code === backslash || code > 126
}

/** What one kind of server does with a path. */
interface Reader {
  /** A backslash separates. */
  readonly backslash: boolean
  /** So do encoded slashes and backslashes. */
  readonly encoded: boolean
  /** Dot segments are resolved, encoded ones too, never above the root. */
  readonly dots: boolean
  /** Slashes are merged. */
  readonly merge: boolean
}

/** Decodes before it separates and resolves, as nginx does. */
const strict: Reader = { backslash: true, encoded: true, dots: true, merge: true }
/** The same, but with encoded separators as text, as the parameters of most routers have them. */
const decoding: Reader = { backslash: false, encoded: false, dots: true, merge: true }
/** The URL standard: `new URL(target, base)`. */
const url: Reader = { backslash: true, encoded: false, dots: true, merge: true }
/** Takes the path as it was sent, as Express and Fastify do. */
const plain: Reader = { backslash: false, encoded: false, dots: false, merge: false }

const ambiguous = /[\\]|%2f|%5c|%2e|\/\.|\/\//i

function readingsOf(target: string, caseSensitive: boolean): NormalPath {
  const readings = new Set<string>()
  for (const start of pathsOf(target)) {
    const end = start.search(/[?#]/)
    const path = end === -1 ? start : start.slice(0, end)
    readings.add(read(path, strict, caseSensitive))
    if (ambiguous.test(path)) {
      for (const reader of [decoding, url, plain]) readings.add(read(path, reader, caseSensitive))
    }
    // Some servers end the path at a semicolon (Fastify 4), some only at a question mark.
    const semicolon = path.indexOf(';')
    if (semicolon !== -1) readings.add(read(path.slice(0, semicolon), plain, caseSensitive))
    if (end !== -1 && start[end] === '#') readings.add(read(start.replace(/\?.*$/s, ''), plain, caseSensitive))
  }
  const [first = '/', ...more] = readings
  return more.length === 0 ? first : [first, ...more]
}

/** What can be the path of a target, with its query. A host may stand in front, also without a scheme (`//host/path`). */
function pathsOf(target: string): string[] {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(target)?.[0].length
  if (scheme !== undefined) {
    const bySlash = target.indexOf('/', scheme)
    return [afterHost(target, scheme), bySlash === -1 ? '/' : target.slice(bySlash)]
  }
  return /^[/\\]{2}/.test(target) ? [target, afterHost(target, 2)] : [target]
}

/** The rest of a target whose host begins at `at` or after more slashes. */
function afterHost(target: string, at: number): string {
  const host = target.slice(at).replace(/^[/\\]+/, '')
  const end = host.search(/[/\\?#]/)
  return end === -1 ? '/' : host.slice(end)
}

function read(path: string, reader: Reader, caseSensitive: boolean): string {
  const segments: string[] = []
  const raw = (reader.backslash ? path.replaceAll('\\', '/') : path).split('/')
  if (raw[0] === '') raw.shift()
  for (const part of raw) {
    const decoded = percentDecoded(part)
    const text = caseSensitive ? decoded : decoded.toLowerCase()
    if (reader.encoded) for (const piece of text.split(/[/\\]/)) push(segments, piece, reader)
    else push(segments, text, reader)
  }
  while (segments.at(-1) === '') segments.pop()
  return `/${segments.join('/')}`
}

function push(segments: string[], segment: string, { dots, merge }: Reader): void {
  if ((segment === '' && merge) || (segment === '.' && dots)) return
  if (segment === '..' && dots) segments.pop()
  else segments.push(segmentEscaped(segment))
}
