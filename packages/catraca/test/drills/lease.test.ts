import { FaultProxy, RedisProcess } from '@catraca/gateway/redis-server'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminOf } from './admin.ts'
import { type Drill, drillMs, full, run } from './drill.ts'
import type { Outcome } from './outcome.ts'
import { leasePlan } from './plan.ts'

/** Instances hold units: what is admitted must keep the law and the bounds of leases through whatever happens. */

let server: RedisProcess
let proxy: FaultProxy
let admin: Redis

beforeAll(async () => {
  server = await RedisProcess.start()
  proxy = await FaultProxy.start(server.port)
  admin = adminOf(server)
})
afterAll(async () => {
  admin?.disconnect()
  await proxy?.close()
  await server?.stop()
})

/** Nothing is handed out again unless a drill says so: the leases of the plan outlast its rules. */
function outcomeOf(drill: Omit<Drill, 'target' | 'plan'>): Promise<Outcome> {
  const target = { kind: 'single', ports: [proxy.port] } as const
  return run({ capacities: 0, ...drill, target, plan: leasePlan })
}

async function faultsOf(drill: Omit<Drill, 'target' | 'plan'>): Promise<readonly string[]> {
  return (await outcomeOf(drill)).faults
}

if (full) {
  test('answers take a fifth of the deadline', { timeout: drillMs }, async () => {
    const faults = await faultsOf({
      fault: 'leases: network 5 ms each way',
      begin: () => proxy.set({ delayMs: 5 }),
      end: () => proxy.set('pass'),
      degrades: 'never',
    })
    expect(faults).toEqual([])
  })

  test('nothing happens', { timeout: drillMs }, async () => {
    expect(await faultsOf({ fault: 'leases: nothing', begin: () => {}, degrades: 'never' })).toEqual([])
  })
}

test('a process dies with the units it holds', { timeout: drillMs }, async () => {
  const faults = await faultsOf({
    fault: 'leases: a process is killed',
    begin: (fleet) => fleet.signal(1, 'SIGKILL'),
    hurt: 1,
    degrades: 'never',
  })
  expect(faults).toEqual([])
})

test('a process stands still for longer than its leases last', { timeout: drillMs }, async () => {
  const faults = await faultsOf({
    fault: 'leases: a process stands still',
    begin: (fleet) => fleet.signal(1, 'SIGSTOP'),
    end: (fleet) => fleet.signal(1, 'SIGCONT'),
    leastMs: 3_500,
    hurt: 1,
    degrades: 'never',
  })
  expect(faults).toEqual([])
})

test('the wall clock of a process is put forward and back', { timeout: drillMs }, async () => {
  const outcome = await outcomeOf({
    fault: 'leases: wall clock of a process',
    begin: (fleet) => fleet.stepWall(1, 90_000),
    end: (fleet) => fleet.stepWall(1, -90_000),
    steppedWall: true,
    degrades: 'never',
  })
  expect(outcome.faults).toEqual([])
  expect(outcome.events['clock.step']).toBeGreaterThan(0)
})

test('answers come after the deadline', { timeout: drillMs }, async () => {
  const faults = await faultsOf({
    fault: 'leases: network 300 ms each way',
    begin: () => proxy.set({ delayMs: 300 }),
    end: () => proxy.set('pass'),
    degrades: 'once',
  })
  expect(faults).toEqual([])
})

// At once: after an outage that is longer than the rules count nothing is left that could be handed out again.
test('the store is killed and started again at once without its memory', { timeout: drillMs }, async () => {
  const faults = await faultsOf({
    fault: 'leases: kill -9 and restart',
    begin: () => server.restart(),
    momentary: true,
    degrades: 'once',
    lost: 'restart',
  })
  expect(faults).toEqual([])
})

test('the memory is flushed', { timeout: drillMs }, async () => {
  const faults = await faultsOf({
    fault: 'leases: FLUSHALL',
    begin: () => admin.flushall(),
    momentary: true,
    degrades: 'never',
    lost: 'flush',
  })
  expect(faults).toEqual([])
})
