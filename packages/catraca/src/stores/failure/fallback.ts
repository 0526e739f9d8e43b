import { nowUs as clockUs } from '../../core/clock.ts'
import { type Decision, decide, degraded, peeked, type Source } from '../../core/decision.ts'
import type { RemoteHooks, StoreFailureOptions } from '../remote.ts'
import type { Ledger, Store } from '../store.ts'
import { modeOf, passUncounted, refuseAtCeiling, refuseClosed, unlessStoreReturns, withinCeiling } from './modes.ts'
import { QuotaShares } from './quota-shares.ts'
import { ceilingShare, shareOf } from './share.ts'

/** No policy can have this name. */
const ceilingName = '(ceiling)'

/**
 * What decides for one limiter while its shared store is gone: the mode of each policy.
 *
 * Of one question, a policy in mode `closed` refuses all of it. Policies in mode `open` pass and are not charged. Those in
 * mode `local` are asked together, all or nothing, for this instance's share of their limits, and all of them once for
 * its part of the ceiling. States are kept between outages. Synchronous; costs about what a memory store does.
 *
 * Bound: N instances together admit what the rules do with limits of N × share ≤ max(limit, N), whoever asks where; over
 * all keys at most N × the part of the ceiling per window, twice that across the border of two (`slidingCounter`).
 */
export class Fallback {
  readonly quotas = new QuotaShares()
  private readonly local: Ledger
  private ceiling: StoreFailureOptions['ceiling']
  private policies: readonly Source[]
  /** The policies with the share of their rules, then the ceiling. */
  private shares: readonly Source[]
  private instances: number
  /** What a request was charged under the ceiling, by the part that is refunded with it. */
  private readonly underCeiling = new WeakMap<Decision, Decision>()
  /** The permit that took the place of a renewed one. */
  private readonly renewed = new WeakMap<Decision, Decision>()

  constructor(
    store: Store,
    name: string,
    policies: readonly Source[],
    hooks: Pick<RemoteHooks, 'evicted' | 'rebased'>,
    ceiling: StoreFailureOptions['ceiling'],
    instances: number,
  ) {
    this.policies = policies
    this.ceiling = ceiling
    this.instances = instances
    this.shares = this.divide()
    this.local = store.open(name, this.shares, {
      evicted: (policy, key, limited) => hooks.evicted(policy, key, limited),
      rebased: (stepMs) => hooks.rebased(stepMs),
      closed: () => {},
    })
  }

  /** So many instances share the limits from now on; states come over. Costs a comparison when they are as many. */
  divideAmong(instances: number): void {
    if (instances === this.instances) return
    this.replace(this.policies, this.ceiling, instances)
  }

  replace(policies: readonly Source[], ceiling: StoreFailureOptions['ceiling'], instances: number): void {
    this.policies = policies
    this.ceiling = ceiling
    this.instances = instances
    this.shares = this.divide()
    this.local.replace(this.shares)
  }

  /**
   * As `RemoteLedger.apply`, by the modes alone. `list` is what the members are places of: the policies when the question
   * was asked. A policy that is gone since counts nothing.
   */
  decide(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
    list: readonly Source[] = this.policies,
  ): Decision {
    const nowUs = clockUs()
    const places = this.placesOf(members, list)
    const sources = places.map((place, index) => this.policies[place] ?? (list[members[index] as number] as Source))
    const modes = sources.map(modeOf)
    const closed = modes.includes('closed')
    const parts = sources.map((source, index) => {
      const answer = modes[index] === 'closed' ? refuseClosed : passUncounted
      return answer(source, keys[index] as string, costs[index] as number, nowUs)
    })
    if (!closed && modes.includes('local')) this.askLocal(places, keys, tags, costs, charge, nowUs, parts)
    if (parts.length === 1) return parts[0] as Decision
    return decide(parts, degraded | (parts.some(({ charged }) => charged > 0) ? 0 : peeked))
  }

  /** As `RemoteLedger.reserve`, by the mode alone; `list` as in {@link decide}. */
  reserve(asked: number, key: string, cost: number, maxWaitUs: number, list: readonly Source[]): Decision {
    const nowUs = clockUs()
    const before = list[asked] as Source
    const member = memberOf(this.policies, before)
    const source = this.policies[member] ?? before
    const mode = modeOf(source)
    if (mode === 'closed') return refuseClosed(source, key, cost, nowUs)
    if (mode === 'open' || member < 0) return passUncounted(source, key, cost, nowUs)
    const { local } = this
    const under =
      this.ceiling === undefined ? undefined : local.applySome([this.policies.length], [''], [cost], nowUs, true)
    const answer =
      under?.allowed === false
        ? local.applySome([member], [key], [cost], nowUs, false)
        : local.reserve(member, key, cost, nowUs, maxWaitUs)
    answer.state |= degraded
    const part = unlessStoreReturns(answer, source.rule.limit)
    if (under === undefined) return part
    if (!under.allowed) return refuseAtCeiling(part, under)
    if (part.allowed) this.underCeiling.set(part, under)
    else local.refund(under, cost, nowUs)
    return part
  }

  /** As `RemoteLedger.applyUpTo`, by the modes alone: nobody asks in between; `list` as in {@link decide}. */
  decideUpTo(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    most: number,
    list: readonly Source[],
  ): Decision {
    const ones = members.map(() => 1)
    const one = this.decide(members, keys, tags, ones, false, list)
    const units = one.allowed ? Math.max(1, Math.min(most, ...one.stack.map(({ remaining }) => remaining))) : 1
    const costs = ones.map(() => units)
    return this.decide(members, keys, tags, costs, true, list)
  }

