import type { Decision, Source } from '../core/decision.ts'
import type { DiagnosisCode } from '../core/errors.ts'
import type { AnswerKind } from '../policy/overflow.ts'
import type { Said, Verdict } from '../policy/verdict.ts'
import type { Language } from '../policy/words.ts'
import { type AnswerOptions, checkAnswerOptions, type Refusal } from './answer-options.ts'
import { addLegacyPolicy, addThree, type Dialect } from './dialects.ts'
import { languageFor } from './language.ts'
import { PolicyFields } from './limit-fields.ts'
import { refusalProblem, saysMoreOfService } from './problem.ts'
import { contentOf } from './refusal-body.ts'
import { retryAfterSeconds, spreadMs } from './retry-after.ts'

/** A whole answer, ready to be sent. */
export interface Answer {
  readonly status: number
  /** Names and values in turn. */
  readonly fields: string[]
  readonly body: string | Uint8Array
}

/** Answers that the field `Catraca-Answer` tells: how a request over its limit was served. */
const toldAnswers: readonly AnswerKind[] = ['queue', 'stale', 'degrade', 'accept', 'mark']

const expose = 'Access-Control-Expose-Headers'
/** Fields that scripts of other origins read without being let, or that are no news to them. */
const neverExposed: readonly string[] = [expose, 'Cache-Control', 'Content-Type', 'Content-Language', 'Vary']

/** Writes what callers are told of the limits. */
export class Answers {
  /** True when limit fields are to be taken off answers that shared caches may keep. */
  readonly omitsCacheable: boolean
  private readonly ietf: boolean
  private readonly legacy: boolean
  private readonly xRateLimit: 'none' | 'delta' | 'epoch'
  private readonly exposes: boolean
  /** The usual form, which is told the shortest way. */
  private readonly onlyIetf: boolean
  private readonly language: Language
  private readonly body: AnswerOptions['body']
  private readonly random: () => number
  private readonly diagnose: (code: DiagnosisCode, message: string) => void
  private bodyFailed = false
  /** By the rule that spoke; a rule of a replaced document goes with it. */
  private readonly known = new WeakMap<Source, PolicyFields>()
  /** The last of them: one limit asks for no other. */
  private lastSource: Source | undefined
  private lastFields: PolicyFields | undefined
  /** What is being told, tightest first; one list for all requests, empty between them. */
  private readonly told: Decision[] = []

  /**
   * @param options Checked here, under `options`.
   * @param random Numbers in [0, 1), for the spread of `Retry-After`.
   * @param diagnose Is told once of a `body` that cannot be used.
   */
  constructor(
    options: AnswerOptions,
    random: () => number,
    diagnose: (code: DiagnosisCode, message: string) => void = () => {},
  ) {
    checkAnswerOptions(options, 'options')
    const { headers = 'ietf', cacheable, exposeHeaders = false, language = 'en', body } = options
    const list: readonly Dialect[] = typeof headers === 'string' ? [headers] : headers
    this.omitsCacheable = cacheable === 'omit'
    this.ietf = list.includes('ietf')
    this.legacy = list.includes('legacy')
    this.xRateLimit = list.includes('x-ratelimit') ? 'delta' : list.includes('x-ratelimit-epoch') ? 'epoch' : 'none'
    this.exposes = exposeHeaders
    this.onlyIetf = this.ietf && list.length === 1 && !exposeHeaders
    this.language = language
    this.body = body
    this.random = random
    this.diagnose = diagnose
  }

  /**
   * The fields of a verdict, the tightest policy first: of an admitted request by the share that is left, of all policies
   * that count this caller; those for everybody together are not the caller's business. Of a refused one the policies
   * that refused, by the wait. `Catraca-Answer` says where it was answered in neither way.
   */
  fields(verdict: Verdict): string[] {
    const fields = this.limitFields(verdict)
    if (verdict.answer !== 'pass' && toldAnswers.includes(verdict.answer)) fields.push('Catraca-Answer', verdict.answer)
    if (this.exposes) exposeAll(fields)
    return fields
  }

  /** The fields of a single limit. */
  fieldsOfOne(decision: Decision): string[] {
    if (this.onlyIetf) {
      const one = this.of(decision)
      return ['RateLimit-Policy', one.policy, 'RateLimit', one.state(decision)]
    }
    const fields = this.limitFieldsOfOne(decision)
    if (this.exposes) exposeAll(fields)
    return fields
  }

  /**
   * The answer to a refused request; never to be stored by a cache.
   *
   * @param acceptLanguage The request header of that name. Anything is understood.
   */
  refusal(verdict: Verdict, acceptLanguage?: string): Answer {
    const { refusing } = verdict
    const own = refusing.filter(isOwn)
    const exceeded = own.filter(({ decision: { reason } }) => !saysMoreOfService(reason))
    // The caller is told of its own limit where there is one; the wait is that of the policy that makes it wait longest.
    const { policy, decision } = longest([exceeded, own, refusing].find((list) => list.length > 0) ?? []) as Said
    const { retryAfterMs } = (longest(refusing) as Said).decision
    const names = refusing.map(({ policy: { name } }) => name)
    const status = exceeded.length > 0 ? 429 : 503
    const { advice } = policy.entry
    return this.refuse(decision, retryAfterMs, names, this.limitFields(verdict), acceptLanguage, advice, status)
  }

