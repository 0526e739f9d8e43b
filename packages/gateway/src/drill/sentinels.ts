import { RedisProcess, type RedisProcessOptions, waitFor } from './redis-process.ts'

const name = 'catraca'
const quickSync = ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0']

/** A primary, its replica and three sentinels that watch them, two of which must agree. */
export class Sentinels {
  /** What the sentinels call the primary. */
  readonly name = name

  /** The one that started as the primary. */
  readonly primary: RedisProcess
  /** The one that started as the replica. */
  readonly replica: RedisProcess
  readonly sentinelProcesses: readonly RedisProcess[]

  constructor(primary: RedisProcess, replica: RedisProcess, sentinelProcesses: readonly RedisProcess[]) {
    this.primary = primary
    this.replica = replica
    this.sentinelProcesses = sentinelProcesses
  }

  /** The ports of the sentinels, on 127.0.0.1. */
  get sentinels(): number[] {
    return this.sentinelProcesses.map(({ port }) => port)
  }

  /** Where the primary is, by the first sentinel that answers. Rejects when none does. */
  async primaryPort(): Promise<number> {
    return Promise.any(this.sentinelProcesses.map(announcedPort))
  }

  /**
   * Makes the replica the primary. Resolves when all sentinels that run announce it, it takes writes, and the old
   * primary, where it runs, is its replica. Rejects after 30 s.
   */
  async failover(): Promise<void> {
    const before = await this.primaryPort()
    const running = this.sentinelProcesses.filter(({ pid }) => pid !== undefined)
    await waitFor('a sentinel starts the failover', async () => {
      if ((await this.primaryPort()) === before) await running[0]?.command('SENTINEL', 'FAILOVER', name)
      return true
    })
    await waitFor('all sentinels announce the new primary', async () => {
      const ports = await Promise.all(running.map(announcedPort))
      return ports.every((port) => port === ports[0] && port !== before)
    })
    const [old, next] = this.primary.port === before ? [this.primary, this.replica] : [this.replica, this.primary]
    await waitFor('the new primary takes writes', async () => (await infoOf(next, 'role')) === 'master')
    if (old.pid !== undefined) await inSync(old)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinelProcesses, this.primary, this.replica].map((process) => process.stop()))
  }
}

/**
 * Starts them on free ports: down after 500 ms, failover timeout 2 s. Resolves when the replica is in sync and the
 * sentinels know it and each other, after some seconds.
 */
export async function startSentinels(): Promise<Sentinels> {
  const started: RedisProcess[] = []
  const start = async (options: RedisProcessOptions): Promise<RedisProcess> => {
    const process = await RedisProcess.start(options)
    started.push(process)
    return process
  }
  try {
    const primary = await start({ args: quickSync })
    const replica = await start({ args: [...quickSync, '--replicaof', `127.0.0.1 ${primary.port}`] })
    await inSync(replica)
    const config = sentinelConfig(primary.port)
    const sentinels: RedisProcess[] = []
    for (let i = 0; i < 3; i++) sentinels.push(await start({ config, args: ['--sentinel'] }))
    await Promise.all(sentinels.map(hurry))
    await waitFor('the sentinels know the replica and each other', async () => {
      const ready = await Promise.all(sentinels.map(isReady))
      return ready.every(Boolean)
    })
    return new Sentinels(primary, replica, sentinels)
  } catch (error) {
    await Promise.all(started.map((process) => process.stop()))
    throw error
  }
}

function sentinelConfig(port: number): string {
  return `sentinel monitor ${name} 127.0.0.1 ${port} 2
sentinel down-after-milliseconds ${name} 500
sentinel failover-timeout ${name} 2000
sentinel parallel-syncs ${name} 1
`
}

/** Asks and announces each fifth of a second, not each ten and two. Redis 6 cannot, and takes longer. */
async function hurry(sentinel: RedisProcess): Promise<void> {
  await sentinel.command('SENTINEL', 'DEBUG', 'INFO-PERIOD', '200', 'PUBLISH-PERIOD', '200').catch(() => {})
}

function inSync(replica: RedisProcess): Promise<void> {
  return waitFor('the replica is in sync', async () => (await infoOf(replica, 'master_link_status')) === 'up')
}

async function isReady(sentinel: RedisProcess): Promise<boolean> {
  const primary = fields(await sentinel.command('SENTINEL', 'MASTER', name))
  const [replica] = (await sentinel.command('SENTINEL', 'REPLICAS', name)) as unknown[]
  const known = primary['num-other-sentinels'] === '2' && primary['flags'] === 'master'
  return known && replica !== undefined && fields(replica)['master-link-status'] === 'ok'
}

async function announcedPort(sentinel: RedisProcess): Promise<number> {
  const [, port] = (await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as string[]
  return Number(port)
}

async function infoOf(process: RedisProcess, field: string): Promise<string | undefined> {
  const text = String(await process.command('INFO', 'replication'))
  return new RegExp(`^${field}:(\\S+)`, 'm').exec(text)?.[1]
}

/** A flat reply of names and values as an object. */
function fields(reply: unknown): Record<string, string | undefined> {
  const flat = reply as string[]
  return Object.fromEntries(flat.flatMap((field, at) => (at % 2 === 0 ? [[field, flat[at + 1]]] : [])))
}
