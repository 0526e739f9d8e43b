import { type ChildProcess, fork } from 'node:child_process'
import type { Worker as ClusterWorker } from 'node:cluster'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Channel, channelOf, primaryStore } from 'catraca/workers'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from './support.ts'

const script = fileURLToPath(new URL('./worker.case.mjs', import.meta.url))
const window = '1000d'

interface Said {
  readonly allowed: boolean
  readonly degraded: boolean
  readonly reason: string
  readonly remaining: number
  readonly left: readonly number[]
}

type Plan = readonly {
  readonly name: string
  readonly rules: Record<string, readonly [kind: string, options: object]>
  readonly mode?: 'local' | 'open' | 'closed'
}[]

/** A process with a built library, as a user's. */
class Process {
  readonly child: ChildProcess
  private readonly waiting = new Map<number, (said: unknown) => void>()
  private lastId = 0

  constructor(serialization: 'json' | 'advanced') {
    const { NODE_OPTIONS: _, ...env } = process.env
    this.child = fork(script, { execArgv: [], env, serialization })
    this.child.on('error', () => {})
    this.child.on('message', ({ id, said }: { id: number; said: unknown }) => this.waiting.get(id)?.(said))
    onTestFinished(() => void this.child.kill('SIGKILL'))
  }

  order(order: string, rest: object): Promise<unknown> {
    const id = ++this.lastId
    return new Promise((resolve) => {
      this.waiting.set(id, resolve)
      this.child.send({ order, id, ...rest })
    })
  }

  async take(name: string, keys: string | object, times = 1, more: object = {}): Promise<Said[]> {
    return (await this.order('take', { name, keys, times, ...more })) as Said[]
  }
}

/** So many processes over a memory in this one. */
async function processes(count: number, plan: Plan, serialization: 'json' | 'advanced' = 'json'): Promise<Process[]> {
  const primary = primaryStore()
  onTestFinished(() => primary.close())
  const all = Array.from({ length: count }, () => new Process(serialization))
  for (const { child } of all) primary.attach(channelOf(child))
  await Promise.all(all.map(({ child }) => once(child, 'message')))
  await Promise.all(all.map((one) => one.order('open', { workers: count, plan })))
  return all
}

const allowed = (said: readonly Said[]): number => said.filter((one) => one.allowed).length
const first = ([one]: readonly Said[]): Said => one as Said

const limit100 = { api: ['fixedWindow', { limit: 100, window }] } as const
const permits = { api: ['concurrency', { limit: 10, permitTtl: '1h' }] } as const

let types: ((worker: ClusterWorker, child: ChildProcess) => Channel[]) | undefined
beforeAll(() => {
  types = (worker, child) => [channelOf(worker), channelOf(child), channelOf(process)]
})

describe('four processes', () => {
  test.each(['json', 'advanced'] as const)('admit exactly 100 of 800, messages as %s', async (serialization) => {
    const all = await processes(4, [{ name: 'api', rules: limit100 }], serialization)
    const said = (await Promise.all(all.map((one) => one.take('api', 'k', 200)))).flat()
    expect(said).toHaveLength(800)
    expect([allowed(said), said.filter(({ degraded }) => degraded).length]).toEqual([100, 0])
    expect(types).toBeDefined()
  })

  test('charge a stack all or nothing', async () => {
    const rules = {
      user: ['tokenBucket', { limit: 30, window }],
      tenant: ['quota', { limit: 50, period: 'year' }],
    } as const
    const all = await processes(4, [{ name: 'stack', rules }])
    const ask = (one: Process, user: string, times: number): Promise<Said[]> =>
      one.take('stack', { user, tenant: 't' }, times)
    const said = await Promise.all(all.map((one, index) => ask(one, `u${index}`, 20)))
    expect(allowed(said.flat())).toBe(50)
    for (const [index, mine] of said.entries()) {
      const { left } = first(await ask(all[(index + 1) % 4] as Process, `u${index}`, 1))
      expect(Math.round(left[0] as number)).toBe(30 - allowed(mine))
    }
  })

  test('hold no more permits than there are, which come back', async () => {
    const all = await processes(4, [{ name: 'api', rules: permits }])
    const said = await Promise.all(all.map((one) => one.take('api', 'k', 5, { hold: true })))
    expect(allowed(said.flat())).toBe(10)
    expect(said.flat().find((one) => !one.allowed)?.reason).toBe('concurrency')
    await Promise.all(all.map((one) => one.order('releaseAll', { name: 'api' })))
    expect(allowed(await (all[3] as Process).take('api', 'k', 20))).toBe(10)
  })

  test('give back, reset and block for each other', async () => {
    const [one, other] = (await processes(2, [{ name: 'api', rules: limit100 }])) as [Process, Process]
    expect(await one.order('refund', { name: 'api', keys: 'k', cost: 40 })).toBe(40)
    expect(first(await other.take('api', 'k', 1, { cost: 70 })).remaining).toBe(30)
    await one.order('block', { name: 'api', keys: 'k', ms: 3_600_000 })
    expect(first(await other.take('api', 'k')).reason).toBe('blocked')
    await other.order('reset', { name: 'api', keys: 'k' })
    expect(first(await one.take('api', 'k')).remaining).toBe(99)
  })
})

test('a process that is killed gives back its permits; what it used stays used', async () => {
  const plan = [
    { name: 'permits', rules: permits },
    { name: 'api', rules: limit100 },
  ]
  const [one, other] = (await processes(2, plan)) as [Process, Process]
  expect(allowed(await one.take('permits', 'k', 8, { hold: true }))).toBe(8)
  expect(allowed(await other.take('permits', 'k', 1, { hold: true }))).toBe(1)
  await one.take('api', 'k', 1, { cost: 60 })
  one.child.kill('SIGKILL')
  await eventually('they are back', async () => allowed(await other.take('permits', 'k', 1, { cost: 9 })) === 1)
  expect(allowed(await other.take('permits', 'k', 1))).toBe(0)
  expect(first(await other.take('api', 'k')).remaining).toBe(39)
})
