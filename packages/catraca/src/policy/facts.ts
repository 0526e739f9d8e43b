import type { NormalPath } from './path.ts'

/**
 * Who asks, as the application or the edge verified it. A claim that nobody verified must not stand here: whoever can
 * choose a name here chooses a limit.
 */
export interface Identity {
  /** The client: stable while its API keys come and go. */
  readonly client?: string
  /** The user who acts. */
  readonly user?: string
  readonly tenant?: string
  /** The client's plan; undeclared ones count as the default. */
  readonly plan?: string
  /** Names the credential for logs and metrics; never part of a key. */
  readonly keyId?: string
}

/** A request as plain data, for `explain`. */
export interface Descriptor {
  /** Upper case. */
  readonly method: string
  /** The path as a caller writes it. */
  readonly path: string
  /**
   * `address`, `client`, `user`, `tenant`, `plan`, `api-key`, `header:<name>`, `cookie:<name>`, `query:<name>`,
   * `body:<field>`.
   */
  readonly attributes?: Readonly<Record<string, string | undefined>>
  /** Milliseconds since the epoch, for tests and simulators. */
  readonly now?: number
}

/** What is known of a request. Values that cost something to find are asked for. */
export interface Facts {
  readonly method: string
  readonly path: NormalPath
  /** The caller's network as it is counted. */
  readonly address: string
  /** The caller's whole address. */
  readonly peer: string
  /** The credential that the request carries, valid or not. */
  readonly credential: string | undefined
  readonly identity: Identity | undefined
  /** True when a credential was shown and is not valid: nothing stands in for the limit of unverified callers then. */
  readonly failed: boolean
  /** Units instead of one, multiplied by the cost of each policy. */
  readonly units: number
  /** Time for tests and simulators, µs since the epoch. */
  readonly nowUs: number | undefined
  /** A request header by lower-case name. */
  header(name: string): string | undefined
  /** A cookie by name; the first where there are several. */
  cookie(name: string): string | undefined
  /** A parameter of the query; undefined also for several values of one name, of which servers take one or another. */
  query(name: string): string | undefined
  /** A member of the body that is a text, a number or a truth value, as text. */
  bodyField(name: string): string | undefined
}
