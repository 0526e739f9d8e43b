import type { Decision } from '../core/decision.ts'
import { ceilDiv } from '../core/integer.ts'
import type { Rule } from '../core/rule.ts'
import { item, maxInteger } from '../fields/structured.ts'

/** Quota periods whose calendar length is nearly constant, in seconds. A month or year has none to advertise. */
const periodSeconds: Readonly<Record<string, number>> = { day: 86_400, week: 604_800 }

/**
 * The items of one policy in the `RateLimit-Policy` and `RateLimit` header fields
 * (draft-ietf-httpapi-ratelimit-headers-11): what can pass at once, in which time, and what is left of it.
 */
export class PolicyFields {
  /**
   * Item of `RateLimit-Policy`: q = what can pass at once; w = whole seconds, rounded up. Of a bucket or queue w is the
   * time it takes to fill from empty, of a window its length, of a quota the usual length of a day or week. Windows under
   * one second, months, years and concurrency have no w, since the field cannot say it.
   */
  readonly policy: string
  /**
   * Item of `RateLimit-Policy` in the grammar of the drafts up to 06: the limit, w = its window, and of a bucket or queue
   * burst = what can pass at once, as `600;w=60;burst=90`. Undefined where w cannot be said: of windows under a second,
   * months, years and concurrency.
   */
  readonly legacyPolicy: string | undefined
  private readonly prefix: string
  private readonly suffix: string
  private readonly rule: Rule

  /** @param name Policy name: printable ASCII, else `CATRACA_OPTION_INVALID`. */
  constructor(name: string, rule: Rule) {
    const w = windowSeconds(rule)
    const qu = rule.holds ? 'concurrent-requests' : undefined
    this.policy = item(name, { q: Math.min(rule.limit, maxInteger), w, qu })
    this.legacyPolicy = legacyPolicy(rule)
    this.prefix = `${item(name)};r=`
    this.suffix = w === undefined ? '' : `;t=${w}`
    this.rule = rule
  }

  /**
   * Item of `RateLimit` with the state a decision of this rule left. Refused: r = 0 and t = the seconds to wait. Admitted:
   * r = what would pass now and t = w, so that r ÷ t never asks for more than the mean rate; of a quota t = the seconds to
   * the end of the period. A cost that can never pass says nothing of the limit, so it shows what smaller ones would find.
   */
  state(decision: Decision): string {
    if (isLimited(decision)) {
      const seconds = waitSeconds(decision)
      return seconds === undefined ? `${this.prefix}0` : `${this.prefix}0;t=${seconds}`
    }
    const suffix = this.rule.algorithm === 'quota' ? `;t=${this.secondsToEnd(decision)}` : this.suffix
    return `${this.prefix}${Math.min(decision.remaining, maxInteger)}${suffix}`
  }

  private secondsToEnd(decision: Decision): number {
    const { resetAfterMs, nowUs } = decision
    // Of a period in which nothing was used yet the decision says 0: it needs no end to be full.
    const us = resetAfterMs === 0 ? this.rule.endsAt(Float64Array.of(nowUs), 0) - nowUs : resetAfterMs * 1_000
    return ceilDiv(Math.round(us), 1_000_000)
  }
}

/**
 * Values of `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` as the drafts up to -06 had them, and of the
 * older fields with `X-` before their names. Limit is what
 * can pass at once; Reset counts seconds from now, rounded up: refused until the request would pass, otherwise until
 * nothing is used any more.
 */
export function legacyFields(decision: Decision): [limit: string, remaining: string, reset: string] {
  const limited = isLimited(decision)
  const wait = limited ? waitSeconds(decision) : undefined
  const remaining = limited ? 0 : Math.min(decision.remaining, maxInteger)
  const reset = wait ?? Math.min(Math.ceil(decision.resetAfterMs / 1_000), maxInteger)
  return [String(Math.min(decision.limit, maxInteger)), String(remaining), String(reset)]
}

/** True when the same request would have to wait; not for one that can never pass. */
export function isLimited(decision: Decision): boolean {
  return !decision.allowed && decision.reason !== 'impossible'
}

/** Whole seconds of a wait, rounded up; undefined for one without end. */
function waitSeconds({ waitUs }: Decision): number | undefined {
  return waitUs === Infinity ? undefined : Math.min(ceilDiv(waitUs, 1_000_000), maxInteger)
}

function legacyPolicy({ algorithm, limit: capacity, options }: Rule): string | undefined {
  const limit = Math.min(Number(options['limit'] ?? capacity), maxInteger)
  const windowUs = Math.round(Number(options['windowMs'] ?? 0) * 1_000)
  const w = algorithm === 'quota' ? periodSeconds[String(options['period'])] : ceilDiv(windowUs, 1_000_000)
  if (w === undefined || (algorithm !== 'quota' && windowUs < 1_000_000)) return undefined
  return options['burst'] === undefined ? `${limit};w=${w}` : `${limit};w=${w};burst=${Math.min(capacity, maxInteger)}`
}

function windowSeconds({ algorithm, limit: capacity, options }: Rule): number | undefined {
  if (algorithm === 'quota') return periodSeconds[String(options['period'])]
  const windowMs = options['windowMs']
  if (windowMs === undefined) return undefined
  const windowUs = Math.round(Number(windowMs) * 1_000)
  const isBucket = options['burst'] !== undefined
  if (!isBucket) return windowUs < 1_000_000 ? undefined : ceilDiv(windowUs, 1_000_000)
  // Exact, because capacity × window can exceed 2^53.
  const needed = BigInt(capacity) * BigInt(windowUs)
  const perSecond = BigInt(Number(options['limit'])) * 1_000_000n
  const seconds = (needed + perSecond - 1n) / perSecond
  return Number(seconds > BigInt(maxInteger) ? BigInt(maxInteger) : seconds)
}
