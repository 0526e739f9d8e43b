import { later, onClockStep } from '../core/clock.ts'
import { CatracaError, type DiagnosisCode, helpPage, show } from '../core/errors.ts'
import { Emitter, type EventName, type Listener } from '../core/events.ts'
import { storeEvents } from '../limiter/store-events.ts'
import type { PolicyDocument } from '../policy/document.ts'
import { applies, Enforcer } from '../policy/enforcer.ts'
import { type Explanation, explain, factsOf } from '../policy/explain.ts'
import type { Descriptor, Identity } from '../policy/facts.ts'
import { guardsVerification } from '../policy/home.ts'
import { normalPath } from '../policy/path.ts'
import { type Policies, readPolicies } from '../policy/policy.ts'
import { Verdict } from '../policy/verdict.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import type { Health, RemoteStore } from '../stores/remote.ts'
import type { Store } from '../stores/store.ts'
import { type Answer, Answers } from './answers.ts'
import { checkGuardOptions, type GuardOptions, type Identify, isRemote } from './guard-options.ts'
import type { GuardRequest } from './request.ts'
import { RequestFacts } from './request-facts.ts'
import { Trust } from './trust.ts'
import { Verification } from './verification.ts'

/** What `explain` gives: at once, or promised where the states live in a shared store. */
export type Explained = Explanation[] | Promise<Explanation[]>
/** A guard over any kind of store. */
export type AnyGuard<R = unknown> = Guard<R, Explained>

/**
 * Enforces a policy document over HTTP requests: finds the caller, asks the policies stage by stage, and says what to
 * answer. Made by {@link createGuard}; used by the adapters and the gateway, which know how to send answers.
 */
export class Guard<R = unknown, E extends Explained = Explanation[]> {
  private readonly enforcer: Enforcer
  private readonly answers: Answers
  private trust: Trust
  private readonly identify: Identify<R> | undefined
  private readonly credentialOf: ((request: R) => string | undefined) | undefined
  private readonly ownStore: Store | undefined
  private readonly events = new Emitter()
  private readonly diagnosed = new Set<DiagnosisCode>()
  private readonly verification: Verification
  private readonly stopClock: () => void
  private reports = false
  private closed = false

  /** @internal Use {@link createGuard}. */
  constructor(policies: Policies, options: GuardOptions<R, Store | RemoteStore>) {
    const { identify, credential, store, name = 'guard', headers = 'ietf', on = {}, random = Math.random } = options
    const shared = isRemote(store) ? store : undefined
    const given = isRemote(store) ? undefined : store
    const memory = given ?? memoryStore()
    this.identify = identify
    this.credentialOf = credential
    this.ownStore = given === undefined ? memory : undefined
    this.trust = new Trust(policies.document.trust)
    this.answers = new Answers({ headers }, random)
    for (const [event, listener] of Object.entries(on)) this.on(event as EventName, listener as Listener<EventName>)
    const hooks = storeEvents(this.events, () => {
      this.closed = true
    })
    this.enforcer = new Enforcer(policies, memory, shared, name, hooks)
    this.verification = new Verification(this.enforcer)
    this.stopClock = onClockStep((stepMs) => this.events.emit('clock.step', { stepMs, source: 'clock' }))
  }

  /**
   * Who decides for the shared store: it (`healthy`), or the policies' `onStoreFailure` while it is gone (`degraded`,
   * `probing`). Always `healthy` with a memory store.
   */
  get health(): Health {
    return this.enforcer.health
  }

  /**
   * Asks all policies about a request and charges them. At once where nothing has to be waited for; otherwise a promise,
   * which rejects when `identify` or the reading of the body does. A request whose answer is an error must not go on.
   */
  ask(request: GuardRequest<R>): Verdict | Promise<Verdict> {
    if (this.closed) throw new CatracaError('CATRACA_LIMITER_CLOSED', 'the guard was closed')
    if (request.now !== undefined) this.checkNow(request.now)
    const policies = this.enforcer.current
    const path = normalPath(request.target, policies.caseSensitive)
    const address = this.trust.addressOf(request.peer, (name) => request.header(name))
    const facts = new RequestFacts(request, path, this.trust.networkOf(address))
    const verdict = new Verdict()
    verdict.address = address
    if (isExempt(policies, facts, address)) return verdict
    const passed = this.enforcer.ask('address', facts, verdict)
    return typeof passed === 'boolean'
      ? this.askCaller(passed, request, facts, verdict)
      : passed.then((known) => this.askCaller(known, request, facts, verdict))
  }

