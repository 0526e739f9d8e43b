import type { LeaseTerms } from '../../core/decision.ts'
import type { Rule } from '../../core/rule.ts'
import { windowUsOf } from '../../stores/lease/terms.ts'
import type { Chance } from './chance.ts'

/** What the world is like in one run. Times in µs. */
export interface Profile {
  /** Nothing gets lost, nobody fails or pauses, every answer comes in time: what is left at the end is known exactly. */
  readonly calm: boolean
  /** True where all of the run lies in one window, so that the centre can be asked at the end for all that was used. */
  readonly oneWindow: boolean
  readonly startUs: number
  /** After it nobody asks any more; then leases end and go back. */
  readonly busyUs: number
  readonly endUs: number
  /** Things happen at multiples of it. */
  readonly gridUs: number
  /** The longest way of a message. */
  readonly delayUs: number
  /** Share of messages that get lost. */
  readonly loss: number
  /** An answer that takes longer is not waited for. */
  readonly deadlineUs: number
  readonly lookUs: number
  /** Per instance, µs per second. */
  readonly drifts: readonly number[]
  /** Mean time between two callers. */
  readonly gapUs: number
  /** Callers that arrive at once, at most. */
  readonly crowd: number
  /** The highest cost of most callers. */
  readonly cost: number
  /** Callers come in waves: enough for a block, nobody, then more than there is. */
  readonly tides: boolean
  /** Shares of callers that leave while they wait, and of admissions that are undone. */
  readonly leaving: number
  readonly undone: number
  /** After it, spread over the length of a flood, admissions are undone; undefined: each after a time of its own. */
  readonly undoUs: number | undefined
  /** Between the beginning of a wave and its flood, and how long that lasts. */
  readonly quietUs: number
  readonly floodUs: number
  /** Share of callers that ask for more than a block. */
  readonly large: number
}

/** A whole number of hours since the epoch, so that windows of clocks begin here. */
const epochUs = 472_222 * 3_600_000_000
/** A notice of a lost memory takes so long at most. */
export const noticeUs = 1_000_000

export function drawProfile(rule: Rule, terms: LeaseTerms, instances: number, chance: Chance): Profile {
  const { ttlUs, block } = terms
  const windowUs = windowUsOf(rule)
  const calm = chance.passes(0.35)
  const gridUs = chance.pick([1, 1_000, 1_000, 10_000, 10_000])
  const lookUs = Math.floor(ttlUs / 5)
  const busyUs = roundTo(gridUs, ttlUs * (1 + 4 * chance.share()) + Math.min(windowUs, 2 * ttlUs) * chance.share())
  const deadlineUs = roundTo(gridUs, Math.min(200_000, ttlUs / chance.pick([2, 4, 8])))
  const longest = calm ? deadlineUs / 2 - gridUs : deadlineUs * 1.2
  const delayUs = chance.passes(0.25) ? 0 : roundTo(gridUs, longest * chance.share() * chance.pick([0.1, 0.5, 1]))
  // The last pauses, two lease times after the last use, and the last looks and messages.
  const afterUs = 5 * ttlUs + 4 * lookUs + 4 * deadlineUs + noticeUs
  const runUs = busyUs + afterUs
  const oneWindow = calm && windowUs > runUs
  const lead = oneWindow ? gridUs * chance.between(0, 3) : roundTo(gridUs, windowUs * chance.share())
  const steady = chance.passes(0.5)
  const quietUs = roundTo(gridUs, ttlUs * chance.pick([0.2, 1]) * chance.share())
  return {
    calm,
    oneWindow,
    startUs: epochUs + lead,
    busyUs,
    endUs: epochUs + lead + runUs,
    gridUs,
    delayUs,
    loss: calm || chance.passes(0.4) ? 0 : 0.25 * chance.share(),
    deadlineUs,
    lookUs,
    drifts: Array.from({ length: instances }, () => (steady ? 0 : chance.between(-500, 500))),
    gapUs: Math.max(gridUs, Math.floor(busyUs / chance.between(20, 150))),
    crowd: chance.pick([1, 3, Math.min(40, rule.limit)]),
    cost: chance.pick([1, 1, Math.ceil(block / 2), block]),
    tides: chance.passes(0.5),
    leaving: chance.pick([0, 0.1, 0.5, 0.9]),
    undone: chance.pick([0, 0.1, 0.5, 0.9]),
    undoUs: chance.passes(0.5) ? undefined : quietUs,
    quietUs,
    floodUs: chance.pick([0, 3 * gridUs, ttlUs * 0.2, Math.min(ttlUs, windowUs) * 1.2]),
    large: chance.pick([0, 0, 0.1]),
  }
}

/** Not below one step of the grid. */
export function roundTo(gridUs: number, us: number): number {
  return Math.max(1, Math.floor(us / gridUs)) * gridUs
}
