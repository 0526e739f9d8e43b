import { nowUs as clockUs } from '../core/clock.ts'
import { type Decision, sayAnswer } from '../core/decision.ts'
import type { Reason } from '../core/reason.ts'
import type { Enforcer } from '../policy/enforcer.ts'
import type { Strategy } from '../policy/overflow.ts'
import { stages } from '../policy/policy.ts'
import type { QueueBounds } from '../policy/turns.ts'
import { Verdict } from '../policy/verdict.ts'
import type { AnswerCache } from './answer-cache.ts'
import { acceptedAnswer, type Jobs, type Work } from './jobs.ts'
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
    verdict.over.push(...verdict.refusing)
    for (;;) {
      const stack = verdict.refused
      for (const strategy of this.listOf(facts, verdict)) {
        if (await this.attempt(strategy, request, facts, verdict)) return verdict.ready === undefined
        // The stack passed, and one behind it refused: that one's list counts.
        if (verdict.refused !== stack) break
      }
      if (verdict.refused === stack) return false
    }
  }

  private listOf(facts: RequestFacts, verdict: Verdict): readonly Strategy[] {
    const { binding } = verdict
    if (binding === undefined) return []
    const { overflow } = this.enforcer.variantOf(binding.policy, facts)
    return excess.includes(binding.decision.reason) ? overflow : overflow.filter(({ kind }) => kind === 'stale')
  }

  /** True when the answer was found. */
  private attempt(
    strategy: Strategy,
    request: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
  ): boolean | Promise<boolean> {
    switch (strategy.kind) {
      case 'queue':
        return this.queue(strategy, request, facts, verdict)
      case 'stale':
        return this.copy(strategy.maxAgeMs, request, facts, verdict)
      case 'degrade':
        return this.degrade(facts, verdict)
      case 'accept':
        return this.accept(request, facts, verdict)
      case 'mark':
        return this.mark(facts, verdict)
      default:
        return false
    }
  }

  private async queue(
    bounds: QueueBounds,
    { signal }: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
  ): Promise<boolean> {
    const { binding } = verdict
    if (binding === undefined) return false
    if (!(await this.enforcer.queue(binding.policy, facts, verdict, bounds, signal))) return false
    this.say('queue', verdict)
    return true
  }

  private async copy(
    maxAgeMs: number,
    request: GuardRequest<R>,
    facts: RequestFacts,
    verdict: Verdict,
  ): Promise<boolean> {
    const key = keptKey(request, facts.identity)
    if (key === undefined) return false
    const ready = await copyOf(this.cache, key, maxAgeMs, (facts.nowUs ?? clockUs()) / 1_000)
    if (ready === undefined) return false
    verdict.ready = ready
    verdict.answer = 'stale'
    return true
  }

  private async degrade(facts: RequestFacts, verdict: Verdict): Promise<boolean> {
    const costs = new Map(
      verdict.refusing.flatMap(({ policy }): [string, number][] => {
        const degrade = this.enforcer.variantOf(policy, facts).overflow.find(({ kind }) => kind === 'degrade')
        return degrade?.kind === 'degrade' ? [[policy.name, degrade.cost]] : []
      }),
    )
    const passed = await this.enforcer.again(facts, verdict, {
      cost: (policy) => costs.get(policy.name) ?? policy.cost,
    })
    if (!passed) return false
    verdict.told = 'degrade'
    this.say('degrade', verdict)
    return true
  }

  private async mark(facts: RequestFacts, verdict: Verdict): Promise<boolean> {
    const refusing = [...verdict.refusing]
    const lenient = refusing.filter(({ policy }) => {
      return this.enforcer.variantOf(policy, facts).overflow.some(({ kind }) => kind === 'mark')
    })
    const passed = await this.enforcer.again(facts, verdict, {
      without: new Set(lenient.map(({ policy }) => policy.name)),
    })
    if (!passed) return false
    verdict.marked.push(...lenient)
    verdict.told ??= 'mark'
    this.say('mark', verdict)
    return true
  }

  private async accept(request: GuardRequest<R>, facts: RequestFacts, verdict: Verdict): Promise<boolean> {
    const { jobs } = this
    const { decision } = verdict
    if (jobs === undefined || decision === undefined || decision.reason === 'impossible') return false
    if (request.method === 'GET' || request.method === 'HEAD') return false
    let id: string | undefined
    try {
      facts.body ??= await request.body?.()
      id = await jobs.submit(this.workOf(request, facts, decision))
    } catch {
      // A body that did not arrive, or a runner that is gone: the next answer applies.
    }
    if (id === undefined) return false
    verdict.ready = acceptedAnswer(jobs.path, id)
    verdict.answer = 'accept'
    return true
  }

  /** Work asks the policies as the request did, but nothing else than them: its caller is known. */
  private workOf(request: GuardRequest<R>, facts: RequestFacts, { policy, key }: Decision): Work<R> {
    const { enforcer } = this
    let verdict = new Verdict()
    facts.nowUs = undefined
    return {
      request: request.raw,
      method: request.method,
      target: request.target,
      body: facts.body,
      caller: `${policy}:${key}`,
      ready: async () => {
        verdict = new Verdict()
        for (const stage of stages) {
          if (await enforcer.ask(stage, facts, verdict)) continue
          const { retryAfterMs = Infinity, reason } = verdict.decision ?? {}
          enforcer.giveBack(verdict)
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
