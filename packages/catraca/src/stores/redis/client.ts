import { CatracaError, show } from '../../core/errors.ts'

/** What is used of a client of ioredis 5 or 6, or of iovalkey; alone or `Cluster`. */
export interface IoredisClient {
  readonly status: string
  readonly isCluster?: boolean
  evalsha(sha: string, ...rest: readonly string[]): Promise<unknown>
  eval(text: string, ...rest: readonly string[]): Promise<unknown>
  connect(): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

/** What is used of a client of node-redis 5 or 6. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  sendCommand(args: string[], options?: object): Promise<unknown>
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

/** What is used of a cluster of node-redis 5 or 6. */
export interface NodeRedisCluster {
  readonly isOpen: boolean
  readonly masters: readonly unknown[]
  sendCommand(firstKey: string | undefined, isReadonly: boolean, args: string[], options?: object): Promise<unknown>
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

/** A client of the application's own: it is connected, configured and closed by the application. */
export type RedisClient = IoredisClient | NodeRedisClient | NodeRedisCluster

/** `connecting`: for the first time, worth waiting for. `away`: reconnecting or closed, so nothing is sent. */
export type Connection = 'ready' | 'connecting' | 'away'

/** One client, whatever library it is of. */
export interface Wire {
  readonly connection: Connection
  readonly cluster: boolean
  /** True when all commands of an event-loop turn are written together at its end, so that batches cost no waiting. */
  readonly writesPerTurn: boolean
  /** `rest` is the number of keys, the keys, the arguments. */
  evalsha(sha: string, rest: readonly string[]): Promise<unknown>
  eval(text: string, rest: readonly string[]): Promise<unknown>
  /** Connects anew where the library can: the node that answers is not the primary any more. */
  reconnect(): void
  onReady(listener: () => void): () => void
}

/** Finds out what kind of client was given. Throws `CATRACA_OPTION_INVALID` for anything else. */
export function wireOf(client: unknown): Wire {
  const known = client as Partial<IoredisClient & NodeRedisClient & NodeRedisCluster> | null | undefined
  if (typeof known?.evalsha === 'function' && typeof known.status === 'string')
    return new IoredisWire(known as IoredisClient)
  if (typeof known?.sendCommand === 'function' && typeof known.isOpen === 'boolean') {
    if ('masters' in known && 'slots' in known) return new ClusterWire(known as NodeRedisCluster)
    return new NodeRedisWire(known as NodeRedisClient)
  }
  throw new CatracaError(
    'CATRACA_OPTION_INVALID',
    `redisStore.client is ${show(client)}; allowed: a client or cluster of ioredis, iovalkey or redis`,
    { path: 'redisStore.client', value: client },
  )
}

class IoredisWire implements Wire {
  readonly cluster: boolean
  readonly writesPerTurn = false
  private readonly client: IoredisClient
  private wasReady: boolean

  constructor(client: IoredisClient) {
    this.client = client
    this.cluster = client.isCluster === true
    this.wasReady = client.status === 'ready'
  }

  get connection(): Connection {
    const { status } = this.client
    if (status === 'ready') {
      this.wasReady = true
      return 'ready'
    }
    if (this.wasReady) return 'away'
    // A client that connects with its first command would queue it for as long as it takes; ours wait here.
    if (status === 'wait') this.client.connect().catch(() => {})
    return status === 'end' || status === 'close' || status === 'reconnecting' ? 'away' : 'connecting'
  }

  evalsha(sha: string, rest: readonly string[]): Promise<unknown> {
    return this.client.evalsha(sha, ...rest)
  }

  eval(text: string, rest: readonly string[]): Promise<unknown> {
    return this.client.eval(text, ...rest)
  }

  reconnect(): void {
    if (!this.cluster && this.client.status === 'ready') this.client.disconnect(true)
  }

  onReady(listener: () => void): () => void {
    this.client.on('ready', listener)
    return () => this.client.off('ready', listener)
  }
}

/** Version 6 arms a timer per command, which costs more than the command: ours go without, under a deadline of their own. */
const untimed = { timeout: 0 }

class NodeRedisWire implements Wire {
  readonly cluster = false
  readonly writesPerTurn = true
  private readonly client: NodeRedisClient
  private wasReady: boolean

  constructor(client: NodeRedisClient) {
    this.client = client
    this.wasReady = client.isReady
  }

  get connection(): Connection {
    const { isReady, isOpen } = this.client
    if (isReady) {
      this.wasReady = true
      return 'ready'
    }
    return isOpen && !this.wasReady ? 'connecting' : 'away'
  }

  evalsha(sha: string, rest: readonly string[]): Promise<unknown> {
    return this.client.sendCommand(['EVALSHA', sha, ...rest], untimed)
  }

  eval(text: string, rest: readonly string[]): Promise<unknown> {
    return this.client.sendCommand(['EVAL', text, ...rest], untimed)
  }

  reconnect(): void {}

  onReady(listener: () => void): () => void {
    this.client.on('ready', listener)
    return () => this.client.off('ready', listener)
  }
}

class ClusterWire implements Wire {
  readonly cluster = true
  readonly writesPerTurn = false
  private readonly client: NodeRedisCluster

  constructor(client: NodeRedisCluster) {
    this.client = client
  }

  get connection(): Connection {
    const { isOpen, masters } = this.client
    if (!isOpen) return 'away'
    return masters.length > 0 ? 'ready' : 'connecting'
  }

  evalsha(sha: string, rest: readonly string[]): Promise<unknown> {
    return this.client.sendCommand(rest[1], false, ['EVALSHA', sha, ...rest], untimed)
  }

  eval(text: string, rest: readonly string[]): Promise<unknown> {
    return this.client.sendCommand(rest[1], false, ['EVAL', text, ...rest], untimed)
  }

  reconnect(): void {}

  onReady(listener: () => void): () => void {
    this.client.on('ready', listener)
    return () => this.client.off('ready', listener)
  }
}
