import { nowUs as clockUs, monotonicUs } from '../core/clock.ts'
import { type Decision, sayAnswer } from '../core/decision.ts'
import type { Reason } from '../core/reason.ts'
import type { Change, Enforcer } from '../policy/enforcer.ts'
import { modeFor } from '../policy/mode.ts'
import type { Strategy } from '../policy/overflow.ts'
import { type Policy, stages } from '../policy/policy.ts'
import type { QueueBounds } from '../policy/turns.ts'
import { type Said, Verdict } from '../policy/verdict.ts'
import type { AnswerCache } from './answer-cache.ts'
import { acceptedAnswer, isJobId, type Jobs, type Work } from './jobs.ts'
import { copyOf, keptKey } from './kept-answer.ts'
import type { GuardRequest } from './request.ts'
import type { RequestFacts } from './request-facts.ts'

/** How long work waits at most between two questions for a permit. */
const permitMs = 1_000

/** Refusals that say the caller asked for too much; to others nothing but a copy is given. */
const excess: readonly Reason[] = ['limited', 'impossible', 'concurrency', 'quota']

/**
 * Answers a request over a limit in one of the ways that the refusing policy lists, in its order; of several the one with
 * the longest wait. Each way but a copy and a job asks the refusing stack again, so that what another policy of it refuses
 * stays refused.
 */
export class Overflow<R> {
  private readonly enforcer: Enforcer
  private readonly cache: AnswerCache
  private readonly jobs: Jobs<R> | undefined

  constructor(enforcer: Enforcer, cache: AnswerCache, jobs: Jobs<R> | undefined) {
    this.enforcer = enforcer
    this.cache = cache
    this.jobs = jobs
  }

  /** True where the refused request has another answer to hope for. */
  has(facts: RequestFacts, verdict: Verdict): boolean {
    return verdict.refused !== undefined && this.listOf(facts, verdict).length > 1
  }

  /** True when the request goes on after all. Else the verdict has its answer, or is a refusal. */
  async answer(request: GuardRequest<R>, facts: RequestFacts, verdict: Verdict): Promise<boolean> {
    const { enforcer } = this
    for (;;) {
      noteOver(verdict)
      const stack = verdict.refused
      const first = [...verdict.refusing]
      for (const strategy of this.listOf(facts, verdict)) {
        if (enforcer.isClosed || verdict.aborted) return false
        // Another document came meanwhile: it decides.
        const anew = !enforcer.isCurrent(verdict)
        if (anew && (await enforcer.anew(facts, verdict))) return true
        if (!anew && (await this.attempt(strategy, request, facts, verdict, first))) return verdict.ready === undefined
        // The stack passed, and one behind it refused, or it was another document's: the list of who refuses now counts.
        if (verdict.refused !== stack) break
      }
      if (verdict.refused === stack) return false
    }
  }

  private listOf(facts: RequestFacts, verdict: Verdict): readonly Strategy[] {
    const { binding } = verdict
    if (binding === undefined) return []
    const { overflow } = this.enforcer.variantOf(binding.policy, facts)
    if (excess.includes(binding.decision.reason)) return overflow
    return overflow.filter(({ kind }) => kind === 'stale' || kind === 'reject')
  }

  /** True when the answer was found. @param first What refused before any other answer was tried. */
  private attempt(
    strategy: Strategy,
    request: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
    first: readonly Said[],
  ): boolean | Promise<boolean> {
    switch (strategy.kind) {
      case 'queue':
        return this.queue(strategy, request, facts, verdict)
      case 'stale':
        return this.copy(strategy.maxAgeMs, request, facts, verdict)
      case 'degrade':
        return this.degrade(facts, verdict, first)
      case 'accept':
        return this.accept(request, facts, verdict)
      case 'mark':
        return this.mark(facts, verdict, first)
      default:
        return false
    }
  }

  private async queue(
    { maxWaitUs, maxWaiting }: QueueBounds,
    { signal }: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
  ): Promise<boolean> {
    const { binding } = verdict
    if (binding === undefined) return false
    // However often it has to wait, behind other stacks or by other documents, it is no longer than this in all.
    const bounds = { maxWaitUs: Math.max(0, maxWaitUs - verdict.waitedUs), maxWaiting }
    const beganUs = monotonicUs()
    const passed = await this.enforcer.queue(binding.policy, facts, verdict, bounds, signal)
    verdict.waitedUs += monotonicUs() - beganUs
    verdict.aborted = !passed && verdict.decision?.reason === 'aborted'
    if (passed) this.say('queue', verdict)
    return passed
  }

  private async copy(
    maxAgeMs: number,
    request: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
  ): Promise<boolean> {
    const key = keptKey(request, facts)
    if (key === undefined) return false
    const ready = await copyOf(this.cache, key, maxAgeMs, (facts.nowUs ?? clockUs()) / 1_000)
    if (ready === undefined) return false
    verdict.ready = ready
    verdict.answer = 'stale'
    return true
  }

  private async degrade(facts: RequestFacts, verdict: Verdict, first: readonly Said[]): Promise<boolean> {
    const costOf = (policy: Policy): number => {
      const degrade = this.enforcer.variantOf(policy, facts).overflow.find(({ kind }) => kind === 'degrade')
      return degrade?.kind === 'degrade' ? degrade.cost : policy.cost
    }
    const { passed, spared } = await this.spare('degrade', facts, verdict, first, (names) => ({
      cost: (policy) => (names.has(policy.name) ? costOf(policy) : policy.cost),
    }))
    // Also where a stack behind it refuses and answers in another way: less was paid.
    if (spared !== undefined) verdict.told = 'degrade'
    if (passed) this.say('degrade', verdict)
    return passed
  }