  /** Header fields that tell the caller what its limits are, names and values in turn. Empty for an exempt request. */
  fieldsOf(verdict: Verdict): string[] {
    return this.answers.fields(verdict)
  }

  /** What to answer to a request that does not go on to its handler. */
  answerOf(verdict: Verdict): Answer {
    return this.answers.refusal(verdict)
  }

  /** Gives the permits of a request back; to be called when its answer is over, however it ended. */
  release(verdict: Verdict): void {
    this.enforcer.releaseAll(verdict)
  }

  /**
   * Tells what an admitted request really cost, in the units in which it asked: of fewer the rest is given back, 0 gives
   * all back. Once per request.
   */
  settle(verdict: Verdict, _units: number): void {
    this.enforcer.giveBack(verdict)
  }

  /** Gives back what an admitted request was charged, as when it was never carried out. */
  refund(verdict: Verdict): void {
    this.enforcer.giveBack(verdict)
  }

  /** Which policies speak about a request, at which stage, with which key, and what each would say. Counts nothing. */
  explain(descriptor: Descriptor): E {
    if (descriptor.now !== undefined) this.checkNow(descriptor.now)
    const policies = this.enforcer.current
    const facts = factsOf(descriptor, policies, (address) => this.trust.networkOf(address))
    const address = descriptor.attributes?.['address'] ?? 'unknown'
    const { client } = facts.identity ?? {}
    const exempt = isExempt(policies, facts, address) || (client !== undefined && policies.exemptClients.has(client))
    return explain(this.enforcer, facts, exempt) as E
  }

  /** The same for a request as it came, whose caller is verified for it. Counts nothing. */
  async status(request: GuardRequest<R>): Promise<Explanation[]> {
    const policies = this.enforcer.current
    const path = normalPath(request.target, policies.caseSensitive)
    const address = this.trust.addressOf(request.peer, (name) => request.header(name))
    const facts = new RequestFacts(request, path, this.trust.networkOf(address))
    facts.identity = (await this.identify?.(request.raw)) || undefined
    const { client } = facts.identity ?? {}
    const exempt = isExempt(policies, facts, address) || (client !== undefined && policies.exemptClients.has(client))
    return explain(this.enforcer, facts, exempt)
  }

  /** Replaces the document while requests go on. What was used stays used. Throws, and changes nothing, for a wrong one. */
  replace(document: PolicyDocument): void {
    const policies = readPolicies(document, this.enforcer.isShared)
    this.trust = new Trust(document.trust)
    this.enforcer.replace(policies)
    this.events.emit('reloaded', { policies: policies.list.map(({ name }) => name) })
  }

  /** Calls `listener` at each event of that name; returns the way to stop. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const stop = this.events.on(name, listener)
    this.update()
    return () => {
      stop()
      this.update()
    }
  }

  /** Stops. The store is closed when it is the guard's own. */
  close(): void {
    if (this.closed) return
    this.closed = true
    this.stopClock()
    this.enforcer.close()
    this.ownStore?.close()
    this.events.clear()
  }

  /** Goes on after the address stage. */
  private askCaller(
    passed: boolean,
    request: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
  ): Verdict | Promise<Verdict> {
    if (!passed) return this.finish(verdict)
    if (this.identify === undefined) return this.askIdentified(request, facts, verdict)
    let credential: string | undefined
    try {
      credential = this.credentialIn(request)
    } catch (error) {
      this.failVerification(facts, verdict, undefined, false)
      throw error
    }
    const known = credential === undefined || this.verification.knows(credential)
    const room = known ? Infinity : this.verification.room(facts)
    if (room === Infinity) return this.verify(request, facts, verdict, credential, false)
    const ticket = this.verification.enter(facts, room)
    if (ticket === 'go') return this.verify(request, facts, verdict, credential, true)
    if (ticket === 'refuse') return this.refuseUnverified(facts, verdict)
    return ticket.then((entry) => {
      if (entry === 'go') return this.verify(request, facts, verdict, credential, true)
      // A document that came meanwhile may have no limit for it any more.
      if (this.verification.room(facts) < Infinity) return this.refuseUnverified(facts, verdict)
      return this.verify(request, facts, verdict, credential, false)
    })
  }

