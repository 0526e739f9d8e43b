import type { Decision } from '../core/decision.ts'
import { ceilDiv } from '../core/integer.ts'
import { maxInteger } from '../fields/structured.ts'
import { isLimited, legacyFields, type PolicyFields } from './limit-fields.ts'

/**
 * Every form of the header fields that say what the limit is. `list` forms tell all policies, the tightest first; the
 * others have room for one, the tightest. Reset and t count seconds from now, rounded up, except where it says epoch.
 */
export const dialects = {
  ietf: { names: ['RateLimit-Policy', 'RateLimit'], words: 'structured fields of the IETF draft, 08 to 11' },
  legacy: {
    names: ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'RateLimit-Policy'],
    words: 'separate fields of the drafts up to 06; beside `ietf`, RateLimit-Policy is that of `ietf`',
  },
  'x-ratelimit': {
    names: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
    words: 'the older fields, reset in seconds from now',
  },
  'x-ratelimit-epoch': {
    names: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
    words: 'the same, reset in seconds since 1970',
  },
  none: { names: [], words: 'no such fields; refusals still say Retry-After' },
} as const satisfies Record<string, { names: readonly string[]; words: string }>

/**
 * A form of the header fields that say what the limit is.
 *
 * - `ietf`: `RateLimit-Policy` and `RateLimit`, structured fields of the IETF draft (08 to 11).
 * - `legacy`: `RateLimit-Limit`, `-Remaining` and `-Reset` of the drafts up to 06, with `RateLimit-Policy: 600;w=60;burst=90`
 *   in their grammar; beside `ietf`, whose field of that name has another one, only that of `ietf` is sent.
 * - `x-ratelimit`: `X-RateLimit-Limit`, `-Remaining` and `-Reset`, in seconds from now.
 * - `x-ratelimit-epoch`: the same, `-Reset` in seconds since 1970. Not beside `x-ratelimit`.
 * - `none`: no such fields, and none beside it. Refusals still say `Retry-After`.
 */
export type Dialect = keyof typeof dialects

/** All fields that tell of limits, in lower case: what is taken off an answer that shared caches may keep. */
export const limitFieldNames: readonly string[] = [
  ...new Set(Object.values(dialects).flatMap(({ names }) => names.map((name) => name.toLowerCase()))),
]

/** Fields of answers that are lists, in lower case: where one was set before, the two are joined by a comma. */
export const listFieldNames: readonly string[] = [
  'ratelimit',
  'ratelimit-policy',
  'access-control-expose-headers',
  'vary',
]

/** Adds the three fields of one decision whose names begin alike. `epoch`: Reset is a time, not a span. */
export function addThree(prefix: 'RateLimit' | 'X-RateLimit', decision: Decision, epoch: boolean, to: string[]): void {
  const [limit, remaining, reset] = legacyFields(decision)
  const at = epoch ? resetAt(decision) : reset
  to.push(`${prefix}-Limit`, limit, `${prefix}-Remaining`, remaining, `${prefix}-Reset`, at)
}

/**
 * Seconds since 1970 at which Reset points. Rounded up as a whole: the time of the decision and the span, rounded apart,
 * could come out before the request passes or a second late.
 */
function resetAt(decision: Decision): string {
  const { nowUs, waitUs } = decision
  const us = isLimited(decision) && waitUs !== Infinity ? waitUs : Math.ceil(decision.resetAfterMs * 1_000)
  return String(Math.min(ceilDiv(nowUs + us, 1_000_000), maxInteger))
}

/** Adds the policies of the drafts up to 06, for those rules whose window it can say. */
export function addLegacyPolicy(told: readonly PolicyFields[], to: string[]): void {
  let text = ''
  for (const { legacyPolicy } of told) {
    if (legacyPolicy !== undefined) text += text === '' ? legacyPolicy : `, ${legacyPolicy}`
  }
  if (text !== '') to.push('RateLimit-Policy', text)
}
