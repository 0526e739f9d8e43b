import { sha256 } from '../../core/sha256.ts'
import { storedKey } from '../key.ts'

/** Grows when states are stored in another form, so that two versions never read each other's. */
const format = 1

/** Longer tags, in UTF-16 units, stand as a hash. */
const maxTag = 128

/**
 * The name of a state in Redis: prefix, `{tag}`, format, then limiter and policy, each after its length, so that no two
 * differ only by where a part ends. The policy's numbers and the plan are not in it: an edit mints no budget.
 *
 * The tag is the partition key itself; where it is another, or the key cannot stand in braces, the key follows at the end.
 * Keys of one tag are on one node of a cluster.
 */
export class KeyNames {
  private readonly before: string
  private readonly after: string

  constructor(prefix: string, limiter: string, policy: string) {
    this.before = `${prefix}:{`
    this.after = `}${format}${part(limiter)}${part(policy)}`
  }

  nameOf(key: string, tag: string | undefined): string {
    if (tag === undefined && fits(key)) return this.before + key + this.after
    const stored = isWellFormed(key) ? storedKey(key) : hashed(key)
    const inBraces = tag ?? key
    return `${this.before}${fits(inBraces) ? inBraces : hashed(inBraces)}${this.after}${part(stored)}`
  }
}

/** The name of something that belongs to the store as a whole. */
export function storeKey(prefix: string, name: string): string {
  return `${prefix}:{catraca}${format}${part(name)}`
}

/** True where two tags are sure to be on one node. */
export function sameTag(tags: readonly string[]): boolean {
  for (const tag of tags) if (tag !== tags[0]) return false
  return true
}

function part(text: string): string {
  return `${text.length}:${text}`
}

/** True for a text that can stand in braces as it is. */
function fits(text: string): boolean {
  const { length } = text
  return length > 0 && length <= maxTag && !text.includes('}') && text.charCodeAt(0) !== 0 && isWellFormed(text)
}

/** Halves of characters have no form in UTF-8: two keys that differ in them alone would be one. */
function isWellFormed(key: string): boolean {
  return (key as string & { isWellFormed?: () => boolean }).isWellFormed?.() ?? !/[\ud800-\udfff]/.test(key)
}

function hashed(text: string): string {
  return `\u0000${sha256(text)}`
}
