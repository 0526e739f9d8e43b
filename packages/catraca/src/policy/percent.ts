/**
 * Decodes percent-escapes of UTF-8 once. What is no escape, or escapes bytes that are no UTF-8 (overlong forms and
 * surrogates too), stays as it is. Never throws; one pass, since callers choose the text.
 */
export function percentDecoded(text: string): string {
  let at = text.indexOf('%')
  if (at === -1) return text
  let decoded = ''
  let from = 0
  while (at !== -1) {
    const point = escapedPoint(text, at)
    if (point === -1) at++
    else {
      decoded += text.slice(from, at) + String.fromCodePoint(point)
      at += 3 * bytesOf(point)
      from = at
    }
    at = text.indexOf('%', at)
  }
  return decoded + text.slice(from)
}

/** Smallest code points of one to four bytes. */
const firstOf = [0, 0x80, 0x800, 0x1_0000] as const

function bytesOf(point: number): number {
  if (point < 0x80) return 1
  if (point < 0x800) return 2
  return point < 0x1_0000 ? 3 : 4
}

/** The code point that the escapes from `at` on stand for, or -1. */
function escapedPoint(text: string, at: number): number {
  const lead = escapedByte(text, at)
  if (lead < 0x80) return lead
  if (lead < 0xc2 || lead > 0xf4) return -1
  const bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  let point = lead & (0x7f >> bytes)
  for (let index = 1; index < bytes; index++) {
    const byte = escapedByte(text, at + 3 * index)
    if ((byte & 0xc0) !== 0x80) return -1
    point = (point << 6) | (byte & 0x3f)
  }
  const isSurrogate = point >= 0xd800 && point <= 0xdfff
  return point < (firstOf[bytes - 1] as number) || point > 0x10_ffff || isSurrogate ? -1 : point
}

/** The byte of `%xx`, or -1. */
function escapedByte(text: string, at: number): number {
  const high = text.charCodeAt(at) === 37 ? digit(text.charCodeAt(at + 1)) : -1
  const low = digit(text.charCodeAt(at + 2))
  return high === -1 || low === -1 ? -1 : high * 16 + low
}

function digit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  const letter = code | 32
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}

/**
 * A decoded segment as it stands in a normal path: what would be read otherwise there is escaped again, in lower case, so
 * that a normal path is its own normal path.
 */
export function segmentEscaped(segment: string): string {
  if (segment === '.') return '%2e'
  if (segment === '..') return '%2e%2e'
  return segment.replaceAll(/[%/\\?#;]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
}
