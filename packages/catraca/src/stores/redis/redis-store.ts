import type { Source } from '../../core/decision.ts'
import { CatracaError, show } from '../../core/errors.ts'
import { rejectUnknown } from '../../core/parameters.ts'
import { aside } from '../failure/aside.ts'
import { FailoverLedger } from '../failure/failover-ledger.ts'
import { StoreHealth } from '../failure/store-health.ts'
import { memoryStore } from '../memory/memory-store.ts'
import type { Central, CentralLedger, RemoteHooks, RemoteLedger, RemoteStore, StoreFailureOptions } from '../remote.ts'
import type { Memory } from './ask-grant.ts'
import { Calls } from './calls.ts'
import { type RedisClient, type Wire, wireOf } from './client.ts'
import { Grants } from './grants.ts'
import { Pulse } from './pulse.ts'
import { type LedgerStore, RedisLedger } from './redis-ledger.ts'

/** Options of {@link redisStore}. */
export interface RedisStoreOptions {
  /** A client or cluster of ioredis 5 or 6, iovalkey, or redis 5 or 6. The application connects, configures and closes it. */
  client: RedisClient
  /** Begins the name of every key. Default `catraca`. No braces. */
  prefix?: string
  /** Milliseconds after which a decision is made without the store. Default 50. */
  timeoutMs?: number
}

const optionNames = ['client', 'prefix', 'timeoutMs'] as const
const defaultTimeoutMs = 50

/**
 * States in Redis 6.2 or later, or Valkey, shared by all processes that use the same prefix and names: one script call per
 * decision, exact, by the server's clock. Without the server the declared failure modes decide after `timeoutMs` at most.
 *
 * @example
 * const store = redisStore({ client: new Redis(url), prefix: 'shop' })
 * const limiter = createLimiter(tokenBucket({ limit: 600, window: '1m' }), { name: 'api', store })
 * const decision = await limiter.take('client:7')
 */
export function redisStore(options: RedisStoreOptions): RemoteStore {
  rejectUnknown(optionNames, options, 'redisStore')
  const { client, prefix = 'catraca', timeoutMs = defaultTimeoutMs } = options
  if (typeof prefix !== 'string' || !/^[^{}\s]{1,64}$/.test(prefix)) {
    throw invalid('prefix', prefix, '1 to 64 characters, none of them a brace or a blank')
  }
  if (typeof timeoutMs !== 'number' || !(timeoutMs >= 1 && timeoutMs <= 60_000)) {
    throw invalid('timeoutMs', timeoutMs, 'milliseconds from 1 to 60000')
  }
  return new RedisStore(wireOf(client), prefix, timeoutMs)
}

function invalid(option: string, value: unknown, allowed: string): CatracaError {
  const path = `redisStore.${option}`
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}

class RedisStore implements RemoteStore, LedgerStore {
  readonly remote = true
  readonly calls: Calls
  readonly grants: Grants
  readonly prefix: string
  readonly cluster: boolean
  readonly atomic: 'stack' | 'tag'
  private readonly pulse: Pulse
  private readonly health: StoreHealth
  /** Keeps the local shares of all limiters from outage to outage. */
  private readonly local = memoryStore()
  private readonly hooks = new Map<string, RemoteHooks>()
  private closed = false

  constructor(wire: Wire, prefix: string, timeoutMs: number) {
    this.prefix = prefix
    this.cluster = wire.cluster
    this.atomic = wire.cluster ? 'tag' : 'stack'
    this.calls = new Calls(wire, timeoutMs, (pauseMs) => this.tell((hooks) => hooks.paused(pauseMs)))
    this.pulse = new Pulse(wire, this.calls, prefix, (kind, atRisk) => this.tell((hooks) => hooks.lost(kind, atRisk)))
    const { pulse } = this
    const { cluster } = wire
    const memory: Memory = {
      markerKey: cluster ? undefined : pulse.markerKey,
      get marker() {
        return pulse.marker
      },
      get lostUs() {
        return pulse.lostUs
      },
      suspect: () => pulse.look(),
    }
    this.grants = new Grants(this.calls, memory)
    const central: Central = {
      open: (name, policies) => this.openCentral(name, policies),
      probe: () => pulse.read(),
      get liveInstances() {
        return pulse.instances
      },
    }
    this.health = new StoreHealth(central)
  }

  open(name: string, policies: readonly Source[], hooks: RemoteHooks, failure: StoreFailureOptions): RemoteLedger {
    if (this.closed) throw new CatracaError('CATRACA_LIMITER_CLOSED', 'the store was closed')
    const ledger = new FailoverLedger(this.health, this.local, name, policies, hooks, failure)
    this.hooks.set(name, hooks)
    this.pulse.start()
    return ledger
  }

  charged(): void {
    this.pulse.charged++
  }

  rebased(name: string, stepMs: number): void {
    const hooks = this.hooks.get(name)
    if (hooks !== undefined) aside(() => hooks.rebased(stepMs))
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.pulse.stop()
    this.health.close()
    this.local.close()
    this.tell((hooks) => hooks.closed())
    this.hooks.clear()
  }

  private openCentral(name: string, policies: readonly Source[]): CentralLedger {
    return new RedisLedger(this, name, policies, () => {
      this.hooks.delete(name)
      if (this.hooks.size === 0) this.pulse.stop()
    })
  }

  private tell(hook: (hooks: RemoteHooks) => void): void {
    for (const hooks of this.hooks.values()) aside(() => hook(hooks))
  }
}
