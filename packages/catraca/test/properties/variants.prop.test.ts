import { concurrency, type Decision } from 'catraca'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Book } from '../contract/ledger.ts'
import { type Level, meterLaw } from '../model/bucket.ts'
import { Fraction, whole } from '../model/fraction.ts'
import type { Judge } from '../model/judge.ts'
import { answerOf } from './support/engine.ts'
import { type History, histories } from './support/histories.ts'
import { mostWithin, type Passed, spansOf } from './support/spans.ts'
import { type Setting, type Specimen, subjects } from './support/subjects.ts'
import { anyRule, Caller, callerOf, isBucket, kinOf, shortHistories, specimenOf } from './support/variants.ts'

const numRuns = 500
const second = 1_000_000

describe('variants of other limits, a caller who is asked under any of them', () => {
  const counting = subjects.filter((subject) => !isBucket(subject))

  test.each(counting)('$name: every figure is the judge’s, who keeps one history for all', (subject) => {
    fc.assert(
      fc.property(kinOf(subject), shortHistories, (settings, history) => {
        const caller = callerOf(subject, settings)
        const judges = caller.specimens.map((specimen) => specimen.judge())
        caller.play(history, (variant, at, cost) => {
          const judge = judges[variant] as Judge
          const { steppedUs: _peeked, ...shown } = judge.peek(at, cost)
          expect(answerOf(caller.peek(variant, at, cost))).toEqual(shown)
          const { steppedUs: _taken, ...answer } = judge.take(at, cost)
          for (const other of judges) other.state = judge.state
          const decision = caller.take(variant, at, cost)
          expect(answerOf(decision)).toEqual(answer)
          return decision
        })
      }),
      { numRuns },
    )
  })

  const buckets = subjects.filter(isBucket)

  test.each(buckets)('$name: what passes fits into its burst on one exact level for all', (subject) => {
    fc.assert(
      fc.property(kinOf(subject), shortHistories, (settings, history) => meters(subject.name, settings, history)),
      { numRuns },
    )
  })

  test('a debt of any depth, from 10^12 per second to 13 per month and back', () => {
    const extremes = fc.constantFrom(
      { limit: 1e12, windowUs: second, capacity: 1e12, calendar: 0 },
      { limit: 999_999_999_989, windowUs: second, capacity: 4_000_000_000, calendar: 0 },
      { limit: 13, windowUs: 30 * 86_400 * second, capacity: 997, calendar: 0 },
      { limit: 1, windowUs: second, capacity: 1, calendar: 0 },
    )
    fc.assert(
      fc.property(fc.array(extremes, { minLength: 2, maxLength: 4 }), histories(40), (settings, history) =>
        meters('token bucket', settings, history),
      ),
      { numRuns: 2_000 },
    )
  })

  test.each(subjects)('$name: no half-open span admits more than the largest of them alone would', (subject) => {
    fc.assert(
      fc.property(kinOf(subject), shortHistories, (settings, history) => {
        const caller = callerOf(subject, settings)
        staysWithin(caller, boundOf(caller, settings, isBucket(subject)), passedBy(caller, history))
      }),
      { numRuns },
    )
  })

  test.each(subjects)('$name: nor do a thousand alternations', (subject) => {
    fc.assert(
      fc.property(kinOf(subject), fc.nat(1_000), fc.nat(30), (settings, start, rest) => {
        const caller = callerOf(subject, settings)
        const [first] = caller.specimens as [Specimen]
        const passed: Passed[] = []
        const tick = Math.max(...caller.specimens.map(({ rule }) => rule.tickUs))
        let at = first.from + start * second
        for (let turn = 0; turn < 1_000; turn++) {
          const variant = turn % caller.specimens.length
          const left = caller.peek(variant, at, 1).remaining
          const cost = Math.max(1, turn % 3 === 0 ? left : 1)
          if (caller.take(variant, at, cost).allowed) passed.push({ at: at - (at % tick), units: cost })
          at += turn % 7 === 0 ? Math.ceil(first.spanUs / (rest + 1)) : turn % 5
        }
        staysWithin(caller, boundOf(caller, settings, isBucket(subject)), passed)
      }),
      { numRuns: 15 },
    )
  })

  test.each(subjects)('$name: switching a thousand times at one instant gives nothing back', (subject) => {
    fc.assert(
      fc.property(kinOf(subject), fc.nat(1_000), fc.nat(), (settings, start, share) => {
        const caller = callerOf(subject, settings)
        const at = (caller.specimens[0] as Specimen).from + start * second
        const cost = 1 + (share % (caller.specimens[0] as Specimen).capacity)
        caller.take(0, at, cost)
        const left = caller.specimens.map(({ capacity }) => Math.max(0, capacity - cost))
        for (let turn = 0; turn < 1_000; turn++) {
          const variant = turn % caller.specimens.length
          // A cost that never fits: the state moves, and nothing is taken.
          const { remaining } = caller.take(variant, at, (caller.specimens[variant] as Specimen).capacity + 1)
          expect(remaining).toBeLessThanOrEqual(left[variant] as number)
          // Levels are rounded up, by less than a unit in all.
          expect(remaining).toBeGreaterThanOrEqual((left[variant] as number) - (isBucket(subject) ? 1 : 0))
        }
      }),
      { numRuns: 30 },
    )
  })
})

