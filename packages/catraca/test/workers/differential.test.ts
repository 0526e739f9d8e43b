import type { Decision } from 'catraca'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { nowUs } from '../../src/core/clock.ts'
import type { RemoteLedger } from '../../src/stores/remote.ts'
import { Book } from '../contract/ledger.ts'
import { answerOf } from '../properties/support/engine.ts'
import { costOf, type History, histories, instantOf, type Step, startOf } from '../properties/support/histories.ts'
import type { Specimen } from '../properties/support/subjects.ts'
import { anyRule, specimenOf } from '../properties/support/variants.ts'
import { hooksOf, workersOf } from './support.ts'

const changes = ['keep', 'proportional', 'reset'] as const
type Change = (typeof changes)[number]

let now = 0
beforeEach(() => {
  // The clock of both goes by this one alone.
  vi.spyOn(Date, 'now').mockImplementation(() => now / 1_000)
})
afterEach(() => vi.restoreAllMocks())

const numRuns = Number(process.env['CATRACA_TRACES'] ?? 300)
const names = ['p', 'p', 'q', 'r']

/** The same policies in a memory of this process, and in that of the primary seen from two workers. */
class Both {
  readonly book: Book
  private readonly ledgers: readonly RemoteLedger[]
  private readonly admitted: [Decision, Decision, RemoteLedger][] = []
  private readonly rebasedMs: number[] = []
  private specimens: readonly Specimen[]
  private readonly change: Change

  constructor(specimens: readonly Specimen[], change: Change) {
    this.specimens = specimens
    this.change = change
    this.book = new Book(this.named())
    const hooks = hooksOf({ rebased: (stepMs) => this.rebasedMs.push(stepMs) })
    this.ledgers = workersOf(2).workers.map(({ store }) =>
      store.open('book', this.sources(), hooks, { expectedInstances: 2 }),
    )
  }

  async step(step: Step, cost: number): Promise<Decision | undefined> {
    const ledger = this.ledgers[step.share % 2] as RemoteLedger
    const kind = step.pause % 20
    if (kind < 3) await this.refund(step)
    else if (kind === 3) {
      const key = step.share % 3 === 0 ? 'a' : 'b'
      await ledger.reset(step.share % names.length, key, undefined)
      this.book.ledger.reset(step.share % names.length, key)
    } else if (kind === 4) this.replace()
    else if (kind === 5) await this.settle(step)
    else if (kind === 6 || kind === 7) return this.reserve(ledger, step, cost)
    else if (kind === 8) await this.upTo(ledger, step, cost)
    else return this.ask(ledger, step, cost)
    return undefined
  }

  private async ask(ledger: RemoteLedger, step: Step, cost: number): Promise<Decision> {
    const one = step.share % names.length
    const members = this.specimens
      .map((_, index) => index)
      .filter((index) => index === one || (step.pause >> index) % 3 === 0)
    // Of a name one variant is asked at a time.
    const asked = members.filter(
      (index) => index === one || !members.some((other) => other < index && names[other] === names[index]),
    )
    const unique = asked.filter((index) => index === one || names[index] !== names[one])
    const keys = unique.map((index) => ((step.share + (index >> 1)) % 3 === 0 ? 'b' : 'a'))
    const costs = unique.map((index) => (index === one ? cost : 1))
    const charge = step.pause % 7 > 0
    const theirs = await ledger.apply(unique, keys, undefined, costs, charge)
    const ours = this.book.ledger.applySome(unique, keys, costs, nowUs(), charge)
    expect(figures(theirs)).toEqual(figures(ours))
    expect(this.rebasedMs).toEqual(this.book.rebasedMs)
    if (ours.allowed && charge)
      ours.stack.forEach((part, at) => this.admitted.push([part, theirs.stack[at] as Decision, ledger]))
    return ours
  }

