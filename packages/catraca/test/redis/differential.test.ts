import { RedisProcess } from '@catraca/gateway/redis-server'
import type { Decision } from 'catraca'
import * as fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Answer } from '../model/judge.ts'
import { answerOf, Engine } from '../properties/support/engine.ts'
import { type History, histories, play } from '../properties/support/histories.ts'
import { type Setting, type Specimen, subjects } from '../properties/support/subjects.ts'
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
