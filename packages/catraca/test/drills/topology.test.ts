import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisCluster, type Sentinels, startCluster, startSentinels } from '@catraca/gateway/redis-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { drillMs, full, run } from './drill.ts'
import { commonKey, hotKeys, keys, leasePlan } from './plan.ts'

let sentinels: Sentinels
let cluster: RedisCluster

beforeAll(async () => {
  ;[sentinels, cluster] = await Promise.all([startSentinels(), startCluster()])
}, 60_000)
afterAll(async () => {
  await Promise.all([sentinels?.stop(), cluster?.stop()])
})

test('slots of a cluster move to another node', { timeout: drillMs }, async () => {
  // Those of the keys that are asked for most. A key's name carries the key itself as its tag.
  const tags = [...keys.slice(0, hotKeys), commonKey]
  const move = async (): Promise<void> => {
    for (const tag of tags) {
      const slot = await cluster.slotOf(`{${tag}}`)
      const from = cluster.nodes.indexOf(cluster.nodeOf(slot))
      await cluster.moveSlot(slot, cluster.nodes[(from + 1) % cluster.nodes.length]!)
    }
  }
  const { faults } = await run({
    fault: 'cluster slots move, twice',
    target: { kind: 'cluster', ports: cluster.nodes.map(({ port }) => port) },
    begin: move,
    end: move,
    degrades: 'never',
  })
  expect(faults).toEqual([])
})

test('the primary dies and sentinels make its replica the primary', { timeout: drillMs }, async () => {
  const { faults } = await run({
    fault: 'sentinel failover',
    target: { kind: 'sentinel', ports: sentinels.sentinels, name: sentinels.name },
    begin: () => sentinels.primary.kill(),
    end: () => promoted(sentinels),
    momentary: true,
    degrades: 'once',
    // What the replica had not received yet is lost.
    lost: 'failover',
  })
  expect(faults).toEqual([])
})

// It takes a group of its own, which takes some seconds to start.
if (full) {
  test('the primary dies while processes hold units', { timeout: drillMs }, async () => {
    const group = await startSentinels()
    try {
      const { faults } = await run({
        fault: 'leases: sentinel failover',
        target: { kind: 'sentinel', ports: group.sentinels, name: group.name },
        begin: () => group.primary.kill(),
        end: () => promoted(group),
        momentary: true,
        degrades: 'once',
        lost: 'failover',
        plan: leasePlan,
      })
      expect(faults).toEqual([])
    } finally {
      await group.stop()
    }
  })
}

/** Resolves when the sentinels name the replica and it takes writes. */
async function promoted(group: Sentinels): Promise<void> {
  while (!(await isPromoted(group).catch(() => false))) await sleep(10)
}

/** Rejects while connections are being closed, as a server does that changes its role. */
async function isPromoted(group: Sentinels): Promise<boolean> {
  const { replica } = group
  const [role] = (await replica.command('ROLE')) as string[]
  return role === 'master' && (await group.primaryPort()) === replica.port
}
