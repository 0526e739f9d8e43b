import { sha256 } from '../core/sha256.ts'

/** Longer keys, in UTF-16 units, are stored as a hash. */
const maxLength = 128
/** Begins the stored form of a hashed key. */
const hashMark = '\u0000'
/** Length of that form. A key that looks just like one is hashed too, so the two never meet. */
const hashedLength = 65

/** The form in which a store keeps a partition key: the key itself, or a SHA-256 of a long one. */
export function storedKey(key: string): string {
  const { length } = key
  return length > maxLength || (length === hashedLength && key.charCodeAt(0) === 0) ? hashMark + sha256(key) : key
}

const codes: number[] = []

/**
 * The same text in memory of its own. A text cut from a larger one may point into it and would keep all of it alive;
 * below 13 units the engine copies by itself.
 */
export function flatCopy(text: string): string {
  if (text.length < 13) return text
  codes.length = text.length
  for (let index = 0; index < text.length; index++) codes[index] = text.charCodeAt(index)
  return String.fromCharCode.apply(null, codes)
}
