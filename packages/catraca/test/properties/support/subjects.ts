import {
  concurrency,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import * as fc from 'fast-check'
import { bucketLaw } from '../../model/bucket.ts'
import { calendars, type NamedCalendar } from '../../model/calendar.ts'
import { counterLaw } from '../../model/counter.ts'
import { Judge, type Law } from '../../model/judge.ts'
import { concurrencyLaw, logLaw } from '../../model/log.ts'
import { queueLaw } from '../../model/queue.ts'
import { subCounterLaw } from '../../model/sub-counter.ts'
import { clockWindows, firstWindowLaw, periodLaw } from '../../model/window.ts'

/** What a rule of a property is made from; plain, so that a failing case can be written down. */
export interface Setting {
  readonly limit: number
  readonly windowUs: number
  /** Burst of a bucket, places of a queue; the limit elsewhere. */
  readonly capacity: number
  /** Index into the calendars of a quota. */
  readonly calendar: number
}

/** One rule with its judge and what is known of it in advance. */
export interface Specimen {
  readonly rule: Rule
  readonly capacity: number
  /** Instants at which something of the rule's own happens: the next one after `us`. */
  readonly edgeAfter: (us: number) => number
  /** A length of time in which the rule turns over. */
  readonly spanUs: number
  /** Most units that start in any half-open span of `us`. */
  readonly bound: (us: bigint) => bigint
  /** The longest wait of a caller who is alone, in µs. */
  readonly longestWaitUs: (cost: number) => number
  /** µs between departures of a shaper; undefined for a rule that delays nothing. */
  readonly gapUs: number | undefined
  /** True when windows end for all keys at once, by the clock. */
  readonly aligned: boolean
  readonly from: number
  readonly to: number
  judge(): Judge
}

/** A kind of rule. To put another under every property, add it to {@link subjects}. */
export interface Subject {
  readonly name: string
  readonly settings: fc.Arbitrary<Setting>
  specimen(setting: Setting): Specimen
}

const second = 1_000_000
const spans = [second, 60 * second, 3_600 * second, 86_400 * second, 30 * 86_400 * second]
const windowUs = fc.oneof(
  { arbitrary: fc.constantFrom(...spans), weight: 6 },
  { arbitrary: fc.constantFrom(10 * second, 300 * second, 1_500_000, 999_983), weight: 1 },
)
const units = fc.oneof(
  fc.integer({ min: 1, max: 12 }),
  fc.constantFrom(1, 2, 3, 7, 10, 60, 100, 997, 1_000),
  fc.integer({ min: 1, max: 1_000 }),
)
const from = Date.UTC(2024, 0, 1) * 1_000
const to = Date.UTC(2030, 11, 31) * 1_000

const windowed: fc.Arbitrary<Setting> = fc
  .record({ limit: units, windowUs })
  .map(({ limit, windowUs }) => ({ limit, windowUs, capacity: limit, calendar: 0 }))

/** Rates so fine that the rule counts in ticks of 1 ms and of 1 s. */
const coarse = fc.constantFrom(
  { limit: 999_983, windowUs: 30 * 86_400 * second, capacity: 999_979, calendar: 0 },
  { limit: 999_999_937, windowUs: 30 * 86_400 * second, capacity: 1_000_003, calendar: 0 },
)
const bursting: fc.Arbitrary<Setting> = fc.oneof(
  { arbitrary: windowed, weight: 3 },
  { arbitrary: fc.record({ limit: units, windowUs, capacity: units, calendar: fc.constant(0) }), weight: 6 },
  { arbitrary: coarse, weight: 1 },
)
const queued = fc.record({
  limit: units,
  windowUs,
  capacity: fc.integer({ min: 1, max: 25 }),
  calendar: fc.constant(0),
})
const scheduled = fc
  .record({ limit: units, calendar: fc.nat(calendars.length - 1) })
  .map(({ limit, calendar }) => ({ limit, windowUs: 86_400 * second, capacity: limit, calendar }))

/** Parts of a sliding counter, by its window. */
const partsOf = (windowUs: number): number =>
  ({ [second]: 2, [10 * second]: 5, [60 * second]: 60, [1_500_000]: 3, [7 * second]: 7 })[windowUs] ?? 6

const ms = (us: number): number => us / 1_000
const ceilDiv = (a: bigint, b: bigint): bigint => (a + b - 1n) / b

interface Traits {
  readonly rule: Rule
  readonly law: Law<never>
  readonly bound: (spanUs: bigint) => bigint
  readonly longestWaitUs: (cost: number) => number
  readonly intervalUs?: number
  readonly gapUs?: number
  readonly aligned?: boolean
  /** How much later than the multiples of their length windows begin. */
  readonly offsetUs?: number
  readonly calendar?: NamedCalendar
}

function specimen(setting: Setting, traits: Traits): Specimen {
  const { rule, law, bound, longestWaitUs, intervalUs, gapUs, aligned = false, offsetUs = 0, calendar } = traits
  const stepUs = intervalUs ?? setting.windowUs
  return {
    rule,
    capacity: Number(law.capacity),
    spanUs: setting.windowUs,
    edgeAfter: (us) =>
      calendar === undefined
        ? (Math.floor((us - offsetUs) / stepUs) + 1) * stepUs + offsetUs
        : Number(calendar.calendar(BigInt(us)).end),
    bound,
    longestWaitUs,
    gapUs,
    aligned,
    from: calendar?.from ?? from,
    to: calendar?.to ?? to,
    judge: () => new Judge(law, rule.tickUs),
  }
}

/** Spans of one window meet one window more than they are long. */
const twice =
  (limit: number, windowUs: number) =>
  (spanUs: bigint): bigint =>
    BigInt(limit) * (ceilDiv(spanUs, BigInt(windowUs)) + 1n)

const bucketOf =
  (make: typeof tokenBucket) =>
  (setting: Setting): Specimen => {
    const { limit, windowUs, capacity } = setting
    const rate = { limit: BigInt(limit), windowUs: BigInt(windowUs), burst: BigInt(capacity) }
    return specimen(setting, {
      rule: make({ limit, window: ms(windowUs), burst: capacity }),
      law: bucketLaw(rate) as Law<never>,
      bound: (spanUs) => rate.burst + (rate.limit * spanUs) / rate.windowUs,
      longestWaitUs: (cost) => Math.ceil((cost * windowUs) / limit),
      intervalUs: Math.ceil(windowUs / limit),
    })
  }

const fixedOf =
  (anchor: 'clock' | 'first') =>
  (setting: Setting): Specimen => {
    const { limit, windowUs } = setting
    const us = BigInt(windowUs)
    return specimen(setting, {
      rule: fixedWindow({ limit, window: ms(windowUs), anchor }),
      law: (anchor === 'clock'
        ? periodLaw(BigInt(limit), clockWindows(us), 'limited')
        : firstWindowLaw(BigInt(limit), us)) as Law<never>,
      bound: twice(limit, windowUs),
      longestWaitUs: () => windowUs,
      aligned: anchor === 'clock',
    })
  }

export const subjects: readonly Subject[] = [
  { name: 'fixed window by the clock', settings: windowed, specimen: fixedOf('clock') },
  {
    name: 'fixed window with an offset',
    settings: windowed,
    specimen: (setting) => {
      const { limit, windowUs } = setting
      const offsetUs = Math.floor((windowUs * 7) / 16)
      return specimen(setting, {
        rule: fixedWindow({ limit, window: ms(windowUs), offset: `${ms(offsetUs)}ms` }),
        law: periodLaw(BigInt(limit), clockWindows(BigInt(windowUs), BigInt(offsetUs)), 'limited') as Law<never>,
        bound: twice(limit, windowUs),
        longestWaitUs: () => windowUs,
        aligned: true,
        offsetUs,
      })
    },
  },
  { name: 'fixed window from the first request', settings: windowed, specimen: fixedOf('first') },
  {
    name: 'sliding log',
    settings: windowed,
    specimen: (setting) => {
      const { limit, windowUs } = setting
      return specimen(setting, {
        rule: slidingLog({ limit, window: ms(windowUs) }),
        law: logLaw(BigInt(limit), BigInt(windowUs), 'limited') as Law<never>,
        bound: (spanUs) => BigInt(limit) * ceilDiv(spanUs, BigInt(windowUs)),
        longestWaitUs: () => windowUs,
      })
    },
  },
  {
    name: 'sliding counter',
    settings: windowed,
    specimen: (setting) => {
      const { limit, windowUs } = setting
      return specimen(setting, {
        rule: slidingCounter({ limit, window: ms(windowUs) }),
        law: counterLaw(BigInt(limit), BigInt(windowUs)) as Law<never>,
        bound: twice(limit, windowUs),
        longestWaitUs: () => 2 * windowUs,
        aligned: true,
      })
    },
  },
  {
    name: 'sliding counter in parts',
    // Every window but the last divides into so many whole µs; as kin have one window, they have one number of parts.
    settings: fc.oneof(
      { arbitrary: windowed.filter(({ windowUs }) => windowUs !== 999_983), weight: 9 },
      { arbitrary: coarse, weight: 1 },
    ),
    specimen: (setting) => {
      const { limit, windowUs } = setting
      const parts = partsOf(windowUs)
      const partUs = windowUs / parts
      return specimen(setting, {
        rule: slidingCounter({ limit, window: ms(windowUs), subWindows: parts }),
        law: subCounterLaw(BigInt(limit), BigInt(windowUs), BigInt(parts)) as Law<never>,
        // Of a window less a part once the limit, of what is longer as many more windows.
        bound: (spanUs) => BigInt(limit) * ceilDiv(spanUs + BigInt(partUs), BigInt(windowUs)),
        longestWaitUs: () => windowUs + partUs,
        intervalUs: partUs,
        aligned: true,
      })
    },
  },
  { name: 'token bucket', settings: bursting, specimen: bucketOf(tokenBucket) },
  { name: 'gcra', settings: bursting, specimen: bucketOf(gcra) },
  { name: 'leaky meter', settings: bursting, specimen: bucketOf(leakyMeter) },
  {
    name: 'leaky queue',
    settings: queued,
    specimen: (setting) => {
      const { limit, windowUs, capacity } = setting
      return specimen(setting, {
        rule: leakyQueue({ limit, window: ms(windowUs), capacity }),
        law: queueLaw(BigInt(limit), BigInt(windowUs), BigInt(capacity)) as Law<never>,
        bound: (spanUs) => ceilDiv(BigInt(limit) * spanUs, BigInt(windowUs)),
        longestWaitUs: (cost) => Math.ceil((cost * windowUs) / limit),
        gapUs: windowUs / limit,
        intervalUs: Math.ceil(windowUs / limit),
      })
    },
  },
  {
    name: 'quota',
    settings: scheduled,
    specimen: (setting) => {
      const calendar = calendars[setting.calendar] as NamedCalendar
      const { calendar: periods, longestUs, shortestUs, from: _from, to: _to, ...options } = calendar
      const limit = BigInt(setting.limit)
      return specimen(setting, {
        rule: quota({ limit: setting.limit, ...options }),
        law: periodLaw(limit, periods, 'quota') as Law<never>,
        bound: twice(setting.limit, shortestUs),
        longestWaitUs: () => longestUs,
        aligned: true,
        calendar,
      })
    },
  },
  {
    name: 'concurrency',
    settings: windowed,
    specimen: (setting) => {
      const { limit, windowUs } = setting
      return specimen(setting, {
        rule: concurrency({ limit, permitTtl: ms(windowUs) }),
        law: concurrencyLaw(BigInt(limit), BigInt(windowUs)) as Law<never>,
        bound: (spanUs) => BigInt(limit) * ceilDiv(spanUs, BigInt(windowUs)),
        longestWaitUs: () => windowUs,
      })
    },
  },
]
