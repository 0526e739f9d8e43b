import { nowUs as clockUs } from '../core/clock.ts'
import type { Decision, Issuer, LeaseTerms, Source } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import type { Signal } from '../limiter/signal.ts'
import { Spread, SpreadLedger } from '../limiter/spread.ts'
import { shareOf } from '../stores/failure/share.ts'
import type { Health, RemoteHooks, RemoteStore, Siblings, StoreFailureOptions } from '../stores/remote.ts'
import type { Ledger, Store } from '../stores/store.ts'
import type { Facts } from './facts.ts'
import { type Home, staysHere, staysInProcess } from './home.ts'
import { keyOf } from './key-part.ts'
import { modeFor } from './mode.ts'
import type { Policies, Policy, Stage, Variant } from './policy.ts'
import { type Question, SharedPart } from './shared-part.ts'
import { type HomeOf, isAsked, type Only, placesOf, type Stacked, type Stacks, select, stacksOf } from './stacks.ts'
import { type QueueBounds, Turns } from './turns.ts'
import { variantOf } from './variant.ts'
import type { Refused, Said, Verdict } from './verdict.ts'

/** How a stack is asked in another way. */
export interface Change {
  /** Another cost than the policy's. */
  readonly cost?: (policy: Policy) => number
  /** Names of policies that are not asked. */
  readonly without?: ReadonlySet<string>
}

/**
 * Enforces a document over a store. Each stage is one stack: its policies are asked together, and all are charged or
 * none. Observed policies are asked one by one beside it, each with the state it would have if it were enforced alone.
 *
 * Beside a shared store some policies stay in the memory of the process ({@link staysHere}). Those of a stage are asked
 * first, and a refusal by them sends nothing; the others of the stage are one trip, all or nothing, and a refusal by them
 * gives back what was charged in memory. Without a shared store every answer is at once.
 */
export class Enforcer implements Issuer {
  private policies: Policies
  private byStage: Readonly<Record<Stage, Stacks>>
  /** The place of a variant in its ledger, by its place among all. */
  private places: readonly number[]
  private readonly ledger: Ledger
  private readonly shared: SharedPart | undefined
  private readonly siblings: Siblings | undefined
  /** Time last given by a caller, in µs; what has no time of its own goes by it. */
  private givenUs: number | undefined

  private readonly onObserved: (said: Said) => void
  private readonly turns: Turns
  private readonly sources: { memory: readonly Source[]; shared: readonly Source[] }
  private closed = false

  /**
   * @param shared Needs a document that says how many instances there are. @param onObserved Is told what each observed
   * policy says, also where no request waited for it.
   */
  constructor(
    policies: Policies,
    memory: Store,
    shared: RemoteStore | undefined,
    name: string,
    hooks: RemoteHooks,
    onObserved: (said: Said) => void = () => {},
  ) {
    this.policies = policies
    this.onObserved = onObserved
    this.siblings = shared?.siblings
    const homeOf = this.homes(shared !== undefined)
    this.byStage = stacksOf(policies, homeOf)
    this.places = placesOf(policies, homeOf)
    this.sources = { memory: this.sourcesOf(policies, 'memory', homeOf, this), shared: [] }
    const spread = new Spread(this.sources.memory)
    this.ledger = new SpreadLedger(memory.open(name, spread.policies, hooks), spread)
    if (shared !== undefined) {
      this.shared = new SharedPart(
        shared,
        name,
        (issuer) => this.sharedSources(policies, issuer),
        stated(policies),
        hooks,
      )
    }
    this.turns = new Turns(this.ledger, this.shared)
  }

  /** The document that is enforced now. */
  get current(): Policies {
    return this.policies
  }

  /** True when some states live in a shared store, so that answers may be promises. */
  get isShared(): boolean {
    return this.shared !== undefined
  }

  /** Who decides for the shared store now; `healthy` without one. */
  get health(): Health {
    return this.shared?.health ?? 'healthy'
  }

  /** Where the state of a policy lives. */
  homeOf(policy: Policy): Home {
    return this.homes(this.isShared)(policy)
  }

  /** The rule that is asked here: of what stays in each of several processes, a part. */
  ruleOf(policy: Policy, { rule }: Variant): Rule {
    const here = this.siblings !== undefined && this.homeOf(policy) === 'memory'
    return here ? shareOf(rule, this.siblings?.count ?? 1) : rule
  }

  /** How instances hold units of a policy; undefined: they ask each time, or need not ask. */
  leaseOf(policy: Policy, { rule }: Variant): LeaseTerms | undefined {
    if (!this.isShared || this.homeOf(policy) === 'memory') return undefined
    return this.termsOf(policy, rule)
  }