  private credentialIn(request: GuardRequest<R>): string | undefined {
    if (this.credentialOf !== undefined) return this.credentialOf(request.raw) || undefined
    // Both: of two headers one alone could be a valid one's, to try many in the other.
    const one = request.header('authorization') || ''
    const other = request.header('x-api-key') || ''
    return other === '' ? one || undefined : `${one}\n${other}`
  }

  private verify(
    request: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
    credential: string | undefined,
    gated: boolean,
  ): Verdict | Promise<Verdict> {
    let identity: ReturnType<Identify<R>>
    try {
      identity = this.identify?.(request.raw)
    } catch (error) {
      this.failVerification(facts, verdict, credential, gated)
      throw error
    }
    if (!isThenable<Identity | undefined>(identity))
      return this.verifiedAs(identity, request, facts, verdict, credential, gated)
    return Promise.resolve(identity).then(
      (found) => this.verifiedAs(found, request, facts, verdict, credential, gated),
      (error: unknown) => {
        this.failVerification(facts, verdict, credential, gated)
        throw error
      },
    )
  }

  private verifiedAs(
    found: Identity | null | undefined,
    request: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
    credential: string | undefined,
    gated: boolean,
  ): Verdict | Promise<Verdict> {
    // A database says null where JavaScript says undefined: it must not count as somebody.
    const identity = found || undefined
    facts.identity = identity
    verdict.identity = identity
    facts.failed = identity === undefined && credential !== undefined
    if (credential !== undefined) this.verification.remember(credential, identity !== undefined)
    try {
      this.checkPlan(identity)
      const { client } = identity ?? {}
      if (client !== undefined && this.enforcer.current.exemptClients.has(client)) {
        this.enforcer.giveBack(verdict, facts.nowUs)
        return verdict
      }
      // A failure is charged to the policies for anonymous callers here, before its place is given to the next.
      return this.askIdentified(request, facts, verdict)
    } finally {
      if (gated) this.verification.leave(facts)
    }
  }

  /** Verification threw: it counts as failed, or throwing would make trying free. */
  private failVerification(
    facts: RequestFacts,
    verdict: Verdict,
    credential: string | undefined,
    gated: boolean,
  ): void {
    if (credential !== undefined) this.verification.remember(credential, false)
    facts.failed = credential !== undefined
    // These policies are in memory, so they are charged when the call returns.
    void this.enforcer.ask('identity', facts, verdict, guardsVerification)
    // Nothing is carried out, so nothing holds a permit; what was charged stays charged.
    this.enforcer.releaseAll(verdict, facts.nowUs)
    if (gated) this.verification.leave(facts)
  }

  private askIdentified(request: GuardRequest<R>, facts: RequestFacts, verdict: Verdict): Verdict | Promise<Verdict> {
    const passed = this.enforcer.ask('identity', facts, verdict)
    return typeof passed === 'boolean'
      ? this.askContent(passed, request, facts, verdict)
      : passed.then((known) => this.askContent(known, request, facts, verdict))
  }

  /** Goes on after the identity stage. */
  private askContent(
    passed: boolean,
    request: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
  ): Verdict | Promise<Verdict> {
    if (!passed || !this.needsBody(facts)) return this.finish(verdict)
    let body: unknown
    try {
      body = request.body?.()
    } catch (error) {
      this.enforcer.giveBack(verdict, facts.nowUs)
      throw error
    }
    if (!isThenable(body)) return this.askBody(body, facts, verdict)
    return Promise.resolve(body).then(
      (parsed) => this.askBody(parsed, facts, verdict),
      (error: unknown) => {
        this.enforcer.giveBack(verdict, facts.nowUs)
        throw error
      },
    )
  }