describe('variants of any rules', () => {
  test('under each that is no kin of another no more passes than if its own requests were all there are', () => {
    // What is carried over may open a window earlier than the first request would: not alike, but within the bound.
    const steady = anyRule.filter(({ subject }) => subject !== 'fixed window from the first request')
    const strangers = fc.uniqueArray(steady, { minLength: 2, maxLength: 4, comparator: kin })
    fc.assert(
      fc.property(strangers, shortHistories, (rules, history) => {
        const caller = new Caller(rules.map(specimenOf))
        const alone = rules.map((rule) => new Caller([specimenOf(rule)]))
        caller.play(history, (variant, at, cost) => {
          const own = alone[variant] as Caller
          expect(caller.peek(variant, at, 1).remaining).toBeLessThanOrEqual(own.peek(0, at, 1).remaining)
          const decision = caller.take(variant, at, cost)
          if (decision.allowed) expect(own.take(0, at, cost).allowed).toBe(true)
          return decision
        })
      }),
      { numRuns: 2_000 },
    )
  })

  test('under each that is no kin of another its own bound holds', () => {
    const strangers = fc.uniqueArray(anyRule, { minLength: 2, maxLength: 4, comparator: kin })
    fc.assert(
      fc.property(strangers, shortHistories, (rules, history) => {
        const caller = new Caller(rules.map(specimenOf))
        const passed: Passed[][] = rules.map(() => [])
        caller.play(history, (variant, at, cost) => {
          const { tickUs } = (caller.specimens[variant] as Specimen).rule
          const decision = caller.take(variant, at, cost)
          if (decision.allowed) passed[variant]?.push({ at: at - (at % tickUs), units: cost })
          return decision
        })
        caller.specimens.forEach((specimen, variant) => {
          if (specimen.gapUs !== undefined) return
          const own = passed[variant] as Passed[]
          for (const span of spansOf(specimen)) expect(mostWithin(own, span)).toBeLessThanOrEqual(specimen.bound(span))
        })
      }),
      { numRuns: 1_000 },
    )
  })

  test('what is used under the one before is used, whatever the rule', () => {
    fc.assert(
      fc.property(anyRule, anyRule, shortHistories, fc.nat(1_000), (one, other, history, later) => {
        const [from, to] = [specimenOf(one), specimenOf(other)]
        const [caller, before] = [new Caller([from, to]), new Caller([from])]
        let last = from.from
        before.play(history, (_, at, cost) => {
          last = at
          caller.take(0, at, cost)
          return before.take(0, at, cost)
        })
        const at = last + Math.floor((from.spanUs * later) / 1_000)
        const used = from.capacity - before.peek(0, at, 1).remaining
        expect(caller.peek(1, at, 1).remaining).toBeLessThanOrEqual(Math.max(0, to.capacity - used))
        // Looking moves nothing.
        expect(caller.peek(0, at, 1).toJSON()).toEqual({ ...before.peek(0, at, 1).toJSON() })
        const moved = caller.take(1, at, to.capacity + 1).remaining
        expect(moved).toBeLessThanOrEqual(Math.max(0, to.capacity - used))
        expect(caller.peek(0, at, 1).remaining).toBeLessThanOrEqual(before.peek(0, at, 1).remaining)
      }),
      { numRuns: 2_000 },
    )
  })
})

