import type { Decision } from 'catraca'
import * as fc from 'fast-check'
import { Engine, us } from './engine.ts'
import type { Specimen } from './subjects.ts'

/** Where the next request falls, seen from the last decision. */
export type Move = 'same' | 'retry' | 'reset' | 'edge' | 'short' | 'long'
/** What it costs, seen from the last decision. */
export type Cost = 'one' | 'two' | 'share' | 'rest' | 'more than the rest' | 'all' | 'more than all'

export interface Step {
  readonly move: Move
  /** −1, 0 or 1: that many µs off the instant meant. */
  readonly off: number
  /** Thousandths. */
  readonly pause: number
  readonly cost: Cost
  readonly share: number
  /** By how much the clock is set at this step. */
  readonly jumpUs: number
}

export interface History {
  /** Where in the range of the specimen it starts, as a fraction. */
  readonly start: number
  readonly steps: readonly Step[]
}

/** A request at an instant, in µs. */
export interface Arrival {
  readonly at: number
  readonly cost: number
}

const second = 1_000_000
const sizes = [
  1,
  1_000,
  second,
  30 * second,
  60 * second - 1,
  60 * second,
  60 * second + 1,
  61 * second,
  3_600 * second,
]
/** A clock that is set now and then, at the edge of what is forgiven and far beyond. */
const jumps = fc.oneof(
  { arbitrary: fc.constant(0), weight: 12 },
  { arbitrary: fc.constantFrom(...sizes, ...sizes.map((size) => -size)), weight: 2 },
  { arbitrary: fc.integer({ min: -40 * 86_400, max: 40 * 86_400 }).map((seconds) => seconds * second), weight: 1 },
)

const step = (jumpUs: fc.Arbitrary<number>): fc.Arbitrary<Step> =>
  fc.record({
    move: fc.constantFrom(
      'same',
      'same',
      'same',
      'same',
      'retry',
      'retry',
      'retry',
      'reset',
      'edge',
      'edge',
      'short',
      'short',
      'long',
    ),
    off: fc.constantFrom(0, 0, -1, 1),
    pause: fc.integer({ min: 0, max: 1_000 }),
    cost: fc.constantFrom(
      'one',
      'one',
      'one',
      'two',
      'share',
      'rest',
      'rest',
      'more than the rest',
      'all',
      'more than all',
    ),
    share: fc.integer({ min: 1, max: 1_000 }),
    jumpUs,
  })

export const histories = (maxLength: number, clock: 'steady' | 'set' = 'steady'): fc.Arbitrary<History> =>
  fc.record({
    start: fc.double({ min: 0, max: 1, noNaN: true }),
    steps: fc.array(step(clock === 'set' ? jumps : fc.constant(0)), { minLength: 1, maxLength, size: 'max' }),
  })

export const startOf = ({ from, to }: Specimen, { start }: History): number => Math.floor(from + (to - from) * start)

/** Up to here, in 2041, milliseconds with a fraction name every µs exactly. */
export const lastUs = 2 ** 51

/** The instant a step means, never before `now` unless the clock is set. */
export function instantOf(specimen: Specimen, step: Step, now: number, last: Decision | undefined): number {
  const instant = Math.max(now, meant(specimen, step, now, last) + step.off) + step.jumpUs
  return instant < lastUs ? instant : now
}

function meant(
  { edgeAfter, spanUs }: Specimen,
  { move, pause }: Step,
  now: number,
  last: Decision | undefined,
): number {
  const retryMs = last?.retryAfterMs ?? 0
  const after: Record<Move, number> = {
    same: 0,
    retry: Number.isFinite(retryMs) ? us(retryMs) : 0,
    reset: us(last?.resetAfterMs ?? 0),
    edge: move === 'edge' ? edgeAfter(now) - now : 0,
    short: Math.floor((spanUs * pause) / 10_000),
    long: Math.floor((spanUs * pause) / 400),
  }
  return now + after[move]
}

export function costOf({ capacity }: Specimen, { cost, share }: Step, last: Decision | undefined): number {
  const rest = last?.remaining ?? capacity
  const units: Record<Cost, number> = {
    one: 1,
    two: 2,
    share: Math.floor((capacity * share) / 1_000),
    rest,
    'more than the rest': rest + 1,
    all: capacity,
    'more than all': capacity + 1,
  }
  return Math.max(1, units[cost])
}

/** Plays a history: `ask` answers each request, and the next one is meant in view of the answer. */
export function play(specimen: Specimen, history: History, ask: (at: number, cost: number) => Decision): void {
  let now = startOf(specimen, history)
  let last: Decision | undefined
  for (const step of history.steps) {
    now = instantOf(specimen, step, now, last)
    last = ask(now, costOf(specimen, step, last))
  }
}

/** The requests of a history as one limiter makes them fall. */
export function arrivalsOf(specimen: Specimen, history: History): Arrival[] {
  const engine = new Engine(specimen.rule)
  const arrivals: Arrival[] = []
  play(specimen, history, (at, cost) => {
    arrivals.push({ at, cost })
    return engine.take(at, cost)
  })
  return arrivals
}
