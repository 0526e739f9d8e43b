import { RedisProcess } from '@catraca/gateway/redis-server'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminOf } from './admin.ts'
import { drillMs, run } from './drill.ts'
import type { Outcome } from './outcome.ts'

/**
 * Puts the clock that worker-client.mjs adds to the server's time where it is told, and moves the ends of all keys as a
 * real step would: Redis keeps them as instants.
 */
const step = `
local stepUs = ARGV[1] - (redis.call('GET', 'drill-clock') or 0)
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then redis.call('PEXPIRE', key, string.format('%.0f', left - stepUs / 1000)) end
end
redis.call('SET', 'drill-clock', ARGV[1])`

let server: RedisProcess
let admin: Redis

beforeAll(async () => {
  server = await RedisProcess.start()
  admin = adminOf(server)
})
afterAll(async () => {
  admin?.disconnect()
  await server?.stop()
})

function stepTo(us: number): Promise<unknown> {
  return admin.eval(step, 0, String(us))
}

async function drill(fault: string, from: number, to: number, capacities: number): Promise<Outcome> {
  await stepTo(from)
  const begin = (): Promise<unknown> => stepTo(to)
  const target = { kind: 'single', ports: [server.port] } as const
  return run({ fault, target, begin, momentary: true, degrades: 'never', capacities, clockUs: [from, to] })
}

test('the clock of the server jumps forward', { timeout: drillMs }, async () => {
  // Five seconds in which nobody asked: all windows are over and all buckets are full, once.
  const { faults } = await drill('clock forward 5 s', 0, 5_000_000, 1)
  expect(faults).toEqual([])
})

test('the clock of the server jumps back', { timeout: drillMs }, async () => {
  // The stored time wins until the clock has caught up.
  const { faults } = await drill('clock back 5 s', 5_000_000, 0, 0)
  expect(faults).toEqual([])
})

test('the clock of the server jumps back by minutes', { timeout: drillMs }, async () => {
  // A broken clock is left behind, with what was used.
  const outcome = await drill('clock back 120 s', 0, -120_000_000, 0)
  expect(outcome.faults).toEqual([])
  expect(outcome.events['clock.step']).toBeGreaterThan(0)
})