  private askBody(body: unknown, facts: RequestFacts, verdict: Verdict): Verdict | Promise<Verdict> {
    facts.body = body
    const passed = this.enforcer.ask('body', facts, verdict)
    return typeof passed === 'boolean' ? this.finish(verdict) : passed.then(() => this.finish(verdict))
  }

  private needsBody(facts: RequestFacts): boolean {
    for (const policy of this.enforcer.current.list) {
      if (policy.stage === 'body' && policy.mode !== 'off' && applies(policy, facts)) return true
    }
    return false
  }

  private finish(verdict: Verdict): Verdict | Promise<Verdict> {
    if (this.reports) this.report(verdict)
    if (verdict.delayMs === 0 || !verdict.allowed) return verdict
    return new Promise((resolve) => {
      if (later(verdict.delayMs, () => resolve(verdict)) === undefined) resolve(verdict)
    })
  }

  private refuseUnverified(facts: RequestFacts, verdict: Verdict): Verdict | Promise<Verdict> {
    this.enforcer.giveBack(verdict, facts.nowUs)
    verdict.refusing.push(...this.verification.refusals(facts))
    return this.finish(verdict)
  }

  private checkNow(now: number): void {
    if (!this.enforcer.isShared) return
    const message = 'a time of its own was given to a guard over a shared store, whose clock decides; allowed: none'
    throw new CatracaError('CATRACA_NOW_INVALID', message, { path: 'now', value: now })
  }

  private checkPlan(identity: Identity | undefined): void {
    const { plan } = identity ?? {}
    const { plans, defaultPlan } = this.enforcer.current
    if (plan === undefined || plans.size === 0 || plans.has(plan)) return
    const code = 'CATRACA_PLAN_UNDECLARED'
    if (this.diagnosed.has(code)) return
    this.diagnosed.add(code)
    const message = `a caller has the plan ${show(plan)}, which plans.names does not list; it counts as ${show(defaultPlan)}`
    this.events.emit('diagnosis', { code, help: helpPage(code), message })
  }

  private report(verdict: Verdict): void {
    const { decision } = verdict
    if (decision !== undefined) this.events.emit('decision', { decision })
    if (!verdict.allowed) return
    for (const { decision: one } of verdict.admitted) {
      const usedShare = (one.limit - one.remaining) / one.limit
      if (usedShare >= nearShare) this.events.emit('nearLimit', { decision: one, policy: one.policy, usedShare })
    }
  }

  private update(): void {
    this.reports = this.events.has('decision') || this.events.has('nearLimit')
  }
}

/** Used share from which `nearLimit` is emitted. */
const nearShare = 0.8

function isExempt(policies: Policies, facts: Pick<RequestFacts, 'method' | 'path'>, address: string): boolean {
  // In every reading of the path, or another spelling would be a way out.
  for (const route of policies.exemptRoutes) if (route.matchesSurely(facts.method, facts.path)) return true
  return policies.document.exempt?.addresses !== undefined && policies.exemptAddresses.has(address)
}

/** Promises of other libraries too: taken for an identity, one would count as somebody. */
function isThenable<T = unknown>(value: unknown): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

/**
 * A guard for a policy document. Throws a `CatracaError` that names the place, the value and what is allowed.
 *
 * With a store that instances share the document must say how many there are (`storeFailure.expectedInstances`), and
 * `explain` gives a promise.
 *
 * @example
 * const guard = createGuard({ policies, identify: (request) => clientOf(request.headers.authorization) })
 */
export function createGuard<R = unknown>(options: GuardOptions<R>): Guard<R>
export function createGuard<R = unknown>(
  options: GuardOptions<R, RemoteStore> & { store: RemoteStore },
): Guard<R, Promise<Explanation[]>>
export function createGuard<R = unknown>(options: GuardOptions<R, Store | RemoteStore>): AnyGuard<R>
export function createGuard<R = unknown>(options: GuardOptions<R, Store | RemoteStore>): AnyGuard<R> {
  checkGuardOptions(options)
  return new Guard(readPolicies(options.policies, isRemote(options.store)), options)
}
