import type { RedisEntry } from '@catraca/config'
import type { Listeners, RemoteStore } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { addressOf, redisClient, timeoutOf } from './redis-client.ts'
import type { StoreEvent } from './store-event.ts'

/** The store is gone: since when and why. */
export interface Outage {
  readonly since: Date
  readonly cause: string
}

/**
 * The store that a document asks for: its client, and what is told of it. An outage is told once at its beginning, by
 * whoever notices it first, the connection or a decision, and once at its end; retries in between are not told.
 */
export class SharedStore {
  readonly store: RemoteStore
  /** Where it is, without name and password. */
  readonly address: string
  /** Listeners for the guard over it. */
  readonly listeners: Listeners
  private readonly client: Redis
  private readonly timeoutMs: number
  private readonly tell: (event: StoreEvent) => void
  private current: (Outage & { readonly beganMs: number }) | undefined
  /** True while decisions are made without the store: then they say when it is over. */
  private decided = false
  /** Why there is no connection. */
  private failure: string | undefined

  /** Connects when a guard uses it. */
  constructor(entry: RedisEntry, tell: (event: StoreEvent) => void) {
    this.tell = tell
    this.address = addressOf(entry)
    this.timeoutMs = timeoutOf(entry)
    this.client = redisClient(entry)
    this.client.on('error', (error: NodeJS.ErrnoException) => {
      // What comes for several addresses of a name has no words of its own. Words of others have no secrets: only the
      // command that failed has, and it is not looked at.
      this.failure = error.message || error.code || 'unknown'
      this.begin(this.failure)
    })
    this.client.on('ready', () => {
      // The client would go on in database 0, which is not what was asked for.
      if (this.failure?.includes('DB index') === true) {
        this.client.disconnect(true)
        return
      }
      this.failure = undefined
      if (!this.decided) this.end(0)
    })
    const { prefix } = entry
    this.store = redisStore({
      client: this.client,
      timeoutMs: this.timeoutMs,
      ...(prefix !== undefined && { prefix }),
    })
    this.listeners = this.guardListeners()
  }

  /** The outage under way. */
  get outage(): Outage | undefined {
    return this.current
  }

  /** Does not wait for a store that is gone. */
  close(): void {
    this.store.close()
    this.client.disconnect()
  }

  private guardListeners(): Listeners {
    return {
      degraded: ({ cause }) => {
        this.decided = true
        this.begin(this.causeWords(cause))
      },
      recovered: ({ decisions }) => {
        this.decided = false
        this.end(decisions)
      },
      'store.fault': ({ policy, key, cause }) =>
        this.tell({ type: 'fault', policy, key, cause: this.causeWords(cause) }),
      'store.lost': (lost) => this.tell({ type: 'lost', ...lost }),
      'loop.paused': ({ pauseMs }) => this.tell({ type: 'paused', pauseMs }),
    }
  }

  private begin(cause: string): void {
    if (this.current !== undefined) return
    this.current = { since: new Date(), cause, beganMs: performance.now() }
    this.tell({ type: 'degraded', cause })
  }

  private end(decisions: number): void {
    if (this.current === undefined) return
    const durationMs = performance.now() - this.current.beganMs
    this.current = undefined
    this.tell({ type: 'recovered', durationMs, decisions })
  }

  private causeWords(cause: unknown): string {
    const { kind, message } = cause as { kind?: unknown; message?: unknown }
    if (kind === 'gone') return this.failure ?? 'the connection was lost'
    if (kind === 'slow') return this.failure ?? `no answer within ${this.timeoutMs} ms`
    return String(message ?? cause)
  }
}
