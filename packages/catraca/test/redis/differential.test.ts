import { RedisProcess } from '@catraca/gateway/redis-server'
import type { Decision } from 'catraca'
import * as fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Book } from '../contract/ledger.ts'
import type { Answer } from '../model/judge.ts'
import { answerOf, Engine } from '../properties/support/engine.ts'
import { costOf, type History, histories, instantOf, play, startOf } from '../properties/support/histories.ts'
import { type Setting, type Specimen, subjects } from '../properties/support/subjects.ts'
import { anyRule, kinOf, specimenOf } from '../properties/support/variants.ts'
import { Simulated } from './simulated.ts'

let server: RedisProcess
let redis: Redis
let open: Awaited<ReturnType<typeof Simulated.load>>
let runs = 0

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = new Redis(server.port)
  open = await Simulated.load(redis)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

interface Asked {
  readonly at: number
  readonly cost: number
  readonly memory: Omit<Answer, 'steppedUs'>
  readonly judge: Omit<Answer, 'steppedUs'>
}

/** A history as the memory store and the judge answer it. */
function answered(specimen: Specimen, history: History): Asked[] {
  const engine = new Engine(specimen.rule)
  const judge = specimen.judge()
  const asked: Asked[] = []
  play(specimen, history, (at, cost) => {
    const decision = engine.take(at, cost)
    const { steppedUs: _, ...answer } = judge.take(at, cost)
    asked.push({ at, cost, memory: answerOf(decision), judge: answer })
    return decision
  })
  return asked
}

async function agrees(specimen: Specimen, history: History, expires: boolean): Promise<void> {
  const asked = answered(specimen, history)
  const shared = open(`run${runs++}`, [{ name: 'p', rule: specimen.rule }])
  shared.expires = expires
  const pending: [Promise<Decision>, Promise<Decision>][] = asked.map(({ at, cost }) => {
    shared.at(at)
    return [shared.take(0, 'a', cost, false), shared.take(0, 'a', cost)]
  })
  await Promise.allSettled(pending.flat())
  for (const [index, [peeked, taken]] of pending.entries()) {
    const { at, cost, memory, judge } = asked[index] as Asked
    const answer = answerOf(await taken)
    expect({ index, at, cost, ...answer }).toEqual({ index, at, cost, ...memory })
    expect({ index, at, cost, ...answer }).toEqual({ index, at, cost, ...judge })
    const { allowed, retryAfterMs } = await peeked
    expect([allowed, Math.round(retryAfterMs * 1_000)]).toEqual([judge.reason === 'ok', judge.retryUs])
  }
}

const numRuns = Number(process.env['CATRACA_TRACES'] ?? 1_000)

describe('steps in memory, script on Redis and the exact model give one answer', () => {
  for (const subject of subjects) {
    for (const clock of ['steady', 'set'] as const) {
      test(`${subject.name}, clock ${clock}`, async () => {
        await fc.assert(
          fc.asyncProperty(subject.settings, histories(30, clock), (setting: Setting, history: History) =>
            agrees(subject.specimen(setting), history, clock === 'steady'),
          ),
          { numRuns: numRuns / 2 },
        )
      })
    }
  }
})

type Step = History['steps'][number]
type Ask = (shared: Simulated, book: Book, step: Step, at: number, cost: number) => Asking

/** What was asked of both, and the answer of the one that answers at once. */
interface Asking {
  readonly memory: Decision | number
  readonly shared: Promise<Decision | number>
}

/** Plays one history to the memory store and to the script, and compares whatever they say. */
async function compare(
  specimens: readonly Specimen[],
  policies: readonly string[],
  history: History,
  expires: boolean,
  ask: Ask,
  onRuleChange: (typeof changes)[number] = 'keep',
): Promise<void> {
  const book = new Book(specimens.map(({ rule }, index) => [policies[index] as string, rule, onRuleChange]))
  const shared = open(
    `run${runs++}`,
    specimens.map(({ rule }, index) => ({ name: policies[index] as string, rule, onRuleChange })),
  )
  shared.expires = expires
  const asked: Asking[] = []
  let now = startOf(specimens[0] as Specimen, history)
  let last: Decision | undefined
  for (const step of history.steps) {
    const specimen = specimens[step.share % specimens.length] as Specimen
    now = instantOf(specimen, step, now, last)
    shared.at(now)
    const one = ask(shared, book, step, now, costOf(specimen, step, last))
    asked.push(one)
    if (typeof one.memory !== 'number') last = one.memory
  }
  const answers = await Promise.allSettled(asked.map(({ shared }) => shared))
  answers.forEach((answer, index) => {
    if (answer.status === 'rejected') throw answer.reason
    const { memory } = asked[index] as Asking
    expect({ index, answer: figures(answer.value) }).toEqual({ index, answer: figures(memory) })
  })
}

function figures(said: Decision | number): unknown {
  return typeof said === 'number' ? said : { ...shown(said), stack: said.stack.map(shown) }
}