  /**
   * Replaces the document. What was used stays used, also where numbers change; a policy that moves between the memory and
   * the shared store begins anew there.
   */
  replace(policies: Policies): void {
    // Who waits is asked anew, by the new document.
    this.turns.replace()
    const homeOf = this.homes(this.isShared)
    this.policies = policies
    this.byStage = stacksOf(policies, homeOf)
    this.places = placesOf(policies, homeOf)
    this.sources.memory = this.sourcesOf(policies, 'memory', homeOf, this)
    this.ledger.replace(this.sources.memory)
    this.shared?.replace((issuer) => this.sharedSources(policies, issuer), stated(policies))
  }

  /**
   * Asks the policies of one stage and adds what they say to `verdict`. False when the request is refused, by the policies
   * in `verdict.refusing`: nothing of their stack was charged. What was charged before stays so, until the caller either
   * asks {@link Enforcer.again} or gives it back. A promise, which does not reject, where the shared store has to be asked.
   *
   * Nobody waits for observed policies alone: what they say comes into the verdict later then.
   *
   * @param only Asks these policies alone, where given.
   */
  ask(stage: Stage, facts: Facts, verdict: Verdict, only?: (policy: Policy) => boolean): boolean | Promise<boolean> {
    if (facts.nowUs !== undefined) this.given(facts.nowUs)
    const { memory, shared } = this.byStage[stage]
    for (const policy of memory.observed) {
      if (!isAsked(policy, facts, only, 'observe')) continue
      this.observe({ policy, decision: this.takeHere(policy, facts, true) }, verdict)
    }
    const asked = select(memory.enforced, facts, only, 'enforce')
    if (asked.length > 0) {
      const decision = this.turns.askHere(asked, this.question(asked, facts), facts.nowUs)
      if (!this.settle(asked, decision, verdict)) {
        verdict.refused = { document: this.policies, stage, asked, home: 'memory' }
        return false
      }
    }
    return shared === undefined ? true : this.askShared(shared, stage, facts, verdict, only)
  }

  /** False where another document came since a stack refused: only {@link Enforcer.anew} can still ask for it. */
  isCurrent({ refused }: Verdict): boolean {
    return refused?.document === this.policies
  }

  /** True once it was closed: nothing can be asked any more. */
  get isClosed(): boolean {
    return this.closed
  }

  /**
   * Asks the stack that refused once more, in another way, and then the rest of its stage. As {@link Enforcer.ask}. The
   * document must be the one by which it refused.
   */
  again(facts: Facts, verdict: Verdict, change: Change): boolean | Promise<boolean> {
    const refused = verdict.refused as Refused
    const asked = refused.asked.filter(({ name }) => change.without?.has(name) !== true)
    verdict.refusing.length = 0
    if (asked.length === 0) return this.askRest(facts, verdict)
    const question = this.question(asked, facts, change.cost)
    const answer =
      refused.home === 'memory'
        ? this.turns.askHere(asked, question, facts.nowUs)
        : (this.shared as SharedPart).take(question)
    const goOn = (decision: Decision): boolean | Promise<boolean> =>
      this.settle(asked, decision, verdict) && this.askRest(facts, verdict)
    return answer instanceof Promise ? answer.then(goOn) : goOn(answer)
  }

  /**
   * Asks the whole stage that refused by the document that came since; what the stage charged before is given back. The
   * observed policies have counted the request already. As {@link Enforcer.ask}.
   */
  anew(facts: Facts, verdict: Verdict): boolean | Promise<boolean> {
    const { stage } = verdict.refused as Refused
    const nowUs = facts.nowUs ?? this.nowUs()
    const earlier = verdict.admitted.filter(({ policy }) => policy.stage !== stage)
    for (const { policy, decision } of verdict.admitted) if (policy.stage === stage) this.refund(decision, nowUs)
    verdict.admitted.length = 0
    verdict.admitted.push(...earlier)
    verdict.refusing.length = 0
    verdict.refused = undefined
    return this.ask(stage, facts, verdict, (policy) => modeFor(policy, facts) === 'enforce')
  }

