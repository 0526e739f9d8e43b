import type { RuleChange } from '../core/decision.ts'
import type { Duration } from '../core/duration.ts'
import type { LeaseOptions } from '../stores/lease/options.ts'
import type { OverflowEntry } from './overflow.ts'

/**
 * A policy document: who may ask for how much. The same object whether it is written in code or read from a file.
 * Every key, its range and its default: docs/guides/policy-file.md.
 */
export interface PolicyDocument {
  version: 1
  /** How the caller's address is found. Without it the address of the connection counts. */
  trust?: TrustEntry
  /** The plans clients can have, and the one for those without a plan or with one that is not declared. */
  plans?: { names: string[]; default: string }
  /** For all policies that do not say otherwise. */
  defaults?: { onStoreFailure?: StoreFailure; expectedInstances?: number }
  /** How instances decide while a shared store does not answer. */
  storeFailure?: StoreFailureEntry
  /** What is never counted. */
  exempt?: { routes?: string[]; addresses?: string[]; clients?: string[] }
  /**
   * Turns secrets that callers send (API keys, header values, cookies, query parameters) into keys that are of no use to
   * who sees them: at least 16 characters, the same on all instances. Needed by `per: api-key`.
   */
  hashSecret?: string
  /** Routes are compared with upper and lower case told apart. Default false. */
  caseSensitive?: boolean
  /** What the service can sustain, and how many clients each plan has: for `check` alone. */
  capacity?: { limit: number; window: Duration; clients?: Record<string, number> }
  /** Checks that are switched off, by code. */
  checks?: Record<string, 'off' | 'on'>
  /** The policies by name: a letter, then up to 63 letters, digits, `_`, `.` or `-`. */
  policies: Record<string, PolicyEntry>
}

export interface TrustEntry {
  /** Trusted proxies in front, each of which appends the address it saw; 0 to 32. */
  proxies?: number
  /** Addresses and networks (CIDR) whose forwarding header is believed. */
  from?: string[]
  /** The header that is believed; the other one is ignored. Default `x-forwarded-for`. */
  header?: 'x-forwarded-for' | 'forwarded'
  /** Bits of an IPv6 address that make one caller, 32 to 128. Default 64. */
  ipv6Prefix?: number
  /** Prefixes (/96) under which NAT64 puts IPv4 addresses, such as `64:ff9b::/96`: they count as the IPv4 address. */
  nat64?: string[]
}

export interface StoreFailureEntry {
  /**
   * Instances that share a limit, 1 to 100,000: each counts its part. `live`: as many as used the store lately. Needed
   * with a shared store; may also stand under `defaults`.
   */
  expectedInstances?: number | 'live'
  /** What all instances together admit meanwhile, over all keys, by policies in mode `local`. Default: no ceiling. */
  ceiling?: { limit: number; window: Duration }
}

/** What a policy does while a shared store does not answer. */
export type StoreFailure = 'local' | 'open' | 'closed'

/** Off: not asked. Observe: counted and reported, never refusing. Enforce: refusing. */
export type Mode = 'off' | 'observe' | 'enforce'

/**
 * Enforced for part of the callers: `percent` of all keys, always the same ones, and the clients named. The others are
 * counted as `else` says.
 */
export interface ModeEntry {
  enforce: { percent?: number; clients?: string[] }
  /** Default `observe`. */
  else?: 'off' | 'observe'
}

/** Who is known to ask: nobody verified, a client, or a user. */
export type IdentityMatch = 'anonymous' | 'client' | 'user'

/** One policy: whom it counts, what it allows. */
export interface PolicyEntry {
  /** The requests it is about. Default: all. */
  match?: { identity?: IdentityMatch; routes?: string[] }
  /**
   * What makes one caller: `address` (`address/48`: a wider IPv6 network), `client`, `user`, `tenant`, `service` (everybody
   * together), `api-key`, `plan`, `route`, `header:<name>`, `cookie:<name>`, `query:<name>`, `path:<name>` (a parameter of
   * its routes) or `body:<field>`; several make one key.
   */
  per: string | string[]
  rule: RuleEntry
  /**
   * The attribute by which a cluster keeps states together: policies asked at once with equal values of it are charged all
   * or nothing. A part of `per`; `tenant` where `per` counts clients or users, each of whom belongs to one; or `service`,
   * which is everything in one place. Default: the key of the policy.
   */
  tag?: string
  /** Numbers that differ for clients of a plan. */
  plans?: Record<string, OverrideEntry>
  /** Numbers that differ for one client. They win over its plan's. */
  clients?: Record<string, OverrideEntry>
  /** Units each request costs. Default 1. */
  cost?: number
  /** The policy this one stands in for where it is enforced. */
  insteadOf?: string
  /** `attempts`: a refusal by a later stage does not give the charge back. Default `admitted`. */
  charge?: 'admitted' | 'attempts'
  /** Default `enforce`. */
  mode?: Mode | ModeEntry
  /** What a request over the limit is answered, tried in this order. Default `[reject]`. */
  overflow?: OverflowEntry[]
  /**
   * A rule that is tried beside this one: counted for the same requests, refusing nothing, and reported under the name of
   * the policy with `.candidate` behind it.
   */
  candidate?: CandidateEntry
  /** What the caller can do instead, by name; told in the refusal. */
  advice?: Record<string, string>
  /** Default: that of `defaults`, else `local`. */
  onStoreFailure?: StoreFailure
  /** What becomes of used units when the numbers change: 60 of 100 used, then 200: 140, 80 or 200 left. Default `keep`. */
  onRuleChange?: RuleChange
  /** True where charges are given back as a matter of course: a refusal is then asked for anew each time. Default false. */
  refunds?: boolean
  /**
   * Beside a shared store: how instances hold units and decide without a trip. By how much the limit can then be missed,
   * `explain` and `check` say. Default: each request asks the store.
   */
  lease?: LeaseOptions
  /** True for a limit that is asked for each time, whatever the store: it cannot have a `lease`. Default false. */
  exact?: boolean
  /** A promise that `check` holds the rule to: never more than `limit` in any `window`. */
  never?: { limit: number; window: Duration }
}

/** A rule: its algorithm, and the options of that algorithm. */
export interface RuleEntry {
  algorithm: string
  [option: string]: unknown
}

/** A rule to be tried, with what differs for plans and clients; without `cost` requests cost what they cost the policy. */
export interface CandidateEntry {
  rule: RuleEntry
  plans?: Record<string, OverrideEntry>
  clients?: Record<string, OverrideEntry>
  cost?: number
}

/** Options of the policy's algorithm, and `overflow`. */
export interface OverrideEntry {
  overflow?: OverflowEntry[]
  [option: string]: unknown
}
