import type { Decision } from 'catraca'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Charges, type Owed } from '../model/charges.ts'
import { Engine, us } from './support/engine.ts'
import { numRuns } from './support/every-rule.ts'
import { costOf, type History, histories, instantOf, type Step, startOf } from './support/histories.ts'
import { mostStarting, mostWithin, seenAt, spansOf } from './support/spans.ts'
import { type Setting, type Specimen, type Subject, subjects } from './support/subjects.ts'

/** After each step, which earlier charge is given back (counted from the last) and how many thousandths of it. */
interface Return {
  readonly which: number
  readonly share: number
}

const returns = fc.array(
  fc.option(fc.record({ which: fc.oneof(fc.nat(2), fc.nat(8)), share: fc.oneof(fc.constant(1_000), fc.nat(1_000)) }), {
    nil: undefined,
    freq: 2,
  }),
  { minLength: 25, maxLength: 25 },
)

interface Charge {
  readonly at: number
  readonly units: number
  readonly decision: Decision
  readonly settled: boolean
}

interface Given {
  readonly charge: Charge
  readonly now: number
  readonly units: number
  readonly came: number
  readonly before: number
  readonly after: number
  /** True when this charge was asked back before. */
  readonly again: boolean
}

/** Plays a history with refunds in it: the charges as they are at the end. */
function playWithRefunds(
  specimen: Specimen,
  history: History,
  list: readonly (Return | undefined)[],
  seen: (given: Given) => void,
  charged: (decision: Decision, now: number) => void = () => {},
): Charge[] {
  const engine = new Engine(specimen.rule)
  const charges: Charge[] = []
  let now = startOf(specimen, history)
  let last: Decision | undefined
  history.steps.forEach((step, index) => {
    now = instantOf(specimen, step, now, last)
    const cost = costOf(specimen, step, last)
    last = engine.take(now, cost)
    if (last.allowed) charges.push({ at: now, units: cost, decision: last, settled: false })
    if (last.allowed) charged(last, now)
    const refund = list[index]
    if (refund === undefined || charges.length === 0) return
    const place = Math.max(0, charges.length - 1 - refund.which)
    const charge = charges[place] as Charge
    const units = Math.max(1, Math.round((charge.decision.charged * refund.share) / 1_000))
    const before = engine.peek(now, 1).remaining
    const came = engine.limiter.refund(charge.decision, units)
    const after = engine.peek(now, 1).remaining
    seen({ charge, now, units, came, before, after, again: charge.settled })
    charges[place] = { ...charge, units: charge.units - came, settled: true }
    last = engine.peek(now, 1)
  })
  return charges
}

type Example = [Setting, History, (Return | undefined)[]]

function everyRefund(
  title: string,
  only: (subject: Subject) => boolean,
  holds: (specimen: Specimen, setting: Setting, history: History, list: (Return | undefined)[]) => void,
  examples: Readonly<Record<string, Example[]>> = {},
): void {
  for (const subject of subjects.filter(only)) {
    test(`${title}: ${subject.name}`, () => {
      fc.assert(
        fc.property(subject.settings, histories(25), returns, (setting, history, list) =>
          holds(subject.specimen(setting), setting, history, list),
        ),
        { numRuns, examples: examples[subject.name] ?? [] },
      )
    })
  }
}

const steps = (...list: readonly (Pick<Step, 'move' | 'cost'> & Partial<Step>)[]): History => ({
  start: 0,
  steps: list.map((step) => ({ off: 0, pause: 0, share: 1, jumpUs: 0, ...step })),
})
const one = { move: 'same', cost: 'one' } as const
const all = (which: number): Return => ({ which, share: 1_000 })
const nothing = (count: number): undefined[] => Array.from({ length: count }, () => undefined)
const two: Setting = { limit: 1, windowUs: 1_000_000, capacity: 2, calendar: 0 }
const five: Setting = { ...two, capacity: 5 }
/** Of two charges the first is given back; the second between pays the other, which then comes back too. */
const paidMeanwhile: Example = [
  two,
  steps(one, one, { move: 'reset', cost: 'all' }, one),
  [undefined, all(1), all(1), undefined],
]
const nothingLeft: Example = [
  two,
  steps(one, one, { move: 'reset', cost: 'more than all' }),
  [undefined, all(1), all(0)],
]
/** Refunds that add up to more than 2^52 levels while a charge from before them still counts. */
const manyReturns: Example = [
  { limit: 999_983, windowUs: 2_592_000_000_000, capacity: 999_979, calendar: 0 },
  steps(
    one,
    one,
    one,
    one,
    { move: 'short', cost: 'all', pause: 1 },
    one,
    one,
    { move: 'retry', cost: 'one' },
    one,
    one,
    one,
    one,
    { move: 'long', cost: 'one', pause: 1 },
    one,
    { move: 'same', cost: 'all' },
    one,
    one,
    one,
    { move: 'reset', cost: 'all' },
    { move: 'same', cost: 'all' },
    { move: 'same', cost: 'rest' },
  ),
  [
    ...nothing(7),
    { which: 0, share: 0 },
    ...nothing(6),
    all(4),
    ...nothing(3),
    { which: 0, share: 741 },
    { which: 4, share: 0 },
  ],
]
const buckets = ['token bucket', 'gcra', 'leaky meter']
const forBuckets = (...examples: Example[]) => Object.fromEntries(buckets.map((name) => [name, examples]))