  private async mark(facts: RequestFacts, verdict: Verdict, first: readonly Said[]): Promise<boolean> {
    const { passed, spared } = await this.spare('mark', facts, verdict, first, (without) => ({ without }))
    if (spared !== undefined) {
      verdict.marked.push(...spared)
      verdict.told ??= 'mark'
    }
    if (passed) this.say('mark', verdict)
    return passed
  }

  /**
   * Asks the stack again, kinder to the policies that refused and list the answer. A store that refuses without a trip may
   * know of one of them alone, so those that only now refuse are spared as well. `spared` is undefined where the stack
   * still refuses.
   */
  private async spare(
    answer: Strategy['kind'],
    facts: RequestFacts,
    verdict: Verdict,
    first: readonly Said[],
    change: (names: ReadonlySet<string>) => Change,
  ): Promise<{ passed: boolean; spared: readonly Said[] | undefined }> {
    const { enforcer } = this
    const lists = ({ policy }: Said): boolean =>
      enforcer.variantOf(policy, facts).overflow.some(({ kind }) => kind === answer)
    const stack = verdict.refused
    const spared: Said[] = []
    for (let more = first.filter(lists); more.length > 0 && enforcer.isCurrent(verdict); ) {
      spared.push(...more)
      const names = new Set(spared.map(({ policy }) => policy.name))
      const passed = await enforcer.again(facts, verdict, change(names))
      if (passed || verdict.refused !== stack) return { passed, spared }
      noteOver(verdict)
      more = verdict.refusing.filter((said) => !names.has(said.policy.name) && lists(said))
    }
    return { passed: false, spared: undefined }
  }

  private async accept(request: GuardRequest<R>, facts: RequestFacts, verdict: Verdict): Promise<boolean> {
    const { jobs } = this
    const { decision } = verdict
    if (jobs === undefined || decision === undefined || decision.reason === 'impossible') return false
    if (request.method === 'GET' || request.method === 'HEAD') return false
    // Whoever let the request through would find that its credential is not valid; nobody looks at it later.
    if (facts.failed) return false
    let id: string | undefined
    try {
      facts.body ??= await request.body?.()
      // Nobody would learn of the work.
      verdict.aborted = request.signal?.aborted === true
      if (verdict.aborted) return false
      id = await jobs.submit(this.workOf(request, facts, verdict, decision))
    } catch {
      // A body that did not arrive, or a runner that is gone: the next answer applies.
    }
    if (id === undefined || !isJobId(id)) return false
    verdict.ready = acceptedAnswer(jobs.path, id)
    verdict.answer = 'accept'
    return true
  }

  /**
   * Work asks the policies as the request did, but nothing else than them: its caller is known. Observed policies, and
   * those that count attempts and were charged, have counted the request: it is not asked for twice.
   */
  private workOf(request: GuardRequest<R>, facts: RequestFacts, earlier: Verdict, { policy }: Decision): Work<R> {
    const { enforcer } = this
    const { method, target, raw } = request
    const { address } = facts
    const { client, user } = facts.identity ?? {}
    const attempted = new Set<string>()
    const noteAttempts = ({ admitted }: Verdict): void => {
      for (const { policy: one, decision } of admitted) {
        if (one.keepsAttempts && !decision.source.rule.holds) attempted.add(one.name)
      }
    }
    noteAttempts(earlier)
    let stagesSeen = earlier.refused === undefined ? 0 : stages.indexOf(earlier.refused.stage) + 1
    let verdict = new Verdict()
    facts.nowUs = undefined
    return {
      request: raw,
      method,
      target,
      body: facts.body,
      // Whatever else makes a key of the policy, such as a header: nobody has more room by choosing many.
      caller: JSON.stringify({ policy, client, user, ...(client === undefined && user === undefined && { address }) }),
      ready: async () => {
        verdict = new Verdict()
        for (const [at, stage] of stages.entries()) {
          const observes = at >= stagesSeen
          const only = (one: Policy): boolean =>
            !attempted.has(one.name) && (observes || modeFor(one, facts) === 'enforce')
          stagesSeen = Math.max(stagesSeen, at + 1)
          if (await enforcer.ask(stage, facts, verdict, only)) continue
          const { retryAfterMs = Infinity, reason } = verdict.decision ?? {}
          enforcer.giveBack(verdict)
          noteAttempts(verdict)
          // The wait of a permit is the latest possible; it mostly comes back sooner.
          return Math.max(1, reason === 'concurrency' ? Math.min(permitMs, retryAfterMs) : retryAfterMs)
        }
        return 0
      },
      over: () => enforcer.releaseAll(verdict),
    }
  }

  private say(answer: 'queue' | 'degrade' | 'mark', verdict: Verdict): void {
    verdict.answer = answer
    const { decision } = verdict
    if (decision !== undefined) sayAnswer(decision, answer)
  }
}

/** Notes over whose limit a request is, each policy once. */
function noteOver({ over, refusing }: Verdict): void {
  for (const said of refusing) if (!over.some(({ policy }) => policy.name === said.policy.name)) over.push(said)
}