  /** The answer of a single limit. */
  refusalOfOne(decision: Decision, acceptLanguage?: string): Answer {
    const { retryAfterMs, policy } = decision
    return this.refuse(decision, retryAfterMs, [policy], this.limitFieldsOfOne(decision), acceptLanguage)
  }

  private refuse(
    decision: Decision,
    waitMs: number,
    policies: readonly string[],
    fields: string[],
    acceptLanguage: string | undefined,
    advice?: Readonly<Record<string, string>>,
    statusOfAll?: number,
  ): Answer {
    const possible = Number.isFinite(waitMs)
    const retryAfterMs = possible ? spreadMs(waitMs, this.random) : Infinity
    const language = languageFor(acceptLanguage, this.language)
    const problem = refusalProblem({ decision, policies, retryAfterMs, advice, status: statusOfAll, language })
    const { status } = problem
    if (possible) fields.push('Retry-After', String(retryAfterSeconds(retryAfterMs)))
    if (this.exposes) exposeAll(fields)
    fields.push('Cache-Control', 'no-store')
    const own = this.ownContent({ decision, policies, retryAfterMs, status, problem, acceptLanguage })
    if (own !== undefined) {
      fields.push('Content-Type', own.contentType)
      return { status, fields, body: own.body }
    }
    fields.push('Content-Type', 'application/problem+json', 'Content-Language', language, 'Vary', 'Accept-Language')
    return { status, fields, body: `${JSON.stringify(problem)}\n` }
  }

  /** What the option `body` gives; undefined without it, and for what cannot be sent. */
  private ownContent(refusal: Refusal): ReturnType<typeof contentOf> | undefined {
    if (this.body === undefined) return undefined
    try {
      return contentOf(this.body, refusal)
    } catch (error) {
      if (!this.bodyFailed) {
        this.bodyFailed = true
        const why = error instanceof Error ? error.message : String(error)
        this.diagnose('CATRACA_BODY_UNUSABLE', `the option body was of no use, the problem document was sent: ${why}`)
      }
      return undefined
    }
  }

  private limitFields({ allowed, admitted, refusing, marked }: Verdict): string[] {
    const { told } = this
    for (const { decision } of marked) insert(decision, told)
    for (const said of allowed ? admitted : refusing) {
      if (!allowed || isOwn(said)) insert(said.decision, told)
    }
    const fields = this.fieldsOfTold()
    told.length = 0
    return fields
  }

  private limitFieldsOfOne(decision: Decision): string[] {
    this.told.push(decision)
    const fields = this.fieldsOfTold()
    this.told.length = 0
    return fields
  }

  private fieldsOfTold(): string[] {
    const fields: string[] = []
    const tightest = this.told[0]
    // An empty list is not to be sent.
    if (tightest === undefined) return fields
    if (this.ietf) this.addIetf(fields)
    if (this.legacy) {
      addThree('RateLimit', tightest, false, fields)
      if (!this.ietf)
        addLegacyPolicy(
          this.told.map((one) => this.of(one)),
          fields,
        )
    }
    if (this.xRateLimit !== 'none') addThree('X-RateLimit', tightest, this.xRateLimit === 'epoch', fields)
    return fields
  }

  private addIetf(fields: string[]): void {
    let policies = ''
    let states = ''
    for (const decision of this.told) {
      const one = this.of(decision)
      policies += policies === '' ? one.policy : `, ${one.policy}`
      states += states === '' ? one.state(decision) : `, ${one.state(decision)}`
    }
    fields.push('RateLimit-Policy', policies, 'RateLimit', states)
  }

  private of({ source }: Decision): PolicyFields {
    if (source === this.lastSource) return this.lastFields as PolicyFields
    let fields = this.known.get(source)
    if (fields === undefined) {
      fields = new PolicyFields(source.name, source.rule)
      this.known.set(source, fields)
    }
    this.lastSource = source
    this.lastFields = fields
    return fields
  }
}

/** Names in one field all others that scripts of other origins cannot read otherwise. */
function exposeAll(fields: string[]): void {
  let names = ''
  let at = fields.length
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] as string
    if (name === expose) at = index
    else if (!neverExposed.includes(name)) names += names === '' ? name : `, ${name}`
  }
  if (names === '') return
  fields[at] = expose
  fields[at + 1] = names
}

/** Puts a decision before the less tight ones; of equal ones the order stays. */
function insert(decision: Decision, told: Decision[]): void {
  let at = told.length
  while (at > 0 && tighter(decision, told[at - 1] as Decision)) at--
  for (let index = told.length; index > at; index--) told[index] = told[index - 1] as Decision
  told[at] = decision
}

/** Refused ones by the wait, admitted ones by the share that is left. */
function tighter(a: Decision, b: Decision): boolean {
  return a.allowed ? a.remaining / a.limit < b.remaining / b.limit : a.waitUs > b.waitUs
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
