import { RedisProcess } from '@catraca/gateway/redis-server'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminOf } from './admin.ts'
import { drillMs, full, run } from './drill.ts'
import type { Target } from './fleet.ts'

let server: RedisProcess
let admin: Redis
let target: Target

beforeAll(async () => {
  server = await RedisProcess.start()
  admin = adminOf(server)
  target = { kind: 'single', ports: [server.port] }
})
afterAll(async () => {
  admin?.disconnect()
  await server?.stop()
})

test('the server is killed and started again', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'kill -9 and restart',
    target,
    begin: () => server.kill(),
    end: () => server.restart(),
    degrades: 'once',
    lost: 'restart',
  })
  expect(faults).toEqual([])
})

test('the server is stopped and goes on', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'SIGSTOP and SIGCONT',
    target,
    begin: () => server.pause(),
    end: () => server.resume(),
    degrades: 'once',
  })
  expect(faults).toEqual([])
})

test('the scripts are flushed', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'SCRIPT FLUSH',
    target,
    begin: () => admin.script('FLUSH'),
    momentary: true,
    degrades: 'never',
  })
  expect(faults).toEqual([])
})

test('the memory is flushed', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'FLUSHALL',
    target,
    begin: () => admin.flushall(),
    momentary: true,
    degrades: 'never',
    lost: 'flush',
  })
  expect(faults).toEqual([])
})

test('the memory is full and freed', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'memory full, noeviction',
    target,
    begin: async () => {
      await admin.config('SET', 'maxmemory-policy', 'noeviction')
      await admin.config('SET', 'maxmemory', '30mb')
      // Taken as the memory is not full before it.
      await admin.setrange('ballast', 40_000_000, 'x')
    },
    end: () => admin.del('ballast'),
    degrades: 'once',
  })
  await admin.config('SET', 'maxmemory', '0')
  expect(faults).toEqual([])
})

test('the password changes and changes back', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'wrong password',
    target,
    begin: async () => {
      await admin.config('SET', 'requirepass', 'another')
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    },
    end: () => admin.config('SET', 'requirepass', ''),
    degrades: 'once',
  })
  expect(faults).toEqual([])
})

// In short form the password stands for both.
if (full) {
  test('the rights are taken and given back', { timeout: drillMs }, async () => {
    const { faults } = await run({
      fault: 'ACL without scripts',
      target,
      begin: () => admin.call('ACL', 'SETUSER', 'default', '-@scripting'),
      end: () => admin.call('ACL', 'SETUSER', 'default', '+@all'),
      degrades: 'once',
    })
    expect(faults).toEqual([])
  })
}

test('the server becomes a replica and a primary again', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'read-only replica',
    target,
    // Of nobody, so that it keeps its memory.
    begin: () => admin.replicaof('127.0.0.1', 1),
    end: () => admin.replicaof('NO', 'ONE'),
    degrades: 'once',
  })
  expect(faults).toEqual([])
})
