import { RedisProcess, waitFor } from './redis-process.ts'

const slotCount = 16_384
const settings = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-node-timeout', '1000']

/** Three primaries without replicas that share all 16384 slots. A restarted node keeps its slots, not their keys. */
export class RedisCluster {
  readonly nodes: readonly RedisProcess[]
  private readonly ids: ReadonlyMap<RedisProcess, string>
  private readonly owners: RedisProcess[]

  constructor(nodes: readonly RedisProcess[], ids: ReadonlyMap<RedisProcess, string>) {
    this.nodes = nodes
    this.ids = ids
    this.owners = Array.from({ length: slotCount }, (_, slot) => nodes[Math.floor((slot * nodes.length) / slotCount)]!)
  }

  /** The node that owns `slot`, 0 to 16383; during a move still the old one. */
  nodeOf(slot: number): RedisProcess {
    const owner = this.owners[slot]
    if (owner === undefined) throw new RangeError(`slot ${slot}; allowed: 0 to ${slotCount - 1}`)
    return owner
  }

  async slotOf(key: string): Promise<number> {
    return Number(await this.nodes[0]!.command('CLUSTER', 'KEYSLOT', key))
  }

  /** Moves a slot with its keys: the three steps below in a row. */
  async moveSlot(slot: number, to: RedisProcess): Promise<void> {
    await this.beginMove(slot, to)
    await this.migrateKeys(slot, to)
    await this.endMove(slot, to)
  }

  /** From here on the old owner answers ASK for keys that it does not have. Rejects when `to` owns the slot. */
  async beginMove(slot: number, to: RedisProcess): Promise<void> {
    const from = this.nodeOf(slot)
    await to.command('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', this.idOf(from))
    await from.command('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', this.idOf(to))
  }

  /** Hands the keys of the slot over; before it the old owner answers for them, after it ASK. */
  async migrateKeys(slot: number, to: RedisProcess): Promise<void> {
    const from = this.nodeOf(slot)
    for (;;) {
      const keys = (await from.command('CLUSTER', 'GETKEYSINSLOT', String(slot), '100')) as string[]
      if (keys.length === 0) return
      await from.command('MIGRATE', '127.0.0.1', String(to.port), '', '0', '5000', 'KEYS', ...keys)
    }
  }

  /** Makes `to` the owner. Resolves when all nodes answer MOVED to it. */
  async endMove(slot: number, to: RedisProcess): Promise<void> {
    const from = this.nodeOf(slot)
    const others = this.nodes.filter((node) => node !== to && node !== from)
    for (const node of [to, from, ...others]) {
      await node.command('CLUSTER', 'SETSLOT', String(slot), 'NODE', this.idOf(to))
    }
    this.owners[slot] = to
    await waitFor('all nodes know the new owner', async () => {
      const ports = await Promise.all(this.nodes.map((node) => portOfSlot(node, slot)))
      return ports.every((port) => port === to.port)
    })
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()))
  }

  private idOf(node: RedisProcess): string {
    const id = this.ids.get(node)
    if (id === undefined) throw new Error(`the node at port ${node.port} is not of this cluster`)
    return id
  }
}

/** Starts one on free ports, each node's bus on its port and 10000. Resolves when all nodes serve, after some seconds. */
export async function startCluster(): Promise<RedisCluster> {
  const nodes: RedisProcess[] = []
  try {
    for (let i = 0; i < 3; i++) nodes.push(await RedisProcess.start({ args: settings }))
    const ids = new Map<RedisProcess, string>()
    for (const node of nodes) ids.set(node, String(await node.command('CLUSTER', 'MYID')))
    const cluster = new RedisCluster(nodes, ids)
    for (const [at, node] of nodes.entries()) {
      const slots = Array.from({ length: slotCount }, (_, slot) => slot).filter((slot) => cluster.nodeOf(slot) === node)
      await node.command('CLUSTER', 'ADDSLOTS', ...slots.map(String))
      // Without numbers of their own the nodes would have to settle who comes first.
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(at + 1))
      if (at > 0) await nodes[0]!.command('CLUSTER', 'MEET', '127.0.0.1', String(node.port))
    }
    await waitFor('the cluster serves on all nodes', async () => {
      const infos = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')))
      return infos.every((info) => /cluster_state:ok/.test(String(info)) && /cluster_known_nodes:3/.test(String(info)))
    })
    return cluster
  } catch (error) {
    await Promise.all(nodes.map((node) => node.stop()))
    throw error
  }
}

/** The port of the owner of `slot`, as `node` has it. */
async function portOfSlot(node: RedisProcess, slot: number): Promise<number | undefined> {
  const ranges = (await node.command('CLUSTER', 'SLOTS')) as [number, number, [string, number]][]
  return ranges.find(([first, last]) => first <= slot && slot <= last)?.[2][1]
}