  private async refund(step: Step): Promise<void> {
    const [ours, theirs, ledger] = this.admitted[step.share % Math.max(1, this.admitted.length)] ?? []
    if (ours === undefined || theirs === undefined || ledger === undefined) return
    const units = 1 + (step.share % ours.cost)
    expect(await ledger.refund(theirs, units)).toBe(this.book.ledger.refund(ours, units, nowUs()))
  }

  private async settle(step: Step): Promise<void> {
    const [ours, theirs, ledger] = this.admitted[step.share % Math.max(1, this.admitted.length)] ?? []
    if (ours === undefined || theirs === undefined || ledger === undefined) return
    const units = Math.floor((ours.cost * (step.share % 50)) / 20)
    expect(await ledger.settle(theirs, units)).toBe(this.book.ledger.settle(ours, units, nowUs()))
  }

  private async reserve(ledger: RemoteLedger, step: Step, cost: number): Promise<Decision | undefined> {
    const reserving = this.specimens.findIndex(({ rule }) => rule.reserves === true)
    if (reserving < 0) return undefined
    const maxWaitUs = step.share * step.pause * 100
    const theirs = await ledger.reserve(reserving, 'a', undefined, cost, maxWaitUs)
    const ours = this.book.ledger.reserve(reserving, 'a', cost, nowUs(), maxWaitUs)
    expect(figures(theirs)).toEqual(figures(ours))
    if (ours.allowed) this.admitted.push([ours, theirs, ledger])
    return ours
  }

  private async upTo(ledger: RemoteLedger, step: Step, most: number): Promise<void> {
    const members = [step.share % 2, 2, 3]
    const keys = members.map(() => 'a')
    const theirs = await ledger.applyUpTo(members, keys, undefined, most)
    const ones = members.map(() => 1)
    const { allowed, stack } = this.book.ledger.applySome(members, keys, ones, nowUs(), false)
    const units = allowed ? Math.min(most, ...stack.map(({ remaining }) => remaining)) : 1
    const costs = ones.map(() => units)
    const ours = this.book.ledger.applySome(members, keys, costs, nowUs(), true)
    expect(figures(theirs)).toEqual(figures(ours))
    if (ours.allowed) ours.stack.forEach((part, at) => this.admitted.push([part, theirs.stack[at] as Decision, ledger]))
  }

  /** The same in another order, and back. */
  private replace(): void {
    this.book.replace(this.named())
    for (const ledger of this.ledgers) ledger.replace(this.sources(), { expectedInstances: 2 })
  }

  private named() {
    return this.specimens.map(({ rule }, index) => [names[index] as string, rule, this.change] as const)
  }

  private sources() {
    const issuer = { release: () => {} }
    return this.named().map(([name, rule, onRuleChange]) => ({ name, rule, onRuleChange, issuer }))
  }
}

function figures(decision: Decision): unknown {
  const of = (one: Decision) => ({
    ...answerOf(one),
    policy: one.policy,
    key: one.key,
    cost: one.cost,
    charged: one.charged,
    nowUs: one.nowUs,
    delayMs: one.delayMs,
    limit: one.limit,
  })
  return { ...of(decision), stack: decision.stack.map(of) }
}

async function play(specimens: readonly Specimen[], history: History, change: Change): Promise<void> {
  now = startOf(specimens[0] as Specimen, history)
  const both = new Both(specimens, change)
  let last: Decision | undefined
  for (const step of history.steps) {
    const specimen = specimens[step.share % specimens.length] as Specimen
    now = instantOf(specimen, step, now, last)
    last = (await both.step(step, costOf(specimen, step, last))) ?? last
  }
}

describe('the memory of the primary answers as a memory of its own', () => {
  for (const change of changes) {
    test.each(['steady', 'set'] as const)(
      `stacks, variants, refunds and resets, ${change}, clock %s`,
      async (clock) => {
        await fc.assert(
          fc.asyncProperty(fc.array(anyRule, { minLength: 4, maxLength: 4 }), histories(25, clock), (list, history) =>
            play(list.map(specimenOf), history, change),
          ),
          { numRuns },
        )
      },
    )
  }
})