everyRefund(
  'what a log charged and did not give back stays within the bound',
  ({ name }) => name === 'sliding log',
  (specimen, _setting, history, list) => {
    const charges = playWithRefunds(specimen, history, list, () => {})
    for (const span of spansOf(specimen)) expect(mostWithin(charges, span)).toBeLessThanOrEqual(specimen.bound(span))
  },
)

everyRefund(
  'what a bucket charged and did not give back stays within the bound',
  ({ name }) => buckets.includes(name),
  (specimen, setting, history, list) => {
    const limit = BigInt(setting.limit)
    const windowUs = BigInt(setting.windowUs)
    const bucket = new Charges({ limit, windowUs })
    const kept = new Map<Decision, { at: number; owed: Owed; units: bigint }>()
    const charged = (decision: Decision, now: number): void => {
      const at = seenAt(specimen, now)
      // Parts of units have the window as denominator.
      kept.set(decision, {
        at,
        owed: bucket.charge(BigInt(at), decision.cost),
        units: BigInt(decision.cost) * windowUs,
      })
    }
    playWithRefunds(
      specimen,
      history,
      list,
      ({ charge, now, units, again }) => {
        const entry = kept.get(charge.decision)
        if (entry === undefined || again) return
        const { numerator, denominator } = bucket.refund(BigInt(seenAt(specimen, now)), entry.owed, units)
        entry.units -= (numerator * windowUs) / denominator
      },
      charged,
    )
    for (const span of spansOf(specimen)) {
      const bound = BigInt(setting.capacity) * windowUs + limit * span
      expect(mostWithin([...kept.values()], span)).toBeLessThanOrEqual(bound)
    }
  },
  forBuckets(paidMeanwhile, manyReturns),
)

everyRefund(
  'what leaves a queue never exceeds the rate, whatever was given back',
  ({ name }) => name === 'leaky queue',
  (specimen, _setting, history, list) => {
    const charges = playWithRefunds(specimen, history, list, () => {})
    const starts = charges
      .filter(({ decision, units }) => units === decision.charged)
      .map(({ at, units, decision }) => ({ at: at + us(decision.delayMs), units }))
    for (const span of spansOf(specimen)) {
      expect(mostStarting(starts, span)).toBeLessThanOrEqual(specimen.bound(span))
    }
  },
  { 'leaky queue': [[five, steps(one, one, one, one), [undefined, undefined, all(1), undefined]]] },
)

everyRefund(
  'a refund gives at most what was charged, once, and never above full',
  () => true,
  (specimen, _setting, history, list) => {
    playWithRefunds(specimen, history, list, ({ charge, units, came, before, after, again }) => {
      expect(came).toBeGreaterThanOrEqual(0)
      expect(came).toBeLessThanOrEqual(Math.min(units, charge.decision.charged))
      if (again) expect(came).toBe(0)
      expect(after).toBeLessThanOrEqual(specimen.rule.limit)
      expect(after - before).toBeGreaterThanOrEqual(came)
      // Parts of a unit that had drained already may round up to one more.
      expect(after - before).toBeLessThanOrEqual(came + 1)
    })
  },
  forBuckets(nothingLeft),
)

const windowed = [
  'fixed window by the clock',
  'fixed window with an offset',
  'fixed window from the first request',
  'sliding counter',
  'quota',
]

everyRefund(
  'a window that is over gives nothing back, and the one that goes on all of it',
  ({ name }) => windowed.includes(name),
  (specimen, _setting, history, list) => {
    playWithRefunds(specimen, history, list, ({ charge, now, units, came, again }) => {
      const end = specimen.aligned ? specimen.edgeAfter(charge.at) : charge.at + us(charge.decision.resetAfterMs)
      expect(came).toBe(now >= end || again ? 0 : units)
    })
  },
)