  /**
   * Waits behind a policy that refused, at most as long as `bounds` say, and then asks the rest of the stage. As
   * {@link Enforcer.ask}: false, at once, where the wait would be too long or too many wait. Whoever waits while another
   * document comes is asked anew, by that one.
   */
  async queue(
    policy: Policy,
    facts: Facts,
    verdict: Verdict,
    bounds: QueueBounds,
    signal: Signal | undefined,
  ): Promise<boolean> {
    const { asked, home } = verdict.refused as Refused
    const question = this.question(asked, facts)
    const sources = question.members.map((member) => this.sources[home][member] as Source)
    const stack = { asked, sources, question, apart: home === 'shared', nowUs: facts.nowUs }
    const decision = await this.turns.wait(policy, stack, bounds, signal)
    if (decision === undefined) return false
    if (decision === 'replaced') return this.closed ? false : this.anew(facts, verdict)
    verdict.refusing.length = 0
    return this.settle(asked, decision, verdict, true) && this.askRest(facts, verdict)
  }

  /** Makes what a verdict charged what the request really cost, in the units in which it asked; permits stay held. */
  settleAll({ admitted, units: asked }: Verdict, units: number, nowUs = this.nowUs()): void {
    for (const { decision } of admitted) {
      if (decision.source.rule.holds) continue
      // A whole number: what was charged is one for each unit.
      const cost = (decision.cost / asked) * units
      if (decision.source.issuer !== this) this.shared?.settle(decision, cost)
      else {
        this.ledger.settle(decision, cost, nowUs)
        this.turns.freed(decision)
      }
    }
  }

  /** What a policy would say, without charging it; a promise for one in the shared store. */
  peek(policy: Policy, facts: Facts): Decision | Promise<Decision> {
    if (this.shared === undefined || this.homeOf(policy) === 'memory') return this.peekHere(policy, facts)
    return this.shared.peek(this.question([policy], facts))
  }

  /** The same at once, for a policy in memory. */
  peekHere(policy: Policy, facts: Facts): Decision {
    return this.takeHere(policy, facts, false)
  }

  /** The variant that counts for a request: its client's, its plan's, or the policy's own. */
  variantOf(policy: Policy, facts: Facts): Variant {
    return variantOf(policy, facts, this.policies)
  }

  /** Gives back what a verdict charged, but by policies that count attempts. */
  giveBack(verdict: Verdict, nowUs = this.nowUs()): void {
    const kept = verdict.admitted.filter(({ policy }) => policy.keepsAttempts)
    for (const { policy, decision } of verdict.admitted) {
      if (!policy.keepsAttempts || decision.source.rule.holds) this.refund(decision, nowUs)
    }
    verdict.admitted.length = 0
    verdict.admitted.push(...kept)
    verdict.holds = false
  }

  /** Gives the permits of a verdict back; a second time does nothing. */
  releaseAll(verdict: Verdict, nowUs = this.nowUs()): void {
    if (!verdict.holds) return
    verdict.holds = false
    for (const { decision } of verdict.admitted) {
      if (decision.source.rule.holds) this.refund(decision, nowUs)
    }
  }

  release(decision: Decision): void {
    if (decision.source.rule.holds) this.refund(decision, this.nowUs())
  }

  close(): void {
    this.closed = true
    this.turns.close()
    this.ledger.close()
    this.shared?.close()
  }

  private homes(shared: boolean): HomeOf {
    if (!shared) return () => 'memory'
    const stays = this.siblings === undefined ? staysHere : staysInProcess
    return (policy) => (stays(policy) ? 'memory' : 'shared')
  }

  private sharedSources(policies: Policies, issuer: Issuer): Source[] {
    const sources = this.sourcesOf(policies, 'shared', this.homes(true), issuer)
    this.sources.shared = sources
    return sources
  }

  private sourcesOf({ variants }: Policies, home: Home, homeOf: HomeOf, issuer: Issuer): Source[] {
    return variants.flatMap(({ policy, variant: { rule: whole } }) => {
      if (homeOf(policy) !== home) return []
      const { name, onStoreFailure, onRuleChange, entry } = policy
      const refunds = entry.refunds ?? false
      const here = home === 'memory' && this.siblings !== undefined
      const rule = here ? shareOf(whole, this.siblings?.count ?? 1) : whole
      const lease = home === 'memory' ? undefined : this.termsOf(policy, whole)
      return { name, rule, issuer, onStoreFailure, onRuleChange, refunds, lease }
    })
  }

  private termsOf({ lease, exact }: Policy, rule: Rule): LeaseTerms | undefined {
    return lease ?? (exact ? undefined : this.siblings?.lease(rule))
  }

  private nowUs(): number {
    return this.givenUs ?? clockUs()
  }

  private given(nowUs: number): void {
    this.givenUs = nowUs
    this.ledger.given(nowUs)
  }