test('permits of variants of other lives are held until their own end', () => {
  const variants = fc.array(
    fc.record({ limit: fc.integer({ min: 1, max: 12 }), ttl: fc.constantFrom(1, 5, 30, 3_600) }),
    { minLength: 2, maxLength: 3 },
  )
  const steps = fc.array(
    fc.record({
      variant: fc.nat(),
      cost: fc.integer({ min: 1, max: 4 }),
      pause: fc.constantFrom(0, 0, 0, 1, 2, 5, 29, 30, 3_599, 3_600),
      back: fc.option(fc.nat(5), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  fc.assert(
    fc.property(variants, steps, (list, moves) => {
      const rules = list.map(({ limit, ttl }) => concurrency({ limit, permitTtl: `${ttl}s` }))
      const { ledger } = new Book(rules.map((rule) => ['policy', rule]))
      let held: { units: number; end: number; decision: Decision }[] = []
      let now = 1_000 * second
      for (const { variant: any, cost, pause, back } of moves) {
        const variant = any % list.length
        const { limit, ttl } = list[variant] as { limit: number; ttl: number }
        now += pause * second
        held = held.filter(({ end }) => end > now)
        const decision = ledger.applySome([variant], ['k'], [cost], now, true)
        const units = held.reduce((sum, permit) => sum + permit.units, 0)
        if (decision.allowed) {
          expect(units + cost).toBeLessThanOrEqual(limit)
          held.push({ units: cost, end: now + ttl * second, decision })
        } else if (list.every((other) => other.ttl === ttl)) expect(units + cost).toBeGreaterThan(limit)
        const who = back === undefined ? undefined : held[back]
        if (who === undefined) continue
        expect(ledger.refund(who.decision, who.units, now)).toBe(who.units)
        expect(ledger.refund(who.decision, who.units, now)).toBe(0)
        held = held.filter((permit) => permit !== who)
      }
    }),
    { numRuns: 2_000 },
  )
})

describe('selections', () => {
  const stacks = fc.array(anyRule, { minLength: 1, maxLength: 4 })

  test('of all policies at one cost are the whole stack', () => {
    fc.assert(
      fc.property(stacks, histories(25, 'set'), fc.boolean(), (rules, history, charge) => {
        const specimens = rules.map(specimenOf)
        const policies = specimens.map(({ rule }, index) => [`p${index}`, rule] as const)
        const [some, all] = [new Book(policies), new Book(policies)]
        const members = specimens.map((_, index) => index)
        const keys = specimens.map((_, index) => `k${index}`)
        new Caller(specimens).play(history, (_, at, cost) => {
          const costs = specimens.map(() => cost)
          const whole = all.ledger.apply(keys, cost, at, charge)
          const selected = some.ledger.applySome(members, keys, costs, at, charge)
          expect({ ...selected.toJSON(), receipt: '' }).toEqual({ ...whole.toJSON(), receipt: '' })
          expect(some.rebasedMs).toEqual(all.rebasedMs)
          return whole
        })
      }),
      { numRuns },
    )
  })

  test('with costs of their own pass when each would, and charge each its own or none', () => {
    const asks = fc.array(
      fc.record({ chosen: fc.integer({ min: 1, max: 15 }), share: fc.nat(1_000), pause: fc.nat(100) }),
      { minLength: 1, maxLength: 25 },
    )
    fc.assert(
      fc.property(stacks, asks, (rules, list) => {
        const specimens = rules.map(specimenOf)
        const { ledger } = new Book(specimens.map(({ rule }, index) => [`p${index}`, rule]))
        const alone = specimens.map((specimen) => new Caller([specimen]))
        let at = Math.max(...specimens.map(({ from }) => from))
        for (const { chosen, share, pause } of list) {
          at += Math.floor(((specimens[0] as Specimen).spanUs * pause) / 400)
          const members = specimens.map((_, index) => index).filter((index) => (chosen >> index) & 1)
          if (members.length === 0) continue
          const costs = members.map(
            (member) => 1 + Math.floor(((specimens[member] as Specimen).capacity * share) / 990),
          )
          const own = members.map((member, index) => (alone[member] as Caller).peek(0, at, costs[index] as number))
          const decision = ledger.applySome(members, members.map(String), costs, at, true)
          const passes = own.every(({ allowed }) => allowed)
          expect(decision.allowed).toBe(passes)
          expect(
            decision.stack.map((one) => [one.source.name, one.allowed, one.waitUs, one.cost, one.charged]),
          ).toEqual(
            own.map((one, index) => [
              `p${members[index]}`,
              one.allowed,
              one.waitUs,
              costs[index],
              passes ? costs[index] : 0,
            ]),
          )
          const after = passes
            ? members.map((member, index) => (alone[member] as Caller).take(0, at, costs[index] as number))
            : own
          expect(decision.stack.map(({ remaining }) => remaining)).toEqual(after.map(({ remaining }) => remaining))
        }
      }),
      { numRuns },
    )
  })
})

interface Kind {
  readonly subject: string
  readonly setting: Setting
}

function kin(one: Kind, other: Kind): boolean {
  return specimenOf(one).rule.kinship(specimenOf(other).rule) !== 'none'
}

/** Plays a history beside an exact meter whose level, in units, is that of all variants. */
function meters(name: string, settings: readonly Setting[], history: History): void {
  const subject = subjects.find((one) => one.name === name)
  if (subject === undefined) throw new Error(name)
  const caller = callerOf(subject, settings)
  const laws = settings.map(({ limit, windowUs, capacity }) =>
    meterLaw({ limit: BigInt(limit), windowUs: BigInt(windowUs), burst: BigInt(capacity) }),
  )
  const exact = caller.specimens.every(({ rule }) => rule.tickUs === 1)
  const tickUs = BigInt(Math.max(...caller.specimens.map(({ rule }) => rule.tickUs)))
  let level: Level = { level: whole(0n), at: undefined }
  let under = -1
  let last = 0
  let switches = 0n
  caller.play(history, (variant, at, cost) => {
    // What drains between two requests does so under the variant of the first. Rules with coarse ticks see an instant up
    // to a tick before or after it: the level is then no lower than one that drains at the greatest rate, and a tick more.
    const rates = exact ? [settings[under] as Setting] : settings
    if (under !== -1) level = lowest(rates.map((setting) => drained(level, setting, BigInt(at))))
    const seen = exact
      ? level
      : lowest(rates.map((setting) => ({ ...drained({ ...level, at: 0n }, setting, tickUs), at: level.at })))
    if (under !== variant) switches++
    const law = laws[variant] as (typeof laws)[number]
    const decision = caller.take(variant, at, cost)
    const fits = law.admits(seen, BigInt(at), BigInt(cost))
    if (decision.allowed) {
      expect({ at, cost, variant, fits }).toEqual({ at, cost, variant, fits: true })
      level = law.admit(level, BigInt(at), BigInt(cost))
    } else if (exact) {
      // Refused beyond need: by less than one level for each switch, which is one unit at most.
      expect(law.admits(level, BigInt(at), BigInt(cost) + switches)).toBe(false)
    }
    under = variant
    last = at
    return decision
  })
  expect(last).toBeGreaterThan(0)
}

function drained({ level, at }: Level, { limit, windowUs }: Setting, now: bigint): Level {
  if (at === undefined) return { level, at }
  const left = level.minus(new Fraction((now - at) * BigInt(limit), BigInt(windowUs)))
  return { level: left.compare(whole(0n)) > 0n ? left.reduced() : whole(0n), at: now }
}

function lowest(levels: readonly Level[]): Level {
  return levels.reduce((one, other) => (other.level.compare(one.level) < 0n ? other : one))
}

function passedBy(caller: Caller, history: History): Passed[] {
  const passed: Passed[] = []
  const tick = Math.max(...caller.specimens.map(({ rule }) => rule.tickUs))
  caller.play(history, (variant, at, cost) => {
    const decision = caller.take(variant, at, cost)
    if (decision.allowed) passed.push({ at: at - (at % tick), units: cost })
    return decision
  })
  return passed
}

/** What the largest variant alone lets pass; of buckets the largest burst and the greatest rate. */
function boundOf(caller: Caller, settings: readonly Setting[], bucket: boolean): (span: bigint) => bigint {
  const most = (list: bigint[]): bigint => list.reduce((a, b) => (a > b ? a : b))
  if (!bucket) return (span) => most(caller.specimens.map((specimen) => specimen.bound(span)))
  return (span) =>
    most(settings.map(({ capacity }) => BigInt(capacity))) +
    most(settings.map(({ limit, windowUs }) => (BigInt(limit) * span) / BigInt(windowUs)))
}

function staysWithin(caller: Caller, bound: (span: bigint) => bigint, passed: readonly Passed[]): void {
  const tick = Math.max(...caller.specimens.map(({ rule }) => rule.tickUs))
  for (const { spanUs } of caller.specimens) {
    for (const us of [1, spanUs / 3, spanUs / 2, spanUs - 1, spanUs, spanUs + 1, 2 * spanUs, 3.7 * spanUs]) {
      const span = BigInt(Math.ceil(us / tick) * tick)
      expect(mostWithin(passed, span)).toBeLessThanOrEqual(bound(span))
    }
  }
}
