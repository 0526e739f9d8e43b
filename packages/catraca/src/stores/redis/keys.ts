import { sha256 } from '../../core/sha256.ts'
import { storedKey } from '../key.ts'

/** Grows when states are stored in another form, so that two versions never read each other's. */
const format = 1

/**
 * The name of a state in Redis: prefix, `{tag}`, format, then limiter, policy and partition key, each after its length, so
 * that no two differ only by where a part ends. The policy's numbers and the plan are not in it: an edit mints no budget.
 *
 * The tag is 32 bits of hash of the partition key, or of what policies nested under one tag share; keys of one tag are
 * on one node of a cluster.
 */
export class KeyNames {
  private readonly before: string
  private readonly after: string

  constructor(prefix: string, limiter: string, policy: string) {
    this.before = `${prefix}:{`
    this.after = `}${format}${part(limiter)}${part(policy)}`
  }

  /** Cost: about 2 ns per character. */
  nameOf(key: string, tag: string | undefined): string {
    const stored = wellFormed(key) ? storedKey(key) : `\u0000${sha256(key)}`
    return `${this.before}${hash(tag ?? key)}${this.after}${stored.length}:${stored}`
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

/** Halves of characters have no form in UTF-8: two keys that differ in them alone would be one. */
function wellFormed(key: string): boolean {
  return (key as string & { isWellFormed?: () => boolean }).isWellFormed?.() ?? !/[\ud800-\udfff]/.test(key)
}

/** FNV-1a of the UTF-16 units. */
function hash(text: string): string {
  let state = 0x811c9dc5
  for (let index = 0; index < text.length; index++) state = Math.imul(state ^ text.charCodeAt(index), 0x01000193)
  return (state >>> 0).toString(36)
}
