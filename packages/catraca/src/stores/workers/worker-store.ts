import type { LeaseTerms, Source } from '../../core/decision.ts'
import { CatracaError, show } from '../../core/errors.ts'
import { rejectUnknown } from '../../core/parameters.ts'
import type { Rule } from '../../core/rule.ts'
import { aside } from '../failure/aside.ts'
import { FailoverLedger } from '../failure/failover-ledger.ts'
import { StoreHealth } from '../failure/store-health.ts'
import { defaultTtlUs } from '../lease/terms.ts'
import { memoryStore } from '../memory/memory-store.ts'
import type {
  Central,
  CentralLedger,
  RemoteHooks,
  RemoteLedger,
  RemoteStore,
  Siblings,
  StoreFailureOptions,
} from '../remote.ts'
import type { Channel } from './channel.ts'
import { Questions } from './questions.ts'
import type { Answer } from './wire.ts'
import { WorkerLedger } from './worker-ledger.ts'

/** Options of {@link workerStore}. */
export interface WorkerStoreOptions {
  /** To the process that holds the memory, such as `channelOf(process)`. */
  channel: Channel
  /** How many processes share that memory: 1 to 1,000. */
  workers: number
  /** Milliseconds after which a decision is made without the memory: 1 to 60,000. Default 1,000. */
  timeoutMs?: number
}

const optionNames = ['channel', 'workers', 'timeoutMs'] as const
/** Long: a primary that is busy is not gone, and one that is gone is known at once. */
const defaultTimeoutMs = 1_000
const maxWorkers = 1_000
/** The blocks of all workers together are this part of the limit at most. */
const leasedPart = 20
const maxBlock = 100

/**
 * States in the memory of another process of this machine, the primary, shared by all processes that use it: exact, by
 * the primary's clock, a message there and back per turn of the event loop. The primary calls `primaryStore().attach` with
 * its end of the channel. Once the channel is gone the declared failure modes decide at once; a primary that does not
 * answer is waited for `timeoutMs` at most. Throws a `CatracaError` for options that are not allowed.
 *
 * @example
 * const store = workerStore({ channel: channelOf(process), workers: 4 })
 * const limiter = createLimiter(tokenBucket({ limit: 600, window: '1m' }), { name: 'api', store })
 * const decision = await limiter.take('client:7')
 */
export function workerStore(options: WorkerStoreOptions): RemoteStore {
  rejectUnknown(optionNames, options, 'workerStore')
  const { channel, workers, timeoutMs = defaultTimeoutMs } = options
  if (typeof channel?.send !== 'function') throw invalid('channel', channel, 'a channel such as channelOf(process)')
  if (!Number.isSafeInteger(workers) || workers < 1 || workers > maxWorkers) {
    throw invalid('workers', workers, `a whole number of processes from 1 to ${maxWorkers}`)
  }
  if (typeof timeoutMs !== 'number' || !(timeoutMs >= 1 && timeoutMs <= 60_000)) {
    throw invalid('timeoutMs', timeoutMs, 'milliseconds from 1 to 60000')
  }
  return new WorkerStore(channel, workers, timeoutMs)
}

function invalid(option: string, value: unknown, allowed: string): CatracaError {
  const path = `workerStore.${option}`
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}

/**
 * How workers hold units of a rule whose policy says nothing of it: blocks of 1 / (20 × workers) of the limit, at most 100
 * units, for 10 s; below 2 units, and where units are billed, held or have a place in a queue, not at all.
 *
 * Bound. A worker holds at most H = ceil(13 × block ÷ 10) units of a key, so over any span all of them admit at most
 * workers × H more than the rule does. With block ≤ limit ÷ (20 × workers) that is below
 * workers × (1.3 × limit ÷ (20 × workers) + 1) = 6.5 % of the limit, and one unit per worker for the rounding.
 */
export function siblingsLease(rule: Rule, workers: number): LeaseTerms | undefined {
  if (rule.lease === 'never') return undefined
  const block = Math.min(maxBlock, Math.floor(rule.limit / (leasedPart * workers)))
  return block < 2 ? undefined : { block, ttlUs: defaultTtlUs }
}

class WorkerStore implements RemoteStore {
  readonly remote = true
  readonly atomic = 'stack'
  readonly siblings: Siblings
  private readonly questions: Questions
  private readonly health: StoreHealth
  /** Keeps the local shares of all limiters from outage to outage. */
  private readonly local = memoryStore()
  /** By the number of the ledger. */
  private readonly hooks = new Map<number, RemoteHooks>()
  private opened = 0
  private closed = false

  constructor(channel: Channel, workers: number, timeoutMs: number) {
    this.siblings = { count: workers, lease: (rule) => siblingsLease(rule, workers) }
    this.questions = new Questions(
      channel,
      timeoutMs,
      (pauseMs) => this.tell((hooks) => hooks.paused(pauseMs)),
      (answer) => this.hear(answer),
    )
    const central: Central = {
      open: (name, policies) => this.openCentral(name, policies),
      probe: () =>
        new Promise((resolve, failed) => {
          this.questions.ask(['probe'], { answered: () => resolve(), failed })
        }),
      liveInstances: workers,
    }
    this.health = new StoreHealth(central)
  }

  open(name: string, policies: readonly Source[], hooks: RemoteHooks, failure: StoreFailureOptions): RemoteLedger {
    if (this.closed) throw new CatracaError('CATRACA_LIMITER_CLOSED', 'the store was closed')
    const ledger = new FailoverLedger(this.health, this.local, name, policies, hooks, failure)
    this.hooks.set(this.opened, hooks)
    return ledger
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.questions.close()
    this.health.close()
    this.local.close()
    this.tell((hooks) => hooks.closed())
    this.hooks.clear()
  }

  private openCentral(name: string, policies: readonly Source[]): CentralLedger {
    const number = ++this.opened
    return new WorkerLedger(this.questions, number, name, policies, () => this.hooks.delete(number))
  }

  /** Passes on what the primary has to tell of a ledger. */
  private hear([, ledger, hook, ...rest]: Answer & readonly [0, ...unknown[]]): void {
    const hooks = this.hooks.get(ledger as number)
    if (hooks === undefined) return
    if (hook === 'evicted') aside(() => hooks.evicted(...(rest as [string, string, boolean])))
    else if (hook === 'rebased') aside(() => hooks.rebased(...(rest as [number])))
  }

  private tell(hook: (hooks: RemoteHooks) => void): void {
    for (const hooks of this.hooks.values()) aside(() => hook(hooks))
  }
}