  /** The part of a stage behind the stack that refused at first and has passed now. */
  private askRest(facts: Facts, verdict: Verdict): boolean | Promise<boolean> {
    const { stage, home } = verdict.refused as Refused
    verdict.refused = undefined
    const { shared } = this.byStage[stage]
    return home === 'shared' || shared === undefined ? true : this.askShared(shared, stage, facts, verdict, undefined)
  }

  private askShared(
    { enforced, observed }: Stacked,
    stage: Stage,
    facts: Facts,
    verdict: Verdict,
    only: Only,
  ): boolean | Promise<boolean> {
    const shared = this.shared as SharedPart
    const document = this.policies
    const beside: Promise<void>[] = []
    for (const policy of select(observed, facts, only, 'observe')) {
      const answer = shared.take(this.question([policy], facts))
      if (!(answer instanceof Promise)) this.observe({ policy, decision: answer }, verdict)
      else beside.push(answer.then((decision) => this.observe({ policy, decision }, verdict)))
    }
    const asked = select(enforced, facts, only, 'enforce')
    if (asked.length === 0) return true
    const settle = (decision: Decision): boolean => {
      const passed = this.settle(asked, decision, verdict)
      if (!passed) verdict.refused = { document, stage, asked, home: 'shared' }
      return passed
    }
    const answer = shared.take(this.question(asked, facts))
    if (!(answer instanceof Promise)) return settle(answer)
    // The trips are under way together, so the observed ones take no longer.
    if (beside.length === 0) return answer.then(settle)
    return Promise.all([answer, ...beside]).then(([decision]) => settle(decision))
  }

  private observe(said: Said, verdict: Verdict): void {
    verdict.observed.push(said)
    this.onObserved(said)
  }

  /** Adds the answer of a stack to a verdict. */
  private settle(asked: readonly Policy[], decision: Decision, verdict: Verdict, waited = false): boolean {
    const { stack } = decision
    if (decision.allowed) {
      for (let at = 0; at < asked.length; at++) this.admit(verdict, asked[at] as Policy, stack[at] as Decision, waited)
      return true
    }
    for (let at = 0; at < stack.length; at++) {
      const one = stack[at] as Decision
      if (!one.allowed) verdict.refusing.push({ policy: spoke(asked, at, one), decision: one })
    }
    // Refused is refused, also by something that is no policy of the stack.
    if (verdict.refusing.length === 0) verdict.refusing.push({ policy: spoke(asked, 0, decision), decision })
    return false
  }

  private question(asked: readonly Policy[], facts: Facts, cost = ownCost): Question {
    const members = asked.map((policy) => this.places[variantOf(policy, facts, this.policies).member] as number)
    const keys = asked.map(({ parts }) => keyOf(parts, facts))
    const costs: number[] = []
    for (const policy of asked) costs.push(cost(policy) * facts.units)
    const tagged = asked.some(({ tag }) => tag !== undefined)
    const tags = tagged ? asked.map(({ tag, parts }) => keyOf(tag ?? parts, facts)) : undefined
    return { members, keys, costs, tags }
  }

  private takeHere(policy: Policy, facts: Facts, charge: boolean): Decision {
    const { members, keys, costs } = this.question([policy], facts)
    return this.ledger.applySome(members, keys, costs, facts.nowUs, charge)
  }

  /** @param waited True where its delay is over. */
  private admit(verdict: Verdict, policy: Policy, decision: Decision, waited: boolean): void {
    verdict.admitted.push({ policy, decision })
    if (decision.source.rule.holds) {
      verdict.holds = true
      if (decision.source.issuer !== this) this.shared?.admitted(decision)
    }
    const delayMs = waited ? 0 : decision.delayMs
    if (delayMs > verdict.delayMs) verdict.delayMs = delayMs
  }

  private refund(decision: Decision, nowUs: number): void {
    if (decision.source.issuer !== this) {
      this.shared?.giveBack(decision)
      return
    }
    this.ledger.refund(decision, decision.cost, nowUs)
    this.turns.freed(decision)
  }
}

function stated({ storeFailure }: Policies): StoreFailureOptions {
  return storeFailure as StoreFailureOptions
}

/** The policy of a decision; a store that refuses without a trip may know of one policy alone. */
function spoke(asked: readonly Policy[], at: number, { policy: name }: Decision): Policy {
  const policy = asked[at]
  return policy?.name === name ? policy : (asked.find((one) => one.name === name) ?? (asked[0] as Policy))
}

function ownCost({ cost }: Policy): number {
  return cost
}
