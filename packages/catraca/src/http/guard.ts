import { later, nowUs, onClockStep } from '../core/clock.ts'
import { checkActualCost } from '../core/cost.ts'
import type { Decision } from '../core/decision.ts'
import { CatracaError, show } from '../core/errors.ts'
import { Emitter, type EventName, type Listener } from '../core/events.ts'
import { storeEvents } from '../limiter/store-events.ts'
import type { Mode, ModeEntry, PolicyDocument } from '../policy/document.ts'
import { Enforcer } from '../policy/enforcer.ts'
import { type Explanation, explain, factsOf } from '../policy/explain.ts'
import type { Descriptor, Identity } from '../policy/facts.ts'
import { normalPath } from '../policy/path.ts'
import { type Policies, readPolicies } from '../policy/policy.ts'
import { type ReadyAnswer, Verdict } from '../policy/verdict.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import type { Health, RemoteStore } from '../stores/remote.ts'
import type { Store } from '../stores/store.ts'
import { type AnswerCache, memoryCache } from './answer-cache.ts'
import { type Answer, Answers } from './answers.ts'
import { Diagnoses } from './diagnoses.ts'
import { checkGuardOptions, type GuardOptions, isRemote } from './guard-options.ts'
import { type JobStatus, type Jobs, jobAnswer, jobIdIn } from './jobs.ts'
import { keep, keptKey } from './kept-answer.ts'
import { Overflow } from './overflow.ts'
import { Passage, type Stations } from './passage.ts'
import type { GuardRequest } from './request.ts'
import { RequestFacts } from './request-facts.ts'
import { isStatus, statusAnswer } from './status.ts'
import { type Counts, Tally } from './tally.ts'
import { Trust } from './trust.ts'
import { TrustWatch } from './trust-watch.ts'
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
  private readonly stations: Stations<R>
  private readonly statusPath: string | undefined
  private readonly credentialOf: ((request: R) => string | undefined) | undefined
  private readonly ownStore: Store | undefined
  private readonly events = new Emitter()
  private readonly diagnoses = new Diagnoses((event) => this.events.emit('diagnosis', event))
  private readonly watch = new TrustWatch(this.diagnoses)
  private readonly tally = new Tally()
  private readonly cache: AnswerCache
  private readonly jobs: Jobs<R> | undefined
  private readonly stopClock: () => void
  /** True once a document listed `accept`: before, paths that look like those of accepted work are the application's. */
  private accepts = false
  private reports = false
  private closed = false

  /** @internal Use {@link createGuard}. */
  constructor(policies: Policies, options: GuardOptions<R, Store | RemoteStore>) {
    const { identify, credential, store, name = 'guard', on = {}, random = Math.random } = options
    const { cache = memoryCache(), jobs, statusPath } = options
    const shared = isRemote(store) ? store : undefined
    const given = isRemote(store) ? undefined : store
    const memory = given ?? memoryStore()
    this.credentialOf = credential
    this.ownStore = given === undefined ? memory : undefined
    this.trust = new Trust(policies.document.trust, 'trust', this.watch)
    this.answers = new Answers(options, random, (code, message) => this.diagnoses.tell(code, message))
    this.cache = cache
    this.jobs = jobs
    this.statusPath = statusPath
    this.checkJobs(policies)
    for (const [event, listener] of Object.entries(on)) this.on(event as EventName, listener as Listener<EventName>)
    const hooks = storeEvents(this.events, () => {
      this.closed = true
    })
    this.enforcer = new Enforcer(policies, memory, shared, name, hooks, (said) => this.tally.observed(said))
    this.stations = {
      enforcer: this.enforcer,
      verification: new Verification(this.enforcer),
      overflow: new Overflow(this.enforcer, cache, jobs),
      identify,
      checkPlan: (identity) => this.checkPlan(identity),
    }
    if (shared === undefined) this.diagnoses.memoryStore()
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
    const told = this.ownAnswer(request)
    if (told !== undefined) return told
    const policies = this.enforcer.current
    const facts = this.factsOf(request)
    if (isExempt(policies, facts, facts.peer)) {
      const verdict = new Verdict()
      verdict.address = facts.peer
      this.tally.count(verdict)
      return verdict
    }
    const verdict = this.passageOf(request, facts).run()
    return verdict instanceof Promise
      ? verdict.then((known) => this.finish(known, request, facts))
      : this.finish(verdict, request, facts)
  }

  /** True where the fields of limits are to be taken off answers that shared caches may keep. */
  get omitsCacheable(): boolean {
    return this.answers.omitsCacheable
  }

  /** Header fields that tell the caller what its limits are, names and values in turn. Empty for an exempt request. */
  fieldsOf(verdict: Verdict): string[] {
    return this.answers.fields(verdict)
  }

  /** What to answer to a request that does not go on to its handler. */
  answerOf(verdict: Verdict): Answer {
    const { ready } = verdict
    if (ready === undefined) return this.answers.refusal(verdict, verdict.acceptLanguage)
    return { ...ready, fields: [...ready.fields, ...this.fieldsOf(verdict)] }
  }

  /** Gives the permits of a request back; to be called when its answer is over, however it ended. */
  release(verdict: Verdict): void {
    this.enforcer.releaseAll(verdict)
  }

  /**
   * Tells what an admitted request really cost, in the units in which it asked, from 0 on: of fewer the rest is given back
   * while it still counts, more are charged unasked. Permits stay held until {@link Guard.release}. Once per request.
   */
  settle(verdict: Verdict, units: number): void {
    this.enforcer.settleAll(verdict, checkActualCost(units))
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
    const facts = this.factsOf(request)
    if (this.enforcer.current.usesCredentials) facts.credential = this.credentialIn(request)
    facts.identity = (await this.stations.identify?.(request.raw)) || undefined
    return explain(this.enforcer, facts, this.isExempt(facts))
  }

  /** Replaces the document while requests go on. What was used stays used. Throws, and changes nothing, for a wrong one. */
  replace(document: PolicyDocument): void {
    const policies = readPolicies(document, this.enforcer.isShared)
    this.checkJobs(policies)
    this.trust = new Trust(document.trust, 'trust', this.watch)
    this.enforcer.replace(policies)
    this.tally.replaced()
    this.events.emit('reloaded', { policies: policies.list.map(({ name }) => name) })
  }

  /**
   * Changes the mode of one policy while requests go on; what was used stays used. Throws for a name that no policy has, and
   * for a mode that is none.
   */
  setMode(policy: string, mode: Mode | ModeEntry): void {
    const { document } = this.enforcer.current
    const entry = Object.hasOwn(document.policies, policy) ? document.policies[policy] : undefined
    if (entry === undefined) {
      const allowed = Object.keys(document.policies).join(', ')
      const message = `policy is ${show(policy)}; allowed: ${allowed}`
      throw new CatracaError('CATRACA_POLICY_UNKNOWN', message, { path: 'policy', value: policy })
    }
    this.replace({ ...document, policies: { ...document.policies, [policy]: { ...entry, mode } } })
  }

  /** What was counted since the guard was made, by answer, policy, and id of the credential. */
  get counts(): Counts {
    return this.tally.counts(this.enforcer.current)
  }

  /** Is told of a request that an earlier limit counted: where it was this one, or one of the same name, that is a mistake. */
  sawBefore({ source }: Decision): void {
    const own = this.enforcer.current.list.some(({ name }) => name === source.name)
    if (own) this.diagnoses.twice(source.name)
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
    void this.jobs?.close()
    this.ownStore?.close()
    this.events.clear()
  }

  private factsOf(request: GuardRequest<R>): RequestFacts {
    const path = normalPath(request.target, this.enforcer.current.caseSensitive)
    const address = this.trust.addressOf(request.peer, (name) => request.header(name))
    return new RequestFacts(request, path, this.trust.networkOf(address), address)
  }

  private passageOf(request: GuardRequest<R>, facts: RequestFacts): Passage<R> {
    const asksWho = this.stations.identify !== undefined || this.enforcer.current.usesCredentials
    const passage = new Passage(this.stations, request, facts, asksWho ? () => this.credentialIn(request) : undefined)
    passage.verdict.address = facts.peer
    return passage
  }

  /** What the guard answers itself: the limits of the caller, and the status of accepted work. Neither is counted. */
  private ownAnswer(request: GuardRequest<R>): Promise<Verdict> | undefined {
    const { jobs, statusPath } = this
    if (jobs === undefined && statusPath === undefined) return undefined
    const { method, target } = request
    const id = jobs === undefined ? undefined : jobIdIn(jobs.path, method, target)
    if (id !== undefined && this.accepts) return told(async () => jobAnswer(await this.findJob(id)))
    if (statusPath === undefined || !isStatus(statusPath, method, target)) return undefined
    return this.tellStatus(request)
  }

  /** Asking is free, but trying credentials is not. */
  private async tellStatus(request: GuardRequest<R>): Promise<Verdict> {
    const facts = this.factsOf(request)
    const verdict = await this.passageOf(request, facts).verify()
    if (!verdict.allowed) {
      this.tally.count(verdict)
      return verdict
    }
    return told(async () => statusAnswer(await explain(this.enforcer, facts, this.isExempt(facts))))
  }

  private isExempt(facts: RequestFacts): boolean {
    const policies = this.enforcer.current
    const { client } = facts.identity ?? {}
    return isExempt(policies, facts, facts.peer) || (client !== undefined && policies.exemptClients.has(client))
  }

  private async findJob(id: string): Promise<JobStatus | undefined> {
    try {
      return await this.jobs?.find(id)
    } catch {
      return undefined
    }
  }

  private credentialIn(request: GuardRequest<R>): string | undefined {
    if (this.credentialOf !== undefined) return this.credentialOf(request.raw) || undefined
    // Both: of two headers one alone could be a valid one's, to try many in the other.
    const one = request.header('authorization') || ''
    const other = request.header('x-api-key') || ''
    return other === '' ? one || undefined : `${one}\n${other}`
  }

  private finish(verdict: Verdict, request: GuardRequest<R>, facts: RequestFacts): Verdict | Promise<Verdict> {
    this.tally.count(verdict)
    if (this.reports) this.report(verdict)
    if (!verdict.allowed) return verdict
    if (this.enforcer.current.answers.has('stale')) this.keepCopy(verdict, request, facts)
    if (verdict.delayMs === 0) return verdict
    return new Promise((resolve) => {
      if (later(verdict.delayMs, () => resolve(verdict)) === undefined) resolve(verdict)
    })
  }

  /** Asks for a copy of the answer where a policy may want one later; of less than a whole answer none is wanted. */
  private keepCopy(verdict: Verdict, request: GuardRequest<R>, facts: RequestFacts): void {
    if (verdict.told !== undefined || request.method !== 'GET') return
    const wanted = verdict.admitted.some(({ policy }) => {
      return this.enforcer.variantOf(policy, facts).overflow.some(({ kind }) => kind === 'stale')
    })
    const key = wanted ? keptKey(request, facts) : undefined
    if (key === undefined) return
    const { cache } = this
    verdict.keepBytes = cache.maxBodyBytes
    verdict.keep = (answer) => keep(cache, key, answer, (facts.nowUs ?? nowUs()) / 1_000)
  }

  private checkJobs({ answers }: Policies): void {
    this.accepts ||= answers.has('accept')
    if (!answers.has('accept') || this.jobs !== undefined) return
    const message =
      'options.jobs is missing, and a policy lists accept; allowed: a runner of accepted work such as memoryJobs({ run })'
    throw new CatracaError('CATRACA_OPTION_INVALID', message, { path: 'options.jobs', value: undefined })
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
    const message = `a caller has the plan ${show(plan)}, which plans.names does not list; it counts as ${show(defaultPlan)}`
    this.diagnoses.tell('CATRACA_PLAN_UNDECLARED', message)
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

/** The answer of the guard itself. */
async function told(answer: () => Promise<ReadyAnswer>): Promise<Verdict> {
  const verdict = new Verdict()
  verdict.answer = 'told'
  verdict.ready = await answer()
  return verdict
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
