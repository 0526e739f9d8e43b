import { createGuard } from 'catraca/http'
import type { PolicyDocument, PolicyEntry } from 'catraca/policy'
import { policyProblems } from 'catraca/policy'
import { describe, expect, test } from 'vitest'
import { type Asked, ask, identityOf } from './requests.ts'

const bucket = (limit: number) => ({ algorithm: 'token-bucket', limit, window: '1h', burst: limit })
const documentOf = (policies: Record<string, PolicyEntry>): PolicyDocument => ({ version: 1, policies })
const guardOf = (policies: Record<string, PolicyEntry>) =>
  createGuard<Asked>({ policies: documentOf(policies), identify: identityOf })

const acme: Asked = { identity: { client: 'acme' } }

describe('a policy that is enforced for some clients', () => {
  test.each<[string, Partial<PolicyEntry>]>([
    ['counts addresses before any client is known', { per: 'address' }],
    ['counts networks before any client is known', { per: 'address/24' }],
    ['is for callers who are no client', { per: 'address', match: { identity: 'anonymous' } }],
  ])('is an error of the document where it %s', (_, more) => {
    const mode = { enforce: { percent: 10, clients: ['acme'] } }
    const problems = policyProblems(documentOf({ net: { per: 'address', rule: bucket(1), ...more, mode } }))
    expect(problems).toMatchObject([
      { code: 'CATRACA_OPTION_INVALID', place: ['policies', 'net', 'mode', 'enforce', 'clients'] },
    ])
    const other = { enforce: { percent: 10 } }
    expect(policyProblems(documentOf({ net: { per: 'address', rule: bucket(1), ...more, mode: other } }))).toEqual([])
  })

  test('counts every request by one of the two where it stands in for another', () => {
    for (const per of ['client', 'service', ['client', 'address']]) {
      const guard = guardOf({
        old: { per: 'client', rule: bucket(1_000) },
        new: { per, insteadOf: 'old', rule: bucket(1_000), mode: { enforce: { percent: 30, clients: ['acme'] } } },
      })
      for (let index = 0; index < 60; index++) {
        const client = index === 0 ? 'acme' : `c${index}`
        const names = ask(guard, { identity: { client } }).admitted.map(({ policy }) => policy.name)
        expect(names.length, `${String(per)} ${client}`).toBe(1)
        if (index === 0) expect(names).toEqual(['new'])
      }
    }
  })
})

test('a policy for strangers that is enforced for a part guards the verification of that part alone', async () => {
  let verified = 0
  const guard = createGuard<Asked>({
    policies: documentOf({
      strangers: {
        match: { identity: 'anonymous' },
        per: 'address',
        rule: bucket(2),
        mode: { enforce: { percent: 50 }, else: 'off' },
      },
    }),
    identify: () => {
      verified++
      return undefined
    },
  })
  const tried: number[] = []
  for (let host = 1; host <= 40; host++) {
    const before = verified
    for (let index = 0; index < 5; index++) {
      await guard.ask({
        method: 'GET',
        target: '/',
        peer: `192.0.2.${host}`,
        raw: {},
        header: (name) => (name === 'authorization' ? `Bearer ${index}` : undefined),
      })
    }
    tried.push(verified - before)
  }
  expect(new Set(tried)).toEqual(new Set([2, 5]))
})

test('a candidate is asked where its policy is asked in any way, and goes by its own plan', () => {
  const guard = createGuard<Asked>({
    policies: {
      version: 1,
      plans: { names: ['free', 'pro'], default: 'free' },
      policies: {
        client: {
          per: 'client',
          rule: bucket(3),
          mode: { enforce: { percent: 0, clients: ['acme'] } },
          candidate: { rule: bucket(1), plans: { pro: { limit: 2, burst: 2 } } },
        },
      },
    },
    identify: identityOf,
  })
  const wouldRefuse = (client: string, plan: string) => {
    for (let index = 0; index < 4; index++) ask(guard, { identity: { client, plan } })
    return [guard.counts.policies['client']?.refused, guard.counts.policies['client.candidate']?.wouldRefuse]
  }
  expect(wouldRefuse('acme', 'free')).toEqual([1, 3])
  expect(wouldRefuse('bravo', 'pro')).toEqual([1, 5])
})

test('the mode of one policy may change with each request, and nothing is lost or refused but by its limit', () => {
  const guard = guardOf({ client: { per: 'client', rule: bucket(10) }, all: { per: 'service', rule: bucket(100) } })
  let refused = 0
  for (let index = 0; index < 40; index++) {
    const percent = index % 3 === 0 ? 100 : 0
    guard.setMode('client', index % 2 === 0 ? 'enforce' : { enforce: { percent, clients: [] }, else: 'observe' })
    const verdict = ask(guard, acme)
    if (verdict.allowed) continue
    refused++
    expect(verdict.decision?.policy).toBe('client')
  }
  expect(guard.counts.policies['client']?.admitted).toBe(10)
  expect(guard.counts.policies['all']?.admitted).toBe(40 - refused)
})

test('who is in by a member of the body is found by reading it', () => {
  for (const otherwise of ['off', 'observe'] as const) {
    const mode = { enforce: { percent: 50 }, else: otherwise }
    const guard = guardOf({ event: { per: 'body:event', rule: bucket(1), mode } })
    const refused = Array.from({ length: 40 }, (_, event) => {
      const asked = { method: 'POST', body: { event } }
      ask(guard, asked)
      return !ask(guard, asked).allowed
    })
    // A binomial of 40 halves: 20, give or take four deviations of 3.2.
    expect(refused.filter(Boolean).length).toSatisfy((count: number) => count > 7 && count < 33)
  }
})
