import { applies } from '../policy/applies.ts'
import type { Enforcer } from '../policy/enforcer.ts'
import type { Identity } from '../policy/facts.ts'
import { guardsVerification } from '../policy/home.ts'
import type { Stage } from '../policy/policy.ts'
import { Verdict } from '../policy/verdict.ts'
import type { Identify } from './guard-options.ts'
import type { Overflow } from './overflow.ts'
import type { GuardRequest } from './request.ts'
import type { RequestFacts } from './request-facts.ts'
import type { Verification } from './verification.ts'

/** What requests pass by. */
export interface Stations<R> {
  readonly enforcer: Enforcer
  readonly verification: Verification
  readonly overflow: Overflow<R>
  readonly identify: Identify<R> | undefined
  /** Is told of a plan that the document may not declare. */
  readonly checkPlan: (identity: Identity | undefined) => void
}

/**
 * The way of one request: the address stage, the verification of its caller, the identity stage, the body stage. At once
 * where nothing has to be waited for. A refusal ends it, unless it has another answer.
 */
export class Passage<R> {
  readonly verdict = new Verdict()
  private readonly at: Stations<R>
  private readonly request: GuardRequest<R>
  private readonly facts: RequestFacts
  private readonly credential: (() => string | undefined) | undefined
  private onlyVerifies = false

  /** @param credential Reads the credential that the request carries; where nobody is verified nobody asks for it. */
  constructor(
    at: Stations<R>,
    request: GuardRequest<R>,
    facts: RequestFacts,
    credential: (() => string | undefined) | undefined,
  ) {
    this.at = at
    this.request = request
    this.facts = facts
    this.verdict.units = facts.units
    this.credential = credential
  }

  /** Asks everything. Rejects, or throws, when `identify` or the reading of the body does. */
  run(): Verdict | Promise<Verdict> {
    const passed = this.pass('address')
    return typeof passed === 'boolean' ? this.askCaller(passed) : passed.then((known) => this.askCaller(known))
  }

  /**
   * Verifies who asks for something that is not counted, and asks nothing else: trying credentials is no freer there. The
   * verdict is a refusal where the caller has tried too many.
   */
  verify(): Verdict | Promise<Verdict> {
    this.onlyVerifies = true
    return this.askCaller(true)
  }

  private pass(stage: Stage): boolean | Promise<boolean> {
    const passed = this.at.enforcer.ask(stage, this.facts, this.verdict)
    if (passed === true) return true
    return passed === false ? this.over() : passed.then((known) => known || this.over())
  }

  /** Over a limit. */
  private over(): boolean | Promise<boolean> {
    const { at, request, facts, verdict } = this
    if (!at.overflow.has(facts, verdict)) return this.end()
    this.noteCredential()
    return at.overflow.answer(request, facts, verdict).then((goesOn) => goesOn || this.end())
  }

  /** Of who was not looked at yet: a copy for nobody in particular is not for who shows a credential. */
  private noteCredential(): void {
    try {
      this.facts.credential ??= this.credential?.()
    } catch {
      this.facts.credential = ''
    }
  }

  private end(): false {
    const { verdict } = this
    this.at.enforcer.giveBack(verdict, this.facts.nowUs)
    verdict.told = undefined
    if (verdict.ready === undefined) {
      verdict.answer = 'reject'
      verdict.acceptLanguage = this.request.header('accept-language')
    }
    return false
  }

  /** Goes on after the address stage. */
  private askCaller(passed: boolean): Verdict | Promise<Verdict> {
    const { at, facts, verdict } = this
    if (!passed) return verdict
    if (this.credential === undefined) return this.askIdentified()
    let credential: string | undefined
    try {
      credential = this.credential()
    } catch (error) {
      this.failVerification(undefined, false)
      throw error
    }
    facts.credential = credential
    if (at.identify === undefined) return this.askIdentified()
    const { verification } = at
    const known = credential === undefined || verification.knows(credential)
    const room = known ? Infinity : verification.room(facts)
    if (room === Infinity) return this.verifyAs(credential, false)
    const ticket = verification.enter(facts, room)
    if (ticket === 'go') return this.verifyAs(credential, true)
    if (ticket === 'refuse') return this.refuseUnverified()
    return ticket.then((entry) => {
      if (entry === 'go') return this.verifyAs(credential, true)
      // A document that came meanwhile may have no limit for it any more.
      if (verification.room(facts) < Infinity) return this.refuseUnverified()
      return this.verifyAs(credential, false)
    })
  }

