import type { Mode, ModeEntry } from './document.ts'
import type { Facts } from './facts.ts'
import { keyOf } from './key-part.ts'
import type { Policy } from './policy.ts'

/** Who is in where a policy is enforced for part of its callers. */
export interface Split {
  readonly percent: number
  readonly clients: ReadonlySet<string>
  /** What counts for the others. */
  readonly otherwise: 'off' | 'observe'
}

/** What the document says about the mode, ready for use: the mode, and for a part of the callers who is in. */
export function readMode(entry: Mode | ModeEntry = 'enforce'): { mode: Mode; split: Split | undefined } {
  if (typeof entry === 'string') return { mode: entry, split: undefined }
  const { percent = 0, clients = [] } = entry.enforce
  return { mode: 'enforce', split: { percent, clients: new Set(clients), otherwise: entry.else ?? 'observe' } }
}

/**
 * The mode of a policy for one request. Who is in is a matter of the key alone, so a caller is always in or always out,
 * on every instance; who is in at 10 % is in at 20 %.
 */
export function modeFor(policy: Policy, facts: Facts): Mode {
  const { split, mode } = policy
  if (split === undefined) return mode
  const { client } = facts.identity ?? {}
  if (client !== undefined && split.clients.has(client)) return 'enforce'
  if (split.percent === 0) return split.otherwise
  return placeOf(keyOf(policy.parts, facts)) < split.percent ? 'enforce' : split.otherwise
}

/** A place from 0 to 99 for a key: FNV-1a, its bits mixed, because similar names differ in their last letters. */
function placeOf(key: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return Math.floor((((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32) * 100)
}
