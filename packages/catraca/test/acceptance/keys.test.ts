import { createLimiter, fixedWindow, tokenBucket } from 'catraca'
import { describe, expect, test } from 'vitest'

const users = Array.from({ length: 400 }, (_, index) => `user:${index}`)
const hundred = Array.from({ length: 100 })

describe.each([
  { name: 'fixed window', perMinute: (limit: number) => fixedWindow({ limit, window: '1m' }) },
  { name: 'token bucket', perMinute: (limit: number) => tokenBucket({ limit, window: '1m' }) },
])('$name', ({ perMinute }) => {
  test('acceptance 104: 400 users of 100 per minute are 40 000 for a tenant; a tenant limit makes them 5000', () => {
    const alone = createLimiter(perMinute(100))
    const both = createLimiter({ user: perMinute(100), tenant: perMinute(5_000) })
    let [withoutTenant, withTenant] = [0, 0]
    for (const user of users) {
      for (const _ of hundred) {
        if (alone.take(user, { now: 0 }).allowed) withoutTenant++
        if (both.take({ user, tenant: 't1' }, { now: 0 }).allowed) withTenant++
      }
    }
    expect(withoutTenant).toBe(40_000)
    expect(withTenant).toBe(5_000)
  })
})

describe('user 10, tenant 15, two users with 10 requests each', () => {
  const play = () => {
    const limiter = createLimiter({
      user: tokenBucket({ limit: 10, window: '1m' }),
      tenant: tokenBucket({ limit: 15, window: '1m' }),
    })
    const ten = Array.from({ length: 10 })
    const first = ten.map(() => limiter.take({ user: 'u1', tenant: 't' }, { now: 0 }))
    const second = ten.map(() => limiter.take({ user: 'u2', tenant: 't' }, { now: 0 }))
    return { limiter, first, second }
  }

  test('acceptance 105: a request must pass both: 15 are admitted, and the answer names the limit that refused', () => {
    const { limiter, first, second } = play()
    expect([...first, ...second].filter(({ allowed }) => allowed).length).toBe(15)
    for (const refused of second.slice(5)) {
      expect(refused).toMatchObject({ allowed: false, policy: 'tenant', reason: 'limited', limit: 15, remaining: 0 })
      expect(refused.policies.map(({ policy, allowed }) => [policy, allowed])).toEqual([
        ['user', true],
        ['tenant', false],
      ])
    }
    const byUser = limiter.take({ user: 'u1', tenant: 'other' }, { now: 0 })
    expect(byUser).toMatchObject({ allowed: false, policy: 'user', limit: 10, remaining: 0 })
  })

  test('acceptance 106: the refusals by the tenant do not spend the user: 5 pass, 5 are refused, 5 are left', () => {
    const { limiter, second } = play()
    expect(second.map(({ allowed }) => allowed)).toEqual([...Array(5).fill(true), ...Array(5).fill(false)])
    const left = (tenant: string) => limiter.peek({ user: 'u2', tenant }, { now: 0 }).policies
    expect(left('t')[0]).toMatchObject({ policy: 'user', remaining: 5 })
    const more = Array.from({ length: 10 }, () => limiter.take({ user: 'u2', tenant: 'fresh' }, { now: 0 }))
    expect(more.filter(({ allowed }) => allowed).length).toBe(5)
  })
})
