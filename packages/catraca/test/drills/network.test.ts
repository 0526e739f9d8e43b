import { setTimeout as sleep } from 'node:timers/promises'
import { FaultProxy, RedisProcess } from '@catraca/gateway/redis-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { drillMs, run } from './drill.ts'
import type { Target } from './fleet.ts'

let server: RedisProcess
let proxy: FaultProxy
let target: Target

beforeAll(async () => {
  server = await RedisProcess.start()
  proxy = await FaultProxy.start(server.port)
  target = { kind: 'single', ports: [proxy.port] }
})
afterAll(async () => {
  await proxy?.close()
  await server?.stop()
})

test('the network is slower than the deadline', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'network 300 ms each way',
    target,
    // So long that no answer comes in time, were the deadline begun anew some times for a process that stood still.
    begin: () => proxy.set({ delayMs: 300 }),
    end: () => proxy.set('pass'),
    degrades: 'once',
  })
  expect(faults).toEqual([])
})

test('the network swallows everything', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'network black hole',
    target,
    begin: () => proxy.set('blackhole'),
    end: () => proxy.set('pass'),
    degrades: 'once',
  })
  expect(faults).toEqual([])
})

test('the network resets connections', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'network resets',
    target,
    begin: () => proxy.set('reset'),
    end: () => proxy.set('pass'),
    degrades: 'once',
  })
  expect(faults).toEqual([])
})

test('the network comes and goes', { timeout: drillMs }, async () => {
  const flaps = new AbortController()
  let done: Promise<void> | undefined
  const { faults } = await run({
    fault: 'network flaps',
    target,
    begin: () => {
      done = flap(flaps.signal)
    },
    end: () => {
      flaps.abort()
      return done
    },
    degrades: 'often',
  })
  expect(faults).toEqual([])
})

/** Cuts connections off for as long as it takes to be found gone, again and again. Ends with the network there. */
async function flap(end: AbortSignal): Promise<void> {
  while (!end.aborted) {
    await proxy.set('reset')
    await sleep(150)
    await proxy.set('pass')
    await sleep(600)
  }
}
