/**
 * Round constants: the first 32 bits of the fractions of the cube roots of the first 64 primes, and of the square roots
 * of the first 8 for the start (FIPS 180-4). Computed at the first long key, not at import.
 */
const k = new Int32Array(64)
const start = new Int32Array(8)

function prepare(): void {
  let found = 0
  for (let candidate = 2; found < 64; candidate++) {
    let prime = true
    for (let factor = 2; factor * factor <= candidate; factor++) if (candidate % factor === 0) prime = false
    if (!prime) continue
    if (found < 8) start[found] = fraction(candidate ** (1 / 2))
    k[found++] = fraction(candidate ** (1 / 3))
  }
}

function fraction(root: number): number {
  return ((root - Math.floor(root)) * 2 ** 32) | 0
}

/**
 * SHA-256 of a text taken as UTF-16 units, high byte first, as 64 hexadecimal digits. About 20 ns per byte.
 * It stands for keys too long to keep; being a cryptographic hash, no caller can make two long keys meet.
 */
export function sha256(text: string): string {
  if (start[0] === 0) prepare()
  const bytes = text.length * 2
  const words = new Int32Array((((bytes + 8) >> 6) + 1) * 16)
  for (let index = 0; index < text.length; index++) {
    words[index >> 1] = (words[index >> 1] as number) | (text.charCodeAt(index) << (index & 1 ? 0 : 16))
  }
  words[bytes >> 2] = (words[bytes >> 2] as number) | (0x80 << (24 - (bytes & 3) * 8))
  words[words.length - 2] = Math.floor((bytes * 8) / 2 ** 32)
  words[words.length - 1] = (bytes * 8) | 0

  const hash = Int32Array.from(start)
  const schedule = new Int32Array(64)
  for (let block = 0; block < words.length; block += 16) compress(hash, schedule, words, block)
  let hex = ''
  for (const word of hash) hex += (word >>> 0).toString(16).padStart(8, '0')
  return hex
}

function compress(hash: Int32Array, schedule: Int32Array, words: Int32Array, block: number): void {
  for (let t = 0; t < 64; t++) {
    if (t < 16) schedule[t] = words[block + t] as number
    else {
      const a = schedule[t - 15] as number
      const b = schedule[t - 2] as number
      const small = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)
      const large = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10)
      schedule[t] = ((schedule[t - 16] as number) + small + (schedule[t - 7] as number) + large) | 0
    }
  }
  let [a, b, c, d, e, f, g, h] = hash as unknown as [number, number, number, number, number, number, number, number]
  for (let t = 0; t < 64; t++) {
    const choice = (e & f) ^ (~e & g)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    const first =
      (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + (k[t] as number) + (schedule[t] as number)) | 0
    const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority) | 0
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + second) | 0
  }
  const add = [a, b, c, d, e, f, g, h]
  for (let index = 0; index < 8; index++) hash[index] = ((hash[index] as number) + (add[index] as number)) | 0
}

function rotate(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by))
}

const blockUnits = 32
/** The last secret and its inner and outer pads: a program has one. */
let pads: { secret: string; inner: string; outer: string } | undefined

/**
 * HMAC-SHA-256 (RFC 2104) of a text, both taken as {@link sha256} takes them, as 64 hexadecimal digits. The key is the
 * hash of the secret, so secrets of any length do. Without the secret nobody can try values until the hashes meet.
 */
export function hmacSha256(secret: string, text: string): string {
  if (pads?.secret !== secret) {
    const key = unitsOf(sha256(secret)).padEnd(blockUnits, '\u0000')
    pads = { secret, inner: mixed(key, 0x3636), outer: mixed(key, 0x5c5c) }
  }
  return sha256(pads.outer + unitsOf(sha256(pads.inner + text)))
}

/** Hexadecimal digits as UTF-16 units, four each. */
function unitsOf(hex: string): string {
  return hex.replaceAll(/.{4}/g, (digits) => String.fromCharCode(Number.parseInt(digits, 16)))
}

function mixed(key: string, pad: number): string {
  let text = ''
  for (let at = 0; at < blockUnits; at++) text += String.fromCharCode(key.charCodeAt(at) ^ pad)
  return text
}
