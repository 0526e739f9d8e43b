import { type Duration, isCatracaError, tokenBucket } from 'catraca'
import { InvalidArgumentError } from 'commander'
import { type Per, perHeader } from '../edge/header-identity.ts'
import { parseOrigin } from '../upstream/origin.ts'

/** A limit as it is written in `--limit 600/1m`. */
export interface Limit {
  readonly limit: number
  readonly window: Duration
}

const maxHops = 32
const maxWorkers = 64
const maxUnits = 1_000_000_000_000

/** Reads `--limit`. Like all readers here it throws commander's error, which names the flag, the value and what is allowed. */
export function readLimit(text: string): Limit {
  const [, units, window] = /^(\d+)\/(\S+)$/.exec(text) ?? []
  const limit = { limit: Number(units), window: window as Duration }
  try {
    tokenBucket(limit)
  } catch (error) {
    // A rule that is too fine to compute depends on the burst too; the gateway says so.
    if (isCatracaError(error) && error.code === 'CATRACA_RULE_TOO_FINE') return limit
    throw new InvalidArgumentError(
      `Allowed: requests (1 to ${maxUnits}), a slash and a time such as 250ms, 30s, 15m, 1h or 1d; for example 600/1m.`,
    )
  }
  return limit
}

/** Reads `--burst`. */
export function readBurst(text: string): number {
  return wholeNumber(text, 1, maxUnits, 'requests')
}

/** Reads `--port`. */
export function readPort(text: string): number {
  return wholeNumber(text, 0, 65_535, 'a port; 0 takes a free one')
}

/** Reads `--workers`. */
export function readWorkers(text: string): number {
  return wholeNumber(text, 1, maxWorkers, 'processes')
}

/** Reads `--trust`. */
export function readTrust(text: string): number {
  return wholeNumber(text, 0, maxHops, 'proxies')
}

/** Reads `--per`. */
export function readPer(text: string): Per {
  if (perHeader(text) !== undefined) return text as Per
  throw new InvalidArgumentError('Allowed: address, or header: and the name of a header, such as header:x-api-key.')
}

/** Reads `--upstream`. */
export function readUpstream(text: string): string {
  const origin = parseOrigin(text)
  if (origin !== undefined) return origin
  throw new InvalidArgumentError('Allowed: an http or https origin without a path, such as http://127.0.0.1:3000.')
}

function wholeNumber(text: string, min: number, max: number, what: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new InvalidArgumentError(`Allowed: a whole number from ${min} to ${max} (${what}).`)
}
