import { RedisProcess } from '@catraca/gateway/redis-server'
import type { RemoteStore } from 'catraca'
import { createGuard, type Jobs, type Verdict, type Work } from 'catraca/http'
import type { PolicyDocument, PolicyEntry } from 'catraca/policy'
import { redisStore } from 'catraca/redis'
import { faultyStore } from 'catraca/testing'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { connect } from '../redis/support.ts'
import { type Asked, identityOf, request } from './requests.ts'

let redis: RedisProcess
beforeAll(async () => {
  redis = await RedisProcess.start()
})
afterAll(() => redis.stop())

const kinds = ['stale', 'degrade', 'accept', 'mark'] as const
type Kind = (typeof kinds)[number]

/** A limit that nothing comes back to but what is given back. */
interface Limit {
  readonly burst: number
  readonly cost: number
  /** Costs fewer units where it is degraded. */
  readonly cheaper: number
}

/** What a run is about: one policy of the address stage, two of the identity stage, which list the same answers. */
interface Setting {
  readonly net: Limit
  readonly a: Limit
  readonly b: Limit
  readonly netList: readonly Kind[]
  readonly list: readonly Kind[]
  readonly attempts: boolean
}

type Step =
  | { ask: 'GET' | 'POST'; target: number; client: string }
  | { release: true }
  | { run: true }
  | { refund: true }

const permits = 1_000

function documentOf({ net, a, b, netList, list, attempts }: Setting): PolicyDocument {
  const entry = ({ burst, cost }: Limit): Pick<PolicyEntry, 'cost' | 'rule'> => ({
    cost,
    rule: { algorithm: 'fixed-window', limit: burst, window: '365d', anchor: 'first' },
  })
  const listed = (of: readonly Kind[], { cheaper }: Limit): PolicyEntry['overflow'] & object => [
    ...of.map((kind): OverflowEntry => {
      if (kind === 'stale') return { stale: { maxAge: '1h' } }
      return kind === 'degrade' ? { degrade: { cost: cheaper } } : kind
    }),
    'reject',
  ]
  return {
    version: 1,
    defaults: { expectedInstances: 2 },
    policies: {
      net: { per: 'address', ...entry(net), overflow: listed(netList, net), ...(attempts && { charge: 'attempts' }) },
      a: { per: 'client', ...entry(a), overflow: listed(list, a) },
      b: { per: 'service', ...entry(b), overflow: listed(list, b) },
      permits: { per: 'service', rule: { algorithm: 'concurrency', limit: permits, permitTtl: '1h' } },
      watched: {
        per: 'service',
        mode: 'observe',
        rule: { algorithm: 'fixed-window', limit: 100_000, window: '365d', anchor: 'first' },
      },
    },
  }
}

type OverflowEntry = (PolicyEntry['overflow'] & object)[number]
type Name = 'net' | 'a' | 'b'

/** The rules of charging as the guide states them, on plain numbers. */
class Model {
  readonly used = new Map<string, number>()
  held = 0
  watched = 0
  /** Of the last request: true where its handler is told to do less, or of a mark. */
  told = false
  readonly copies = new Set<string>()
  readonly works: { client: string; paid: boolean }[] = []
  /** Of requests that went on: what each charged. */
  readonly under: { charged: Map<string, number>; netKept: boolean }[] = []
  private readonly setting: Setting

  constructor(setting: Setting) {
    this.setting = setting
  }

  ask(method: 'GET' | 'POST', target: number, client: string): string {
    const copy = `${client} ${target}`
    const charged = new Map<string, number>()
    let answer = 'pass'
    this.told = false
    for (const [names, list] of [
      [['net'], this.setting.netList],
      [['a', 'b'], this.setting.list],
    ] as [Name[], readonly Kind[]][]) {
      if (names[0] === 'a') this.watched++
      const found = this.answer(names, list, method, client, copy, charged)
      if (found === 'accept') this.works.push({ client, paid: this.setting.attempts && charged.has('net') })
      if (found === 'stale' || found === 'accept' || found === 'reject') {
        this.giveBack(charged, this.setting.attempts)
        return found
      }
      if (found !== 'pass') answer = found
      if (found === 'degrade' || found === 'mark') this.told = true
    }
    this.held++
    this.under.push({ charged, netKept: this.setting.attempts })
    return answer
  }

