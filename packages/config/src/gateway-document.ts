import type { Duration, PolicyDocument } from 'catraca/policy'

/** A gateway file: a policy document, and where to listen and whom to ask. */
export interface GatewayDocument extends PolicyDocument {
  listen?: ListenEntry
  /** Where liveness, readiness and figures are served. Default: nowhere. */
  admin?: ListenEntry
  /** Where what was used is kept. Default `memory`. */
  store?: 'memory' | RedisEntry
  /** Processes that share the port and, with `store: memory`, the limits: 1 to 64. Default 1. For `catraca up`. */
  workers?: number
  auth?: { apiKeys?: ApiKeysEntry }
  /** Services by name. */
  upstreams: Record<string, string | UpstreamEntry>
  /** Which service answers what; the first that matches. Default, with one upstream: everything. */
  routes?: RouteEntry[]
  timeouts?: TimeoutsEntry
  /** Copies of answers for `overflow: [{ stale: … }]`, in the memory of the process. */
  cache?: CacheEntry
  /** Accepted work for `overflow: [accept]`, carried out by this process. */
  jobs?: JobsEntry
  /** How callers are told of limits. */
  answers?: AnswersEntry
  /** A line for each request. Default `text`. */
  log?: 'off' | 'text' | 'json'
}

export interface ListenEntry {
  /** 0 takes a free one. */
  port?: number
  host?: string
}

/** A store that several instances share. */
export interface RedisEntry {
  /** `redis://[name:password@]host[:port][/database]`, or `rediss://` over TLS. */
  redis: string
  /** Begins all keys in the store. Default `catraca`. */
  prefix?: string
  /** For an answer of the store; after it policies decide without. Default 50ms. */
  timeout?: Duration
}

/** Clients by the SHA-256 of their key: the key itself is in no file. */
export interface ApiKeysEntry {
  /** Default `x-api-key`. */
  header?: string
  keys: ApiKeyEntry[]
}

export interface ApiKeyEntry {
  /** 64 hexadecimal digits: `printf %s KEY | sha256sum`. */
  sha256: string
  client: string
  plan?: string
  tenant?: string
  /** Names the key in logs. Default: the first 8 digits of the hash. */
  id?: string
}

export interface UpstreamEntry {
  /** Origins that take turns. */
  urls: string[]
}

export interface RouteEntry {
  /** The name in the `Host` field, without port. Default: any. */
  host?: string
  /** A path such as `/auth/**`. */
  path: string
  upstream: string
}

export interface AnswersEntry {
  /** Header fields that say what the limit is, in one form or several. Default `ietf`. */
  headers?: AnswerDialect | AnswerDialect[]
  /** Whether they stand on answers that shared caches may keep. Default `include`. */
  cacheable?: 'include' | 'omit'
  /** True lets scripts of other origins read them. Default false. */
  exposeHeaders?: boolean
  /** Language of refusals where `Accept-Language` asks for none that is there. Default `en`. */
  language?: 'en' | 'pt'
}

export type AnswerDialect = 'ietf' | 'legacy' | 'x-ratelimit' | 'x-ratelimit-epoch' | 'none'

export interface CacheEntry {
  /** Bytes of all copies together. Default 32 MiB. */
  maxBytes?: number
  /** Bytes of one body. Default 1 MiB, or `maxBytes` where that is less. */
  maxBodyBytes?: number
}

export interface JobsEntry {
  /** Where callers ask for the status. Default `/jobs`. */
  path?: string
  /** Jobs that wait. Default 100. */
  maxQueued?: number
  /** Of them, jobs of one caller. Default a quarter. */
  maxPerCaller?: number
  /** Jobs that run at the same time. Default 1. */
  concurrency?: number
  /** Jobs whose end is remembered. Default 1,000. */
  maxKept?: number
}

export interface TimeoutsEntry {
  /** For a connection to the upstream. Default 1s. */
  connect?: Duration
  /** For the head of the upstream's answer. Default 5s. */
  response?: Duration
  /** For the next bytes of the upstream's answer. Default 5s. */
  bodyIdle?: Duration
  /** For a caller who in the middle of a request neither sends nor reads. Default 1m. */
  clientIdle?: Duration
}
