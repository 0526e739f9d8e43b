import { CatracaError, show } from '../core/errors.ts'
import { eventNames, type Listeners } from '../core/events.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { PolicyDocument } from '../policy/document.ts'
import type { Identity } from '../policy/facts.ts'
import type { RemoteStore } from '../stores/remote.ts'
import type { Store } from '../stores/store.ts'
import type { AnswerCache } from './answer-cache.ts'
import { type AnswerOptions, answerOptionNames, checkAnswerOptions } from './answer-options.ts'
import type { Jobs } from './jobs.ts'

/** Who asks, or undefined when the credential is none or not valid. May look it up elsewhere. */
export type Identify<R> = (request: R) => Identity | undefined | Promise<Identity | undefined>

/** Options of {@link createGuard}. `S` is the kind of store. */
export interface GuardOptions<R = unknown, S extends Store | RemoteStore = Store> extends AnswerOptions {
  /** The policy document. */
  policies: PolicyDocument
  /** Verifies who asks. Without it every caller is anonymous. A request it throws for is not admitted. */
  identify?: Identify<R>
  /**
   * The credential a request carries, so that trying many is not free; undefined when it carries none. Default: the
   * headers `authorization` and `x-api-key`, both together where both are there. Cookies are not looked at: most callers
   * have some. It must change with whatever `identify` looks at.
   */
  credential?: (request: R) => string | undefined
  /**
   * Where the states live. Default: a memory store of its own. Beside a store that instances share, such as that of
   * `redisStore`, the policies that meet floods first stay in memory: those per address without routes, and those that
   * failed verifications are charged to. `explain` says which.
   */
  store?: S
  /** Keeps copies of answers for `overflow: [{ stale: … }]`. Default: `memoryCache()`, 32 MiB in this process. */
  cache?: AnswerCache
  /** Carries accepted work out; needed where a policy lists `accept`. Closed with the guard. */
  jobs?: Jobs<R>
  /** Path at which a GET is answered with the caller's own limits, such as `/rate-limit`. Default: none. */
  statusPath?: string
  /** Names the guard in a store that serves several. Default `guard`. */
  name?: string
  /** Listeners by event name. */
  on?: Listeners
  /** Source of the spread of `Retry-After`: numbers in [0, 1). Default `Math.random`. */
  random?: () => number
}

const optionNames = [
  'policies',
  'identify',
  'credential',
  'store',
  'cache',
  'jobs',
  'statusPath',
  'name',
  ...answerOptionNames,
  'on',
  'random',
] as const

/** Throws a `CatracaError` for options of a wrong kind; the document is checked elsewhere. */
export function checkGuardOptions<R>(options: GuardOptions<R, Store | RemoteStore>): void {
  rejectUnknown(optionNames, options, 'options')
  checkAnswerOptions(options, 'options')
  const { identify, credential, store, cache, jobs, statusPath, on = {}, random } = options
  rejectUnknown(eventNames, on, 'options.on')
  for (const [name, value] of Object.entries({ identify, credential, random, ...on })) {
    if (value !== undefined && typeof value !== 'function') throw invalid(`options.${name}`, value, 'a function')
  }
  if (cache !== undefined && typeof cache?.get !== 'function') {
    throw invalid('options.cache', cache, 'a cache such as memoryCache({ … })')
  }
  if (jobs !== undefined && typeof jobs?.submit !== 'function') {
    throw invalid('options.jobs', jobs, 'a runner such as memoryJobs({ run })')
  }
  if (statusPath !== undefined && !(typeof statusPath === 'string' && statusPath.startsWith('/'))) {
    throw invalid('options.statusPath', statusPath, 'a path such as "/rate-limit"')
  }
  if (store !== undefined && typeof store?.open !== 'function') {
    throw invalid('options.store', store, 'a store such as memoryStore({ … })')
  }
}

/** True for a store that instances share. */
export function isRemote(store: Store | RemoteStore | undefined): store is RemoteStore {
  return store !== undefined && 'remote' in store
}

function invalid(path: string, value: unknown, allowed: string): CatracaError {
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}