  /** As `Ledger.settle`, for a decision made here; what a quota cost more than its share granted is not added. */
  settle(decision: Decision, units: number): number {
    const { charged } = decision
    if (units <= charged) return units === charged ? 0 : this.refund(decision, charged - units)
    return isQuota(decision.source) ? 0 : this.local.settle(decision, units, clockUs())
  }

  /** As `Ledger.refund`, for a decision made here. */
  refund(decision: Decision, units: number): number {
    const nowUs = clockUs()
    if (isQuota(decision.source)) return this.quotas.refund(decision, units, nowUs)
    const given = this.local.refund(this.renewed.get(decision) ?? decision, units, nowUs)
    const ceiling = this.underCeiling.get(decision)
    if (ceiling !== undefined && given >= 1) this.local.refund(ceiling, Math.floor(given), nowUs)
    return given
  }

  /** As `RemoteLedger.renew`, for a decision made here. */
  renew(decision: Decision): boolean {
    const nowUs = clockUs()
    const held = this.renewed.get(decision) ?? decision
    const member = memberOf(this.shares, held.source)
    if (member < 0 || !held.source.rule.holds) return false
    // The place it leaves is free for the one that takes its place: nobody asks in between.
    const units = this.local.refund(held, held.charged, nowUs)
    if (units === 0) return false
    const again = this.local.applySome([member], [held.key], [units], nowUs, true)
    if (again.allowed) this.renewed.set(decision, again)
    return again.allowed
  }

  reset(source: Source, key: string): void {
    const member = memberOf(this.policies, source)
    if (member < 0) return
    this.local.reset(member, key)
    this.quotas.forget(this.policies[member] as Source, key)
  }

  close(): void {
    this.local.close()
  }

  /** Where the policies of a question are now; −1 for one that is gone. */
  private placesOf(members: readonly number[], list: readonly Source[]): readonly number[] {
    if (list === this.policies) return members
    return members.map((member) => memberOf(this.policies, list[member] as Source))
  }

  /** Puts the answers of policies in mode `local` into `parts`. */
  private askLocal(
    members: readonly number[],
    keys: readonly string[],
    tags: readonly string[] | undefined,
    costs: readonly number[],
    charge: boolean,
    nowUs: number,
    parts: Decision[],
  ): void {
    const { local, quotas, policies, instances } = this
    const counted: number[] = []
    const calendar: number[] = []
    for (const [index, member] of members.entries()) {
      const source = policies[member]
      if (source !== undefined && modeOf(source) === 'local') (isQuota(source) ? calendar : counted).push(index)
    }
    for (const index of calendar) {
      const source = policies[members[index] as number] as Source
      parts[index] = quotas.ask(source, keys[index] as string, costs[index] as number, instances, nowUs)
    }
    const asked = counted.map((index) => members[index] as number)
    const askedKeys = counted.map((index) => keys[index] as string)
    const askedCosts = counted.map((index) => costs[index] as number)
    if (this.ceiling !== undefined) {
      asked.push(policies.length)
      askedKeys.push('')
      askedCosts.push(Math.max(...[...counted, ...calendar].map((index) => costs[index] as number)))
    }
    let passes = charge && calendar.every((index) => parts[index]?.allowed)
    let ceiling: Decision | undefined
    if (asked.length > 0) {
      const answer = local.applySome(asked, askedKeys, askedCosts, nowUs, passes)
      passes &&= answer.allowed
      const { stack } = answer
      for (const [place, index] of counted.entries()) {
        const part = stack[place] as Decision
        part.state |= degraded
        parts[index] = unlessStoreReturns(part, (policies[members[index] as number] as Source).rule.limit)
      }
      ceiling = stack[counted.length]
    }
    if (passes) for (const index of calendar) parts[index] = quotas.grant(parts[index] as Decision, tags?.[index])
    if (ceiling !== undefined) this.cap(parts, [...counted, ...calendar], ceiling)
  }

  /** Shows what the ceiling said in the answers of the policies under it. */
  private cap(parts: Decision[], indices: readonly number[], ceiling: Decision): void {
    let bearer: Decision | undefined
    for (const index of indices) {
      const part = parts[index] as Decision
      const capped = ceiling.allowed ? withinCeiling(part, ceiling.remaining) : refuseAtCeiling(part, ceiling)
      parts[index] = capped
      // A permit that is released gives nothing back of what was admitted.
      if (capped.charged > (bearer?.charged ?? 0) && !capped.source.rule.holds) bearer = capped
    }
    if (bearer !== undefined) this.underCeiling.set(bearer, ceiling)
  }

  private divide(): readonly Source[] {
    const shares: Source[] = this.policies.map(({ name, rule, issuer }) => ({
      name,
      rule: shareOf(rule, this.instances),
      issuer,
    }))
    const issuer = this.policies[0]?.issuer
    if (this.ceiling === undefined || issuer === undefined) return shares
    return [...shares, { name: ceilingName, rule: ceilingShare(this.ceiling, this.instances), issuer }]
  }
}

/** The place of a policy in a list; after a replacement that of the first of its name; −1 when there is none. */
export function memberOf(policies: readonly Source[], source: Source): number {
  const place = policies.indexOf(source)
  return place >= 0 ? place : policies.findIndex(({ name }) => name === source.name)
}

export function isQuota({ rule }: Source): boolean {
  return rule.algorithm === 'quota'
}
