import { type RedisCluster, type RedisProcess, startCluster } from '@catraca/gateway/redis-server'
import { Cluster } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'

async function start(): Promise<RedisCluster> {
  const cluster = await startCluster()
  onTestFinished(() => cluster.stop())
  return cluster
}

/** A key, its slot, its node and another node. */
async function place(cluster: RedisCluster, key: string): Promise<[number, RedisProcess, RedisProcess]> {
  const slot = await cluster.slotOf(key)
  const from = cluster.nodeOf(slot)
  return [slot, from, cluster.nodes.find((node) => node !== from)!]
}

describe('startCluster', () => {
  it('shares all slots among three nodes, each of which knows who has a key', async () => {
    const cluster = await start()
    expect(cluster.nodes.length).toBe(3)
    for (const node of cluster.nodes) {
      expect(await node.command('CLUSTER', 'INFO')).toContain('cluster_slots_ok:16384')
    }
    expect(await cluster.slotOf('{user}.a')).toBe(await cluster.slotOf('user'))
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const [, owner, other] = await place(cluster, key)
      expect(await owner.command('SET', key, 'value')).toBe('OK')
      await expect(other.command('GET', key)).rejects.toThrow(new RegExp(`^MOVED \\d+ 127.0.0.1:${owner.port}$`))
    }
    expect(() => cluster.nodeOf(16_384)).toThrow('allowed: 0 to 16383')
  }, 60_000)

  it('moves a slot in steps, between which both nodes answer as the protocol says', async () => {
    const cluster = await start()
    const [slot, from, to] = await place(cluster, 'key')
    await from.command('SET', 'key', 'value')
    await cluster.beginMove(slot, to)
    expect(await from.command('GET', 'key')).toBe('value')
    await expect(from.command('GET', '{key}.none')).rejects.toThrow(`ASK ${slot} 127.0.0.1:${to.port}`)
    await expect(to.command('GET', 'key')).rejects.toThrow(`MOVED ${slot} 127.0.0.1:${from.port}`)
    await cluster.migrateKeys(slot, to)
    expect(cluster.nodeOf(slot)).toBe(from)
    await expect(from.command('GET', 'key')).rejects.toThrow(`ASK ${slot} 127.0.0.1:${to.port}`)
    await cluster.endMove(slot, to)
    expect(cluster.nodeOf(slot)).toBe(to)
    expect(await to.command('GET', 'key')).toBe('value')
    for (const node of cluster.nodes.filter((node) => node !== to)) {
      await expect(node.command('GET', 'key')).rejects.toThrow(`MOVED ${slot} 127.0.0.1:${to.port}`)
    }
  }, 60_000)

  it('moves a slot with more keys than one step takes, under a client that follows', async () => {
    const cluster = await start()
    const client = new Cluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
    onTestFinished(() => client.disconnect())
    const keys = Array.from({ length: 250 }, (_, at) => `{tag}.${at}`)
    for (const key of keys) await client.set(key, key)
    const [slot, from, to] = await place(cluster, 'tag')
    await cluster.moveSlot(slot, to)
    expect(await from.command('DBSIZE')).toBe(0)
    expect(await to.command('DBSIZE')).toBe(250)
    expect(await client.mget(keys)).toEqual(keys)
    await cluster.moveSlot(slot, from)
    expect(await client.mget(keys)).toEqual(keys)
  }, 60_000)

  it('takes a killed node back with its slots', async () => {
    const cluster = await start()
    const [, owner, other] = await place(cluster, 'key')
    await owner.command('SET', 'key', 'value')
    await owner.kill()
    const state = async (): Promise<string> => String(await other.command('CLUSTER', 'INFO'))
    await expect.poll(state, { timeout: 30_000, interval: 50 }).toContain('cluster_state:fail')
    await owner.restart()
    const get = (): Promise<unknown> => owner.command('GET', 'key').catch(String)
    await expect.poll(get, { timeout: 30_000, interval: 50 }).toBe(null)
    await expect.poll(state, { timeout: 30_000, interval: 50 }).toContain('cluster_state:ok')
  }, 90_000)
})