/** Of a debt that takes a lifetime to pay only that it is one: its levels are past 2^53, where both round up. */
function shown(decision: Decision): Record<string, unknown> {
  const answer = answerOf(decision)
  const endless = answer.resetUs > 2 ** 50
  return endless ? { reason: answer.reason, remaining: answer.remaining } : { ...answer }
}

const stacks = fc.array(anyRule, { minLength: 2, maxLength: 4 })
const clocks = ['steady', 'set'] as const
const changes = ['keep', 'proportional', 'reset'] as const

describe('as in memory', () => {
  test.each(clocks)('stacks of any rules, some or all of them asked, clock %s', async (clock) => {
    await fc.assert(
      fc.asyncProperty(stacks, histories(25, clock), (list, history) => {
        const specimens = list.map(specimenOf)
        const names = specimens.map((_, index) => `p${index}`)
        return compare(specimens, names, history, clock === 'steady', (shared, book, step, at, cost) => {
          const members = names.map((_, index) => index).filter((index) => (step.pause >> index) % 4 > 0)
          const asked = members.length === 0 ? [0] : members
          const keys = asked.map((index) => (index % 2 === 0 ? 'a' : 'b'))
          const costs = asked.map((index) => (index === step.share % names.length ? cost : 1))
          const charge = step.pause % 7 > 0
          return {
            memory: book.ledger.applySome(asked, keys, costs, at, charge),
            shared: shared.ledger.apply(asked, keys, undefined, costs, charge),
          }
        })
      }),
      { numRuns },
    )
  })

  test.each(clocks.flatMap((clock) => changes.map((change) => [clock, change] as const)))(
    'a caller under rules that are kin, from one to another, clock %s, %s',
    async (clock, change) => {
      const kin = fc.oneof(
        ...subjects.map((subject) =>
          kinOf(subject).map((settings) => settings.map((setting) => ({ subject: subject.name, setting }))),
        ),
      )
      await fc.assert(
        fc.asyncProperty(kin, histories(25, clock), (list, history) => {
          const specimens = list.map(specimenOf)
          const names = specimens.map(() => 'p')
          // Memory brings a state along that Redis has forgotten; of another tick it may be ahead of now by one.
          const expires = clock === 'steady' && specimens.every(({ rule }) => rule.tickUs === 1)
          return compare(
            specimens,
            names,
            history,
            expires,
            (shared, book, step, at, cost) => {
              const variant = (step.share + step.pause) % specimens.length
              return {
                memory: book.ledger.applySome([variant], ['a'], [cost], at, true),
                shared: shared.take(variant, 'a', cost),
              }
            },
            change,
          )
        }),
        { numRuns },
      )
    },
  )

  test.each(changes)('a caller under rules of any kind, from one to another, %s', async (change) => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyRule, { minLength: 2, maxLength: 3 }), histories(25), (list, history) => {
        const specimens = list.map(specimenOf)
        // A state of another tick that has ended leaves its tick in memory, which may be ahead of now by one.
        fc.pre(specimens.every(({ rule }) => rule.tickUs === 1))
        const names = specimens.map(() => 'p')
        return compare(
          specimens,
          names,
          history,
          false,
          (shared, book, step, at, cost) => {
            const variant = (step.share + step.pause) % specimens.length
            return {
              memory: book.ledger.applySome([variant], ['a'], [cost], at, true),
              shared: shared.take(variant, 'a', cost),
            }
          },
          change,
        )
      }),
      { numRuns },
    )
  })

  test.each(clocks)('what is given back, clock %s', async (clock) => {
    await fc.assert(
      fc.asyncProperty(anyRule, histories(20, clock), async (one, history) => {
        const specimen = specimenOf(one)
        const book = new Book([['p', specimen.rule]])
        const shared = open(`run${runs++}`, [{ name: 'p', rule: specimen.rule }])
        shared.expires = clock === 'steady'
        const admitted: [Decision, Decision][] = []
        let now = startOf(specimen, history)
        let last: Decision | undefined
        for (const [index, step] of history.steps.entries()) {
          now = instantOf(specimen, step, now, last)
          shared.at(now)
          const [memory, redisSide] = admitted[step.share % Math.max(1, admitted.length)] ?? []
          if (step.pause % 3 === 0 && memory !== undefined && redisSide !== undefined) {
            const units = 1 + (step.share % memory.cost)
            const back = book.ledger.refund(memory, units, now)
            expect({ index, back: await shared.ledger.refund(redisSide, units) }).toEqual({ index, back })
            continue
          }
          const cost = costOf(specimen, step, last)
          last = book.ledger.applySome([0], ['a'], [cost], now, true)
          const answer = await shared.take(0, 'a', cost)
          expect({ index, ...(shown(answer) as object) }).toEqual({ index, ...(shown(last) as object) })
          if (last.allowed) admitted.push([last, answer])
        }
      }),
      { numRuns: numRuns / 2 },
    )
  })
})
