import { type Duration, durationUs } from '../core/duration.ts'
import type { Shape } from './shape.ts'

/**
 * What a request over the limit is answered, tried in the order in which a policy lists it; the first that applies is
 * taken, and behind the last stands `reject`.
 *
 * - `queue`: waits for its turn at most `maxWait` in all, with a place of its own from the first moment.
 * - `stale`: a copy of an earlier answer to the same caller that is at most `maxAge` old. For GET and HEAD.
 * - `degrade`: passes at a cheaper `cost`; the handler answers with less.
 * - `accept`: 202; carried out later, and charged then. For methods that change something, in policies that are asked once
 *   the caller was verified; not for a credential that is not valid.
 * - `mark`: passes uncounted, and the service is told.
 * - `reject`: 429, or 503 where everybody together asks for too much.
 */
export type OverflowEntry =
  | 'reject'
  | 'mark'
  | 'accept'
  | { queue: { maxWait: Duration; maxWaiting?: number } }
  | { stale: { maxAge: Duration } }
  | { degrade: { cost: number } }

/** One entry of a list, ready for use. */
export type Strategy =
  | { readonly kind: 'queue'; readonly maxWaitUs: number; readonly maxWaiting: number }
  | { readonly kind: 'stale'; readonly maxAgeMs: number }
  | { readonly kind: 'degrade'; readonly cost: number }
  | { readonly kind: 'accept' | 'mark' | 'reject' }

/** How a request was answered: passed, in one of the ways above, or, `told`, by the guard itself (a status document). */
export type AnswerKind = 'pass' | Strategy['kind'] | 'told'
/** Every kind, for counters and checks. */
export const answerKinds: readonly AnswerKind[] = [
  'pass',
  'queue',
  'stale',
  'degrade',
  'accept',
  'mark',
  'reject',
  'told',
]

/** Requests of one policy that wait at the same time, where the document does not say. */
const defaultMaxWaiting = 1_000
/** The list of a policy that has none. */
export const rejectOnly: readonly Strategy[] = [{ kind: 'reject' }]

const forms = 'reject, mark, accept, or an object with one of queue, stale, degrade'

/** The form of a list in a document. */
export const overflowShape: Shape = {
  kind: 'list',
  min: 1,
  of: {
    kind: 'either',
    of: [
      { kind: 'choice', of: ['reject', 'mark', 'accept'], words: 'refuse, let pass and tell the service, do it later' },
      {
        kind: 'object',
        required: [],
        words: 'one of queue, stale, degrade',
        keys: {
          queue: {
            kind: 'object',
            required: ['maxWait'],
            words: 'wait for a turn; of rules other than buckets only in memory',
            keys: {
              maxWait: { kind: 'duration', words: 'the longest wait, from 1ms to 1m; 50ms to 200ms absorb a burst' },
              maxWaiting: {
                kind: 'integer',
                unit: 'requests',
                min: 1,
                max: 1_000_000,
                default: defaultMaxWaiting,
                words: 'requests of the policy that wait at the same time in a process',
              },
            },
          },
          stale: {
            kind: 'object',
            required: ['maxAge'],
            words: 'a copy of an earlier answer, for GET and HEAD',
            keys: { maxAge: { kind: 'duration', words: 'how old the copy may be' } },
          },
          degrade: {
            kind: 'object',
            required: ['cost'],
            words: 'pass at a cheaper cost; the handler answers with less',
            keys: {
              cost: {
                kind: 'integer',
                unit: 'units',
                min: 1,
                max: Number.MAX_SAFE_INTEGER,
                words: 'units charged instead of the cost of the policy, fewer than that',
              },
            },
          },
        },
      },
    ],
    words: forms,
  },
  words: 'what a request over the limit is answered, tried in this order; behind the last stands reject',
}

/** A problem of an entry: where in it, the value, and what is wrong and allowed. */
type Wrong = (place: readonly (string | number)[], value: unknown, allowed: string) => void

/** Reads a list whose shape is right; what makes no sense is told to `wrong`. */
export function readOverflow(entries: readonly OverflowEntry[] | undefined, cost: number, wrong: Wrong): Strategy[] {
  const list: Strategy[] = []
  for (const [at, entry] of (entries ?? []).entries()) {
    const strategy = readEntry(entry, at, cost, wrong)
    if (strategy === undefined) continue
    if (list.some(({ kind }) => kind === strategy.kind)) wrong([at], strategy.kind, 'each answer once')
    else if (list.at(-1)?.kind === 'reject') wrong([at], strategy.kind, 'nothing behind reject, which always applies')
    else if (list.at(-1)?.kind === 'mark') {
      if (strategy.kind !== 'reject') wrong([at], strategy.kind, 'nothing but reject behind mark')
    }
    list.push(strategy)
  }
  if (list.at(-1)?.kind !== 'reject') list.push({ kind: 'reject' })
  return list
}

function readEntry(entry: OverflowEntry, at: number, cost: number, wrong: Wrong): Strategy | undefined {
  if (typeof entry === 'string') return { kind: entry }
  const names = Object.keys(entry)
  if (names.length !== 1) {
    wrong([at], entry, forms)
    return undefined
  }
  if ('queue' in entry) {
    const { maxWait, maxWaiting = defaultMaxWaiting } = entry.queue
    const maxWaitUs = durationUs(maxWait, 'maxWait')
    if (maxWaitUs < 1_000 || maxWaitUs > 60_000_000) wrong([at, 'queue', 'maxWait'], maxWait, 'from 1ms to 1m')
    return { kind: 'queue', maxWaitUs, maxWaiting }
  }
  if ('stale' in entry) return { kind: 'stale', maxAgeMs: durationUs(entry.stale.maxAge, 'maxAge') / 1_000 }
  const { degrade } = entry
  if (degrade.cost >= cost) {
    wrong([at, 'degrade', 'cost'], degrade.cost, `fewer than the ${cost} that a request of the policy costs`)
  }
  return { kind: 'degrade', cost: degrade.cost }
}
