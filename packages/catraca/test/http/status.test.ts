import { createGuard, statusAnswer } from 'catraca/http'
import { expect, test } from 'vitest'

const policies = {
  own: { per: 'client', rule: { algorithm: 'sliding-log', limit: 10, window: '1m' }, cost: 2 },
  all: { per: 'service', rule: { algorithm: 'sliding-log', limit: 100, window: '1m' } },
  strangers: {
    match: { identity: 'anonymous' },
    per: 'address',
    rule: { algorithm: 'quota', limit: 9, period: 'day' },
  },
  user: { per: 'user', rule: { algorithm: 'sliding-log', limit: 10, window: '1m' } },
  seen: { per: 'client', mode: 'observe', rule: { algorithm: 'sliding-log', limit: 5, window: '1h' } },
  off: { per: 'client', mode: 'off', rule: { algorithm: 'sliding-log', limit: 5, window: '1h' } },
} as const

test('a caller is told its own limits, and nothing of others', async () => {
  const guard = createGuard<string>({
    policies: { version: 1, policies },
    identify: (client) => ({ client }),
  })
  const request = { raw: 'c', method: 'GET', target: '/', peer: '10.0.0.1', header: () => undefined, units: 1 }
  await guard.ask(request)
  await guard.ask({ ...request, raw: 'd' })
  const { status, fields, body } = statusAnswer(await guard.status(request))
  expect(status).toBe(200)
  expect(fields).toEqual(['Content-Type', 'application/json', 'Cache-Control', 'no-store'])
  expect(JSON.parse(String(body))).toEqual({
    policies: [
      {
        policy: 'own',
        rule: '10 in any minute',
        scope: 'all routes',
        cost: 2,
        mode: 'enforce',
        limit: 10,
        used: 2,
        remaining: 8,
        resetAfterMs: expect.any(Number),
      },
      expect.objectContaining({ policy: 'seen', mode: 'observe', limit: 5, used: 1, remaining: 4 }),
    ],
  })
  expect(String(body).endsWith('}\n')).toBe(true)
  guard.close()
})

test('without own limits the list is empty', () => {
  expect(statusAnswer([]).body).toBe('{"policies":[]}\n')
})
