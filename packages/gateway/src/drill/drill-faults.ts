import type { FaultProxy } from './fault-proxy.ts'
import type { RedisProcess } from './redis-process.ts'

/** What a fault is made with. */
export interface Target {
  readonly proxy: FaultProxy
  /** Undefined where the Redis is the user's own. */
  readonly redis: RedisProcess | undefined
}

/** Something that happens to the store. */
export interface Fault {
  readonly words: string
  /** True while no decision can come from the store. */
  readonly outage: boolean
  /** True when the store forgets what was used. */
  readonly forgets: boolean
  /** True when it happens on the way to the store, so that it can be made to a Redis of the user's own. */
  readonly onTheWay: boolean
  begin(target: Target): Promise<unknown>
  end(target: Target): Promise<unknown>
}

const way = { outage: true, forgets: false, onTheWay: true } as const
const server = { outage: true, forgets: false, onTheWay: false } as const
const nothing = async (): Promise<void> => {}
const redisOf = ({ redis }: Target): RedisProcess => redis as RedisProcess

/** Every fault by its name on the command line. */
export const faults: Readonly<Record<string, Fault>> = {
  kill: {
    ...server,
    forgets: true,
    words: 'the server is killed and started again, empty',
    begin: (target) => redisOf(target).kill(),
    end: (target) => redisOf(target).restart(),
  },
  pause: {
    ...server,
    words: 'the server stands still (SIGSTOP) and goes on',
    begin: async (target) => redisOf(target).pause(),
    end: async (target) => redisOf(target).resume(),
  },
  delay: {
    ...way,
    words: 'every byte arrives a second late',
    begin: ({ proxy }) => proxy.set({ delayMs: 1_000 }),
    end: ({ proxy }) => proxy.set('pass'),
  },
  blackhole: {
    ...way,
    words: 'connections stay open and carry nothing',
    begin: ({ proxy }) => proxy.set('blackhole'),
    end: ({ proxy }) => proxy.set('pass'),
  },
  reset: {
    ...way,
    words: 'connections are reset, new ones too',
    begin: ({ proxy }) => proxy.set('reset'),
    end: ({ proxy }) => proxy.set('pass'),
  },
  'memory-full': {
    ...server,
    words: 'the server has no memory left (maxmemory, noeviction)',
    begin: (target) => redisOf(target).command('CONFIG', 'SET', 'maxmemory', '1'),
    end: (target) => redisOf(target).command('CONFIG', 'SET', 'maxmemory', '0'),
  },
  replica: {
    ...server,
    words: 'the server is a read-only replica for a while',
    begin: (target) => redisOf(target).command('REPLICAOF', '127.0.0.1', '1'),
    end: (target) => redisOf(target).command('REPLICAOF', 'NO', 'ONE'),
  },
  flush: {
    words: 'the server forgets everything (FLUSHALL)',
    outage: false,
    forgets: true,
    onTheWay: false,
    begin: (target) => redisOf(target).command('FLUSHALL'),
    end: nothing,
  },
  'script-flush': {
    words: 'the server forgets the script (SCRIPT FLUSH)',
    outage: false,
    forgets: false,
    onTheWay: false,
    begin: (target) => redisOf(target).command('SCRIPT', 'FLUSH'),
    end: nothing,
  },
}