  private verifyAs(credential: string | undefined, gated: boolean): Verdict | Promise<Verdict> {
    let identity: ReturnType<Identify<R>> | undefined
    try {
      identity = this.at.identify?.(this.request.raw)
    } catch (error) {
      this.failVerification(credential, gated)
      throw error
    }
    if (!isThenable<Identity | undefined>(identity)) return this.verifiedAs(identity, credential, gated)
    return Promise.resolve(identity).then(
      (found) => this.verifiedAs(found, credential, gated),
      (error: unknown) => {
        this.failVerification(credential, gated)
        throw error
      },
    )
  }

  private verifiedAs(
    found: Identity | null | undefined,
    credential: string | undefined,
    gated: boolean,
  ): Verdict | Promise<Verdict> {
    const { at, facts, verdict } = this
    // A database says null where JavaScript says undefined: it must not count as somebody.
    const identity = found || undefined
    facts.identity = identity
    verdict.identity = identity
    facts.failed = identity === undefined && credential !== undefined
    if (credential !== undefined) at.verification.remember(credential, identity !== undefined)
    try {
      at.checkPlan(identity)
      const { client } = identity ?? {}
      if (client !== undefined && at.enforcer.current.exemptClients.has(client)) {
        at.enforcer.giveBack(verdict, facts.nowUs)
        return verdict
      }
      // A failure is charged to the policies for anonymous callers here, before its place is given to the next.
      return this.askIdentified()
    } finally {
      if (gated) at.verification.leave(facts)
    }
  }

  /** Verification threw: it counts as failed, or throwing would make trying free. */
  private failVerification(credential: string | undefined, gated: boolean): void {
    const { at, facts } = this
    if (credential !== undefined) at.verification.remember(credential, false)
    facts.failed = credential !== undefined
    this.chargeFailure()
    if (gated) at.verification.leave(facts)
  }

  /** Charges a failure where nothing else is asked. These policies are in memory, so it is done when the call returns. */
  private chargeFailure(): void {
    const { at, facts, verdict } = this
    if (at.enforcer.ask('identity', facts, verdict, guardsVerification) === false) this.end()
    // Nothing is carried out, so nothing holds a permit; what was charged stays charged.
    at.enforcer.releaseAll(verdict, facts.nowUs)
  }

  private askIdentified(): Verdict | Promise<Verdict> {
    if (this.onlyVerifies) {
      if (this.facts.failed) this.chargeFailure()
      return this.verdict
    }
    const passed = this.pass('identity')
    return typeof passed === 'boolean' ? this.askContent(passed) : passed.then((known) => this.askContent(known))
  }

  /** Goes on after the identity stage. */
  private askContent(passed: boolean): Verdict | Promise<Verdict> {
    const { at, facts, verdict } = this
    if (!passed || !this.needsBody()) return verdict
    let body: unknown
    try {
      body = this.request.body?.()
    } catch (error) {
      at.enforcer.giveBack(verdict, facts.nowUs)
      throw error
    }
    if (!isThenable(body)) return this.askBody(body)
    return Promise.resolve(body).then(
      (parsed) => this.askBody(parsed),
      (error: unknown) => {
        at.enforcer.giveBack(verdict, facts.nowUs)
        throw error
      },
    )
  }

  private askBody(body: unknown): Verdict | Promise<Verdict> {
    this.facts.body = body
    const passed = this.pass('body')
    return typeof passed === 'boolean' ? this.verdict : passed.then(() => this.verdict)
  }

  private needsBody(): boolean {
    const { facts } = this
    for (const policy of this.at.enforcer.current.list) {
      // For whom it is enforced can be a matter of the body.
      if (policy.stage === 'body' && policy.mode !== 'off' && applies(policy, facts)) return true
    }
    return false
  }

  private refuseUnverified(): Verdict {
    const { at, facts, verdict } = this
    this.end()
    verdict.refusing.push(...at.verification.refusals(facts))
    return verdict
  }
}

/** Promises of other libraries too: taken for an identity, one would count as somebody. */
function isThenable<T = unknown>(value: unknown): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
