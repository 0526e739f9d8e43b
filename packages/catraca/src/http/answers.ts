import type { Decision, Source } from '../core/decision.ts'
import { CatracaError, show } from '../core/errors.ts'
import type { Said, Verdict } from '../policy/verdict.ts'
import { legacyFields, PolicyFields } from './limit-fields.ts'
import { refusalProblem, saysMoreOfService } from './problem.ts'
import { retryAfterSeconds, spreadMs } from './retry-after.ts'

/**
 * A form of the header fields that say what the limit is: `ietf` is `RateLimit-Policy` and `RateLimit` of the IETF draft,
 * `legacy` the three fields of its first versions, `RateLimit-Limit`, `-Remaining` and `-Reset`, in seconds.
 */
export type Dialect = 'ietf' | 'legacy'
const dialects: readonly Dialect[] = ['ietf', 'legacy']

/** A whole answer, ready to be sent. */
export interface Answer {
  readonly status: number
  /** Names and values in turn. */
  readonly fields: string[]
  readonly body: string | Uint8Array
}

/** Writes what callers are told of the limits. */
export class Answers {
  private readonly ietf: boolean
  private readonly legacy: boolean
  private readonly random: () => number
  /** By the rule that spoke; a rule of a replaced document goes with it. */
  private readonly known = new WeakMap<Source, PolicyFields>()

  constructor(headers: Dialect | readonly Dialect[], random: () => number) {
    const list = typeof headers === 'string' ? [headers] : headers
    for (const one of list) if (!dialects.includes(one)) throw unknownDialect(one)
    this.ietf = list.includes('ietf')
    this.legacy = list.includes('legacy')
    this.random = random
  }

  /**
   * The fields of a verdict. Of an admitted request all policies that count this caller; those for everybody together are
   * not the caller's business. Of a refused one the policies that refused.
   */
  fields(verdict: Verdict): string[] {
    const fields: string[] = []
    const { allowed } = verdict
    if (this.ietf) this.addIetf(allowed ? verdict.admitted : verdict.refusing, allowed, fields)
    if (this.legacy) addLegacy(allowed ? least(verdict.admitted.filter(isOwn)) : longest(verdict.refusing), fields)
    return fields
  }

  /** The fields of a single limit. */
  fieldsOfOne(decision: Decision): string[] {
    const fields: string[] = []
    if (this.ietf) {
      const one = this.of(decision)
      fields.push('RateLimit-Policy', one.policy, 'RateLimit', one.state(decision))
    }
    if (this.legacy) addLegacy({ decision }, fields)
    return fields
  }

  /** The answer to a refused request; never to be stored by a cache. */
  refusal(verdict: Verdict): Answer {
    const { refusing } = verdict
    const own = refusing.filter(isOwn)
    const exceeded = own.filter(({ decision: { reason } }) => !saysMoreOfService(reason))
    // The caller is told of its own limit where there is one; the wait is that of the policy that makes it wait longest.
    const { policy, decision } = longest([exceeded, own, refusing].find((list) => list.length > 0) ?? []) as Said
    const { retryAfterMs } = (longest(refusing) as Said).decision
    const names = refusing.map(({ policy: { name } }) => name)
    const status = exceeded.length > 0 ? 429 : 503
    return this.refuse(decision, retryAfterMs, names, this.fields(verdict), policy.entry.advice, status)
  }

  /** The answer of a single limit. */
  refusalOfOne(decision: Decision): Answer {
    return this.refuse(
      decision,
      decision.retryAfterMs,
      [decision.policy],
      this.fieldsOfOne(decision),
      undefined,
      undefined,
    )
  }

  private refuse(
    decision: Decision,
    waitMs: number,
    policies: readonly string[],
    fields: string[],
    advice: Readonly<Record<string, string>> | undefined,
    status: number | undefined,
  ): Answer {
    const possible = Number.isFinite(waitMs)
    const retryAfterMs = possible ? spreadMs(waitMs, this.random) : Infinity
    const problem = refusalProblem({ decision, policies, retryAfterMs, advice, status })
    if (possible) fields.push('Retry-After', String(retryAfterSeconds(retryAfterMs)))
    fields.push('Cache-Control', 'no-store', 'Content-Type', 'application/problem+json')
    return { status: problem.status, fields, body: `${JSON.stringify(problem)}\n` }
  }

  private addIetf(said: readonly Said[], allowed: boolean, fields: string[]): void {
    let policies = ''
    let states = ''
    for (const { policy, decision } of said) {
      if (allowed && !isOwn({ policy })) continue
      const one = this.of(decision)
      policies += policies === '' ? one.policy : `, ${one.policy}`
      states += states === '' ? one.state(decision) : `, ${one.state(decision)}`
    }
    // An empty list is not to be sent.
    if (policies !== '') fields.push('RateLimit-Policy', policies, 'RateLimit', states)
  }

  private of({ source }: Decision): PolicyFields {
    let fields = this.known.get(source)
    if (fields === undefined) {
      fields = new PolicyFields(source.name, source.rule)
      this.known.set(source, fields)
    }
    return fields
  }
}

/** False for a limit of everybody together. */
function isOwn({ policy }: Pick<Said, 'policy'>): boolean {
  return policy.parts[0]?.kind !== 'service'
}

function longest(list: readonly Said[]): Said | undefined {
  return list.reduce<Said | undefined>(
    (a, b) => (a === undefined || b.decision.waitUs > a.decision.waitUs ? b : a),
    undefined,
  )
}

function least(list: readonly Said[]): Said | undefined {
  const share = ({ decision }: Said): number => decision.remaining / decision.limit
  return list.reduce<Said | undefined>((a, b) => (a === undefined || share(b) < share(a) ? b : a), undefined)
}

function addLegacy(said: Pick<Said, 'decision'> | undefined, fields: string[]): void {
  if (said === undefined) return
  const { decision } = said
  const [limit, remaining, reset] = legacyFields(decision)
  fields.push('RateLimit-Limit', limit, 'RateLimit-Remaining', remaining, 'RateLimit-Reset', reset)
}

function unknownDialect(value: unknown): CatracaError {
  const message = `headers holds ${show(value)}; allowed: ${dialects.join(', ')}`
  return new CatracaError('CATRACA_OPTION_INVALID', message, { path: 'headers', value })
}
