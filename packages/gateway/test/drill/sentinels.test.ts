import { startSentinels } from '@catraca/gateway/redis-server'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'

it('replicates, fails over when told, there and back, and when the primary dies', async () => {
  const group = await startSentinels()
  onTestFinished(() => group.stop())
  const { primary, replica } = group
  expect([group.name, group.sentinels.length, await group.primaryPort()]).toEqual(['catraca', 3, primary.port])

  const client = new Redis({
    name: group.name,
    sentinels: group.sentinels.map((port) => ({ host: '127.0.0.1', port })),
  })
  onTestFinished(() => client.disconnect())
  client.on('error', () => {})
  await client.set('key', 'value')
  expect(await client.wait(1, 5_000)).toBe(1)
  expect(await replica.command('GET', 'key')).toBe('value')
  await expect(replica.command('SET', 'key', 'other')).rejects.toThrow('READONLY')

  await group.failover()
  expect(await group.primaryPort()).toBe(replica.port)
  expect(await replica.command('SET', 'key', 'other')).toBe('OK')
  await expect(primary.command('SET', 'key', 'value')).rejects.toThrow('READONLY')

  await group.failover()
  expect(await group.primaryPort()).toBe(primary.port)

  await primary.kill()
  await expect.poll(() => group.primaryPort(), { timeout: 30_000, interval: 100 }).toBe(replica.port)
}, 90_000)

it('leaves no process behind', async () => {
  const group = await startSentinels()
  await group.stop()
  await group.stop()
  const all = [group.primary, group.replica, ...group.sentinelProcesses]
  expect(all.map(({ pid }) => pid)).toEqual(Array.from({ length: 5 }, () => undefined))
  await expect(group.primaryPort()).rejects.toThrow()
}, 60_000)