  run(): void {
    const work = this.works[0]
    if (work === undefined) return
    const charged = new Map<string, number>()
    const costs = (names: Name[]): [Name, number][] => names.map((name) => [name, this.setting[name].cost])
    if (!work.paid && !this.charge(costs(['net']), work.client, charged)) return
    if (this.charge(costs(['a', 'b']), work.client, charged)) {
      this.works.shift()
      return
    }
    if (this.setting.attempts) work.paid = true
    this.giveBack(charged, this.setting.attempts)
  }

  refund(): void {
    const last = this.under.pop()
    if (last === undefined) return
    this.held--
    this.giveBack(last.charged, last.netKept)
  }

  usedOf(name: Name, client: string): number {
    return this.used.get(this.key(name, client)) ?? 0
  }

  private key(name: Name, client: string): string {
    return name === 'a' ? `a ${client}` : name
  }

  private answer(
    names: Name[],
    list: readonly Kind[],
    method: string,
    client: string,
    copy: string,
    charged: Map<string, number>,
  ): Kind | 'pass' | 'reject' {
    const full = names.map((name): [Name, number] => [name, this.setting[name].cost])
    if (this.charge(full, client, charged)) return 'pass'
    const over = full.filter(([name, cost]) => !this.fits(name, cost, client)).map(([name]) => name)
    for (const kind of list) {
      // At the address nobody knows yet whose copy it would be.
      const known = names[0] === 'a'
      if (kind === 'stale' && known && method === 'GET' && this.copies.has(copy)) return kind
      if (kind === 'accept' && method === 'POST') return kind
      if (kind === 'degrade') {
        const less = full.map(([name, cost]): [Name, number] => [
          name,
          over.includes(name) ? this.setting[name].cheaper : cost,
        ])
        if (this.charge(less, client, charged)) return kind
      }
      if (kind === 'mark') {
        const others = full.filter(([name]) => !over.includes(name))
        if (this.charge(others, client, charged)) return kind
      }
    }
    return 'reject'
  }

  private fits(name: Name, cost: number, client: string): boolean {
    return this.usedOf(name, client) + cost <= this.setting[name].burst
  }

  private charge(costs: readonly [Name, number][], client: string, charged: Map<string, number>): boolean {
    if (!costs.every(([name, cost]) => this.fits(name, cost, client))) return false
    for (const [name, cost] of costs) {
      const key = this.key(name, client)
      this.used.set(key, (this.used.get(key) ?? 0) + cost)
      charged.set(key, cost)
    }
    return true
  }

  private giveBack(charged: ReadonlyMap<string, number>, keepsNet: boolean): void {
    for (const [key, cost] of charged) {
      if (key === 'net' && keepsNet) continue
      this.used.set(key, (this.used.get(key) ?? 0) - cost)
    }
  }
}

const bucket = fc
  .record({ burst: fc.integer({ min: 4, max: 9 }), cost: fc.integer({ min: 2, max: 4 }) })
  .chain(({ burst, cost }) => fc.integer({ min: 1, max: cost - 1 }).map((cheaper): Limit => ({ burst, cost, cheaper })))
/** Nothing stands behind mark but reject. */
const list = fc
  .uniqueArray(fc.constantFrom(...kinds), { maxLength: 4 })
  .map((all) => (all.includes('mark') ? [...all.filter((kind) => kind !== 'mark'), 'mark' as const] : all))
/** At the address the caller is not known yet, so nothing is accepted. */
const netList = list.map((all) => all.filter((kind) => kind !== 'accept'))
const setting = fc.record({ net: bucket, a: bucket, b: bucket, netList, list, attempts: fc.boolean() })
const asking = fc.record({
  ask: fc.constantFrom('GET' as const, 'POST' as const),
  target: fc.integer({ min: 0, max: 1 }),
  client: fc.constantFrom('x', 'y'),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: asking },
  fc.constantFrom({ release: true as const }, { run: true as const }, { refund: true as const }),
)

