import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { budgetOf, findingsOf, type Policies, type Policy, readPolicies } from 'catraca/policy'
import { describe, expect, test } from 'vitest'
import { designDocument } from '../../catraca/test/guard/documents.ts'
import { policyPart, readGatewayText } from '../src/index.ts'

const folder = fileURLToPath(new URL('../../gateway/presets/', import.meta.url))

function text(name: string): string {
  return readFileSync(`${folder}${name}.yaml`, 'utf8')
}

function policies(name: string): Policies {
  const read = readGatewayText(text(name), name)
  expect(read.problems).toEqual([])
  return readPolicies(policyPart({ ...read.document }) as never)
}

function policy(name: string, of: string): Policy {
  return policies(name).list.find((one) => one.name === of) as Policy
}

function rate(limit: unknown, windowMs: unknown): number {
  return (Number(limit) * 1_000) / Number(windowMs)
}

function perSecond({ base }: Policy): number {
  return rate(base.rule.options['limit'], base.rule.options['windowMs'])
}

const names = ['edge', 'login', 'partner', 'strict']

test('there are these', () => {
  expect(readdirSync(folder).toSorted()).toEqual(names.map((name) => `${name}.yaml`))
})

describe('each preset', () => {
  for (const name of names) {
    test(`${name} is complete and gives no warning`, () => {
      for (const authenticated of [false, name === 'strict' || name === 'partner']) {
        expect(findingsOf(policies(name), { authenticated }).filter(({ level }) => level === 'warning')).toEqual([])
      }
    })

    test(`${name} names the schema, listens, asks the upstream of the environment, exempts health`, () => {
      expect(text(name).split('\n')[0]).toBe(
        '# yaml-language-server: $schema=./node_modules/@catraca/config/schema/gateway.json',
      )
      const { document } = readGatewayText(text(name), name)
      expect(document).toMatchObject({
        version: 1,
        listen: { port: 8080 },
        upstreams: { app: 'http://127.0.0.1:3000' },
        trust: { proxies: 0 },
        defaults: { onStoreFailure: 'local' },
        exempt: { routes: ['GET /health/**'] },
      })
      const other = readGatewayText(text(name), name, { UPSTREAM: 'https://api.example', PORT: '80' }).document
      expect(other).toMatchObject({ listen: { port: 80 }, upstreams: { app: 'https://api.example' } })
    })
  }

  test('and so does the design document', () => {
    expect(findingsOf(readPolicies(designDocument)).filter(({ level }) => level === 'warning')).toEqual([])
  })
})

test('acceptance 107: what is tried at a login is at most a tenth of what is read', () => {
  const read = { edge: 'per-address', strict: 'anonymous', login: 'per-address' }
  for (const [name, other] of Object.entries(read)) {
    expect(perSecond(policy(name, 'login'))).toBeLessThanOrEqual(perSecond(policy(name, other)) / 10)
  }
  for (const one of ['sms', 'recovery']) {
    expect(perSecond(policy('login', one))).toBeLessThanOrEqual(perSecond(policy('login', 'per-address')) / 10)
  }
})

test('acceptance 117: the rates of the plans; a class that is not known is free', () => {
  for (const name of ['strict', 'partner']) {
    const { base, byPlan } = policy(name, 'per-client')
    const numbers = [base, byPlan?.get('pro'), byPlan?.get('enterprise')].map((variant) => {
      const { limit, windowMs, burst } = variant?.rule.options ?? {}
      return [rate(limit, windowMs), burst]
    })
    expect(numbers).toEqual([
      [1, 10],
      [10, 90],
      [100, 900],
    ])
    expect(perSecond(policy(name, 'anonymous'))).toBeCloseTo(1 / 3, 12)
    expect(policy(name, 'anonymous').base.rule.limit).toBe(5)
    expect(policies(name).defaultPlan).toBe('free')
    expect(byPlan?.has('free')).toBe(false)
  }
})

test('acceptance 149: logins are closed without the store, others are not', () => {
  for (const name of names) {
    for (const one of policies(name).list) {
      const guarded = ['login', 'sms', 'recovery'].includes(one.name)
      expect([name, one.name, one.onStoreFailure]).toEqual([name, one.name, guarded ? 'closed' : 'local'])
    }
  }
  expect(policies('login').list.filter(({ onStoreFailure }) => onStoreFailure === 'closed')).toHaveLength(3)
})

test('D32: the two sizes of a caller who is not known', () => {
  expect(policy('edge', 'per-address').base.rule.options).toEqual({ limit: 10, windowMs: 1_000, burst: 20 })
  expect(policy('edge', 'whole-service').base.rule.options).toMatchObject({ limit: 1_000, windowMs: 1_000 })
  expect(policy('strict', 'anonymous').base.rule.options).toEqual({ limit: 20, windowMs: 60_000, burst: 5 })
})

test('partner: dear calls have a budget of their own', () => {
  const dear = policy('partner', 'expensive')
  expect([dear.entry.insteadOf, dear.cost]).toEqual(['per-client', 25])
  expect(policy('partner', 'per-client').displacedBy.map(({ name }) => name)).toEqual(['expensive'])
  expect(policy('partner', 'daily').base.rule.algorithm).toBe('quota')
  expect(policy('partner', 'in-flight').base.rule.algorithm).toBe('concurrency')
  expect(budgetOf(policies('partner'))).toBeUndefined()
})
