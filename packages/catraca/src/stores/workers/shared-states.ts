import { nowUs as clockUs } from '../../core/clock.ts'
import { type Decision, decide, type Source } from '../../core/decision.ts'
import { Blocks, refuseBlocked } from '../blocks.ts'
import { memberOf } from '../failure/fallback.ts'
import { grantFrom } from '../memory/grant-from.ts'
import type { MemoryLedger } from '../memory/memory-ledger.ts'
import type { MemoryStore } from '../memory/memory-store.ts'
import { type PolicyForm, sourceOf } from './wire.ts'

/** What a ledger tells while it answers. */
export interface Tell {
  evicted(policy: string, key: string, limited: boolean): void
  rebased(stepMs: number): void
}

const nobody: Tell = { evicted() {}, rebased() {} }
/** Releases come as refunds from the worker that holds the permit. */
const issuer = { release(): void {} }

/**
 * The states of one limiter, which several workers use. Its policies are those of all of them: while a new list goes
 * round, the old one and the new one stand side by side as variants, between which a key takes along what it has used.
 */
export class SharedStates {
  private readonly ledger: MemoryLedger
  private readonly blocks = new Blocks()
  /** How many uses have a form of a policy, and the policy made from it. */
  private readonly forms = new Map<string, { readonly source: Source; uses: number }>()
  private sources: readonly Source[] = []
  private places = new Map<Source, number>()
  private listener = nobody
  private users = 0
  /** The list of the last user, if it died. */
  private left: readonly PolicyForm[] = []

  constructor(store: MemoryStore, name: string) {
    this.ledger = store.open(name, [], {
      evicted: (policy, key, limited) => this.listener.evicted(policy, key, limited),
      rebased: (stepMs) => this.listener.rebased(stepMs),
      closed() {},
    })
  }

  /** Begins a use; gives the policies of its list. Throws as factories of rules do. */
  join(forms: readonly PolicyForm[]): Source[] {
    const policies = this.exchange(this.left, forms)
    this.left = []
    this.users++
    return policies
  }

  /** Ends a use. The list of the last one to die stays, and with it what was used, until somebody takes its place. */
  leave(forms: readonly PolicyForm[], died: boolean): void {
    this.users--
    if (died && this.users === 0) this.left = forms
    else this.exchange(forms, [])
  }

  /** True when nobody uses it, nor is expected. */
  get isUnused(): boolean {
    return this.users === 0 && this.left.length === 0
  }

  /** Puts one user's new list in place of its old one; gives the policies of the new one. Throws as factories of rules do. */
  exchange(old: readonly PolicyForm[], next: readonly PolicyForm[]): Source[] {
    const texts = next.map((form) => JSON.stringify(form))
    const made = next.map((form, index) => this.forms.get(texts[index] as string)?.source ?? sourceOf(form, issuer))
    texts.forEach((text, index) => {
      const known = this.forms.get(text)
      if (known !== undefined) known.uses++
      else this.forms.set(text, { source: made[index] as Source, uses: 1 })
    })
    for (const form of old) {
      const text = JSON.stringify(form)
      const known = this.forms.get(text)
      if (known !== undefined && --known.uses === 0) this.forms.delete(text)
    }
    const sources = [...this.forms.values()].map(({ source }) => source)
    const same = sources.length === this.sources.length && sources.every((source, at) => source === this.sources[at])
    if (!same) this.replace(sources)
    return next.map((_, index) => this.forms.get(texts[index] as string)?.source as Source)
  }

  /** Runs one question, of which `tell` hears what happened. */
  run<T>(tell: Tell, question: () => T): T {
    this.listener = tell
    try {
      return question()
    } finally {
      this.listener = nobody
    }
  }

  /** As `Ledger.applySome`, with blocks. */
  apply(policies: readonly Source[], keys: readonly string[], costs: readonly number[], charge: boolean): Decision {
    const members = policies.map((policy) => this.placeOf(policy))
    if (!this.blocks.any) return this.ledger.applySome(members, keys, costs, undefined, charge)
    const nowUs = clockUs()
    const waits = policies.map(({ name }, index) => this.blocks.waitUs(name, keys[index] as string, nowUs))
    if (waits.every((wait) => wait === 0)) return this.ledger.applySome(members, keys, costs, nowUs, charge)
    // A blocked key refuses the whole stack, and nothing is charged.
    const { stack } = this.ledger.applySome(members, keys, costs, nowUs, false)
    const parts = stack.map((one, index) => (waits[index] === 0 ? one : refuseBlocked(one, waits[index] as number)))
    return parts.length === 1 ? (parts[0] as Decision) : decide(parts, 0)
  }

  grant(policy: Source, key: string, least: number, most: number): Decision {
    if (this.blocks.any && this.blocks.waitUs(policy.name, key, clockUs()) > 0) {
      return this.apply([policy], [key], [least], true)
    }
    return grantFrom(this.ledger, this.placeOf(policy), key, least, most)
  }

  reserve(policy: Source, key: string, cost: number, maxWaitUs: number): Decision {
    const blockUs = this.blocks.any ? this.blocks.waitUs(policy.name, key, clockUs()) : 0
    if (blockUs > 0) return this.apply([policy], [key], [cost], false)
    return this.ledger.reserve(this.placeOf(policy), key, cost, undefined, maxWaitUs)
  }

  applyUpTo(policies: readonly Source[], keys: readonly string[], most: number): Decision {
    const ones = policies.map(() => 1)
    const { allowed, stack } = this.apply(policies, keys, ones, false)
    const units = allowed ? Math.min(most, ...stack.map(({ remaining }) => remaining)) : 1
    // Nobody asks in between; should time have gone on, more passes, not less.
    return this.apply(
      policies,
      keys,
      ones.map(() => units),
      true,
    )
  }

  settle(decision: Decision, units: number): number {
    return this.ledger.settle(decision, units, clockUs())
  }

  refund(decision: Decision, units: number): number {
    return this.ledger.refund(decision, units, clockUs())
  }

  /** The permit that takes the place of one that lasts from now on; undefined when that had expired. */
  renew(held: Decision): Decision | undefined {
    const nowUs = clockUs()
    const units = this.ledger.refund(held, held.charged, nowUs)
    const member = memberOf(this.sources, held.source)
    // The place it leaves is taken at once, also where the limit is lower by now: the work is under way.
    return units === 0 || member < 0 ? undefined : this.ledger.charge(member, held.key, units, nowUs)
  }

  charge(policy: Source, key: string, units: number): void {
    this.ledger.charge(this.placeOf(policy), key, units, clockUs())
  }

  reset(policy: Source, key: string): void {
    this.ledger.reset(this.placeOf(policy), key)
    this.blocks.remove(policy.name, key)
  }

  block({ name }: Source, key: string, us: number): void {
    if (us === 0) this.blocks.remove(name, key)
    else this.blocks.add(name, key, clockUs(), us)
  }

  close(): void {
    this.ledger.close()
  }

  private replace(sources: readonly Source[]): void {
    this.sources = sources
    this.places = new Map(sources.map((source, place) => [source, place]))
    this.ledger.replace(sources)
    this.blocks.keep(new Set(sources.map(({ name }) => name)))
  }

  private placeOf(policy: Source): number {
    const place = this.places.get(policy)
    if (place === undefined) throw new Error(`policy ${policy.name} is not asked any more`)
    return place
  }
}
