import { RedisProcess } from '@catraca/gateway/redis-server'
import type { Decision } from 'catraca'
import * as fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Book } from '../contract/ledger.ts'
import { answerOf } from '../properties/support/engine.ts'
import { costOf, histories, instantOf, type Step, startOf } from '../properties/support/histories.ts'
import type { Specimen } from '../properties/support/subjects.ts'
import { anyRule, specimenOf } from '../properties/support/variants.ts'
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
  vi.restoreAllMocks()
  redis.disconnect()
  await server.stop()
})

const numRuns = Number(process.env['CATRACA_TRACES'] ?? 500)

function shown(decision: Decision): unknown {
  const parts = decision.stack.map((one) => [answerOf(one), one.cost, one.charged, one.delayMs, one.retryAfterMs])
  return { parts, delayMs: decision.delayMs, charged: decision.charged }
}

/** What one step asks of the memory and of the script. */
async function play(
  book: Book,
  shared: Simulated,
  admitted: [Decision, Decision][],
  step: Step,
  now: number,
  cost: number,
  count: number,
) {
  const kind = step.pause % 10
  const member = step.share % count
  const [memory, remote] = admitted[step.share % Math.max(1, admitted.length)] ?? []
  const members = Array.from({ length: count }, (_, index) => index)
  if (kind < 3 && memory !== undefined && remote !== undefined) {
    const one = memory.stack[member % memory.stack.length] as Decision
    const other = remote.stack[member % memory.stack.length] as Decision
    if (kind === 0) {
      const units = 1 + (step.share % one.cost)
      return [book.ledger.refund(one, units, now), await shared.ledger.refund(other, units)]
    }
    const units = Math.floor((one.cost * (step.share % 50)) / 20)
    return [book.ledger.settle(one, units, now), await shared.ledger.settle(other, units)]
  }
  let answers: [Decision, Decision]
  if (kind < 5) {
    const ones = members.map(() => 1)
    const peeked = book.ledger.applySome(
      members,
      members.map(() => 'a'),
      ones,
      now,
      false,
    )
    const units = peeked.allowed ? Math.min(cost, ...peeked.stack.map(({ remaining }) => remaining)) : 1
    answers = [
      book.ledger.applySome(
        members,
        members.map(() => 'a'),
        members.map(() => units),
        now,
        true,
      ),
      await shared.ledger.applyUpTo(
        members,
        members.map(() => 'a'),
        undefined,
        cost,
      ),
    ]
  } else if (kind < 9 && book.ledger.tables[member]?.policy.rule.reserves) {
    const maxWaitUs = step.share % 7 === 0 ? 0 : step.share * step.pause * 100
    answers = [
      book.ledger.reserve(member, 'a', cost, now, maxWaitUs),
      await shared.ledger.reserve(member, 'a', undefined, cost, maxWaitUs),
    ]
  } else answers = [book.ledger.applySome([member], ['a'], [cost], now, true), await shared.take(member, 'a', cost)]
  if (answers[0].allowed) admitted.push(answers)
  return answers
}

describe('as in memory', () => {
  test.each(['steady', 'set'] as const)(
    'what is reserved, taken up to, settled and given back, clock %s',
    async (clock) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(anyRule, { minLength: 1, maxLength: 2 }),
          histories(25, clock),
          async (list, history) => {
            const specimens = list.map(specimenOf)
            const named = specimens.map(({ rule }, index) => ({ name: `p${index}`, rule }))
            const book = new Book(named.map(({ name, rule }) => [name, rule]))
            const shared = open(`verbs${runs++}`, named)
            shared.expires = clock === 'steady'
            const admitted: [Decision, Decision][] = []
            let now = startOf(specimens[0] as Specimen, history)
            let last: Decision | undefined
            for (const [index, step] of history.steps.entries()) {
              const specimen = specimens[step.share % specimens.length] as Specimen
              now = instantOf(specimen, step, now, last)
              shared.at(now)
              const [memory, remote] = await play(
                book,
                shared,
                admitted,
                step,
                now,
                costOf(specimen, step, last),
                list.length,
              )
              if (typeof memory === 'object') last = memory
              const say = (said: Decision | number | undefined) => (typeof said === 'object' ? shown(said) : said)
              expect({ index, said: say(remote) }).toEqual({ index, said: say(memory) })
            }
          },
        ),
        { numRuns },
      )
    },
  )
})
