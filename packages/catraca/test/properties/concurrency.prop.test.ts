import { concurrency, type Decision } from 'catraca'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Judge } from '../model/judge.ts'
import { concurrencyLaw, type Entries, type Entry, released } from '../model/log.ts'
import { answerOf, Engine } from './support/engine.ts'
import { numRuns } from './support/every-rule.ts'
import { costOf, histories, instantOf, startOf } from './support/histories.ts'
import { type Subject, subjects } from './support/subjects.ts'

interface Held {
  readonly permit: Entry
  readonly decision: Decision
}

/** After each step, which holder comes back (counted from the last); the same may come back twice. */
const comebacks = fc.array(fc.option(fc.nat(4), { nil: undefined, freq: 2 }), { minLength: 30, maxLength: 30 })

test('permits come back by release or by age, once, and never more are held than the limit', () => {
  const subject = subjects.find(({ name }) => name === 'concurrency') as Subject
  fc.assert(
    fc.property(subject.settings, histories(30), comebacks, (setting, history, list) => {
      const specimen = subject.specimen(setting)
      const { limit, windowUs } = setting
      const engine = new Engine(concurrency({ limit, permitTtl: windowUs / 1_000 }))
      const judge = new Judge<Entries>(concurrencyLaw(BigInt(limit), BigInt(windowUs)))
      const held: Held[] = []
      let now = startOf(specimen, history)
      let last: Decision | undefined
      history.steps.forEach((step, index) => {
        now = instantOf(specimen, step, now, last)
        const cost = costOf(specimen, step, last)
        last = engine.take(now, cost)
        const answer = judge.take(now, cost)
        expect(answerOf(last)).toMatchObject({
          reason: answer.reason,
          remaining: answer.remaining,
          retryUs: answer.retryUs,
        })
        if (last.allowed) held.push({ permit: judge.state.at(-1) as Entry, decision: last })
        const which = list[index]
        const holder = which === undefined ? undefined : held.at(-1 - which)
        if (holder === undefined) return
        holder.decision.release()
        judge.state = released(judge.state, holder.permit)
        last = engine.peek(now, 1)
        expect(last.remaining).toBe(judge.peek(now, 1).remaining)
      })
    }),
    { numRuns },
  )
})