let runs = 0

/** Where the states live, the runs of sequences there, and how to end. */
const homes: [name: string, numRuns: number, start: () => { store?: RemoteStore; end: () => void }][] = [
  ['in memory', 150, () => ({ end: () => {} })],
  ['in a shared store', 60, () => ({ store: faultyStore(), end: () => {} })],
  [
    'in Redis',
    25,
    () => {
      const client = connect(redis.port)
      const store = redisStore({ client, prefix: `charges-${++runs}`, timeoutMs: 10_000 })
      return {
        store,
        end: () => {
          store.close()
          client.disconnect()
        },
      }
    },
  ],
]

test.each(homes)('whatever is answered, each policy is charged what the rules say, %s', async (_, numRuns, start) => {
  const run = async (given: Setting, steps: readonly Step[]): Promise<void> => {
    const works: Work<Asked>[] = []
    const jobs: Jobs<Asked> = {
      path: '/jobs',
      submit: (work) => `job-${String(works.push(work)).padStart(20, '0')}`,
      find: () => undefined,
      close: () => {},
    }
    const { store, end } = start()
    const guard = createGuard<Asked>({
      policies: documentOf(given),
      identify: identityOf,
      jobs,
      ...(store !== undefined && { store: store as never }),
    })
    const model = new Model(given)
    const open: Verdict[] = []
    try {
      for (const one of steps) {
        if ('ask' in one) {
          const { ask: method, target, client } = one
          const expected = model.ask(method, target, client)
          const verdict = await guard.ask(request({ method, target: `/${target}`, identity: { client } }))
          expect(verdict.answer).toBe(expected)
          if (verdict.allowed) open.push(verdict)
          expect(verdict.told !== undefined).toBe(verdict.allowed && model.told)
          const stale = given.list.includes('stale') || given.netList.includes('stale')
          if (verdict.allowed && method === 'GET') {
            verdict.keep?.({ status: 200, fields: [], body: new Uint8Array(1) })
            if (stale && verdict.keep !== undefined) model.copies.add(`${client} ${target}`)
            expect(verdict.keep !== undefined).toBe(stale && !model.told)
          }
        } else if ('release' in one) {
          const verdict = open[0]
          if (verdict !== undefined && verdict.holds) {
            guard.release(verdict)
            // A second time does nothing.
            guard.release(verdict)
            model.held--
            open.shift()
            model.under.shift()
          }
        } else if ('refund' in one) {
          const verdict = open.pop()
          if (verdict !== undefined) guard.refund(verdict)
          model.refund()
        } else if (works[0] !== undefined) {
          const before = model.works.length
          model.run()
          const waitMs = await works[0].ready()
          expect(waitMs === 0).toBe(model.works.length < before)
          if (waitMs === 0) works.shift()?.over()
        }
        for (const client of ['x', 'y']) {
          const wanted = {
            net: model.usedOf('net', client),
            a: model.usedOf('a', client),
            b: model.usedOf('b', client),
            permits: model.held,
            watched: model.watched,
          }
          const look = async (): Promise<void> => {
            const attributes = { client, address: '192.0.2.1' }
            const explained = await Promise.resolve(guard.explain({ method: 'GET', path: '/', attributes }))
            const used = Object.fromEntries(explained.map(({ policy, says }) => [policy, says.limit - says.remaining]))
            expect(used, JSON.stringify(one)).toEqual(wanted)
          }
          // Nobody waits for what is given back to a store.
          await (store === undefined ? look() : vi.waitFor(look, { interval: 2, timeout: 5_000 }))
        }
      }
    } finally {
      guard.close()
      end()
    }
  }
  await fc.assert(fc.asyncProperty(setting, fc.array(step, { maxLength: 25 }), run), { numRuns })
})
