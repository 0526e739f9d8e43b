import { type AnswerKind, answerKinds } from '../policy/overflow.ts'
import type { Policies, Policy } from '../policy/policy.ts'
import type { Said, Verdict } from '../policy/verdict.ts'

/** What a guard counted since it was made. */
export interface Counts {
  /** Requests by how they were answered. Exempt ones count as `pass`. */
  readonly answers: Readonly<Record<AnswerKind, number>>
  readonly policies: Readonly<Record<string, PolicyCounts>>
  /** Requests by the id of their credential; beyond 1,000 ids the rest stands under `other`. */
  readonly keys: Readonly<Record<string, { passed: number; refused: number }>>
}

/** What one policy said. */
export interface PolicyCounts {
  /** Requests it admitted and was charged for, or, observed, would have admitted. */
  readonly admitted: number
  /** Requests it refused. */
  readonly refused: number
  /** Requests it would have refused while it was observed. */
  readonly wouldRefuse: number
  /**
   * `exact`: enforced, it would have refused just so many. `estimate`: it stands beside others, which change who comes
   * back and when.
   */
  readonly wouldRefuseIs: 'exact' | 'estimate'
  /** Requests over its limit by how they were answered. */
  readonly answers: Partial<Readonly<Record<AnswerKind, number>>>
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }
interface Line {
  admitted: number
  refused: number
  wouldRefuse: number
  readonly answers: Partial<Record<AnswerKind, number>>
}

/** Ids of credentials that are counted apart. */
const maxKeys = 1_000
const otherKeys = 'other'

/** Counts what a guard answers. Cost: some additions per request. */
export class Tally {
  private readonly answers = Object.fromEntries(answerKinds.map((kind) => [kind, 0])) as Writable<Counts['answers']>
  private readonly byName = new Map<string, Line>()
  /** The same by object: the policies of a document are found without their names. */
  private lines = new Map<Policy, Line>()
  private readonly keys = new Map<string, { passed: number; refused: number }>()

  /** Counts an answered request. */
  count(verdict: Verdict): void {
    const { answer, identity } = verdict
    this.answers[answer]++
    for (const { policy } of verdict.admitted) this.lineOf(policy).admitted++
    const { over, refusing } = verdict
    for (const said of over) this.over(said, answer)
    for (const said of refusing) if (!isAmong(over, said)) this.over(said, answer)
    if (identity?.keyId !== undefined) this.countKey(identity.keyId, verdict.allowed)
  }

  /** Counts what an observed policy said. */
  observed({ policy, decision }: Said): void {
    const line = this.lineOf(policy)
    if (decision.allowed) line.admitted++
    else line.wouldRefuse++
  }

  /** The figures so far, as plain data. */
  counts({ list }: Policies): Counts {
    const alone = list.filter(({ mode }) => mode !== 'off').length === 1
    const policies = [...this.byName].map(([name, line]): [string, PolicyCounts] => {
      return [name, { ...line, answers: { ...line.answers }, wouldRefuseIs: alone ? 'exact' : 'estimate' }]
    })
    const keys = [...this.keys].map(([id, { ...one }]): [string, typeof one] => [id, one])
    return { answers: { ...this.answers }, policies: Object.fromEntries(policies), keys: Object.fromEntries(keys) }
  }

  /** Another document: its policies go on counting under their names. */
  replaced(): void {
    this.lines = new Map()
  }

  private over({ policy }: Said, answer: AnswerKind): void {
    const line = this.lineOf(policy)
    line.refused++
    line.answers[answer] = (line.answers[answer] ?? 0) + 1
  }

  private lineOf(policy: Policy): Line {
    const known = this.lines.get(policy)
    if (known !== undefined) return known
    const line = this.byName.get(policy.name) ?? { admitted: 0, refused: 0, wouldRefuse: 0, answers: {} }
    this.byName.set(policy.name, line)
    this.lines.set(policy, line)
    return line
  }

  private countKey(keyId: string, passed: boolean): void {
    const id = this.keys.has(keyId) || this.keys.size < maxKeys ? keyId : otherKeys
    const key = this.keys.get(id) ?? { passed: 0, refused: 0 }
    this.keys.set(id, key)
    if (passed) key.passed++
    else key.refused++
  }
}

function isAmong(list: readonly Said[], { policy }: Said): boolean {
  return list.some((one) => one.policy.name === policy.name)
}
