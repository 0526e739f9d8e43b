import type { Decision, PolicyDecision } from '../core/decision.ts'
import type { Identity } from './facts.ts'
import type { Home } from './home.ts'
import type { AnswerKind } from './overflow.ts'
import type { Policies, Policy, Stage } from './policy.ts'

/** What one policy said about a request. */
export interface Said {
  readonly policy: Policy
  readonly decision: Decision
}

/** The stack that refused: which policies were asked together, where, and by which document. */
export interface Refused {
  readonly document: Policies
  readonly stage: Stage
  readonly asked: readonly Policy[]
  readonly home: Home
}

/** An answer that is ready but for the fields that tell the limits. */
export interface ReadyAnswer {
  readonly status: number
  /** Names and values in turn. */
  readonly fields: readonly string[]
  readonly body: string | Uint8Array
}

/** A whole answer of a handler, to be kept for a while. */
export interface KeptAnswer {
  readonly status: number
  /** Names and values. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

/** What all policies said about one request, stage by stage. */
export class Verdict {
  /** The caller's network as it was counted; empty for a request that is exempt. */
  address = ''
  identity: Identity | undefined = undefined
  /** The enforced policies that admitted the request and were charged, in the order in which they were asked. */
  readonly admitted: Said[] = []
  /** What the observed policies said. They refuse nothing. */
  readonly observed: Said[] = []
  /** Enforced policies that refused. None was charged with them. */
  readonly refusing: Said[] = []
  /** Policies over whose limit the request was at first, where it was answered, or tried to be, in another way. */
  readonly over: Said[] = []
  /** Policies that refused and let pass all the same: the service is told. */
  readonly marked: Said[] = []
  /** How the request is answered. */
  answer: AnswerKind = 'pass'
  /** @internal The languages that a refused caller reads. */
  acceptLanguage: string | undefined = undefined
  /** @internal Set while a refusal may yet be answered in another way. */
  refused: Refused | undefined = undefined
  /** @internal Microseconds for which it waited for its turn so far. */
  waitedUs = 0
  /** @internal True where the caller left, or the guard was closed, while it waited: no other answer is looked for. */
  aborted = false
  /** @internal A whole answer in place of the handler's. */
  ready: ReadyAnswer | undefined = undefined
  /** Units in which the request asked. */
  units = 1
  /** Milliseconds before which an admitted request must not start; more than 0 only behind a leaky queue. */
  delayMs = 0
  /** True when a member of `admitted` holds permits. */
  holds = false
  /** Set where a copy of the answer is wanted; to be called once with the whole answer, if its body has at most {@link keepBytes}. */
  keep: ((answer: KeptAnswer) => void) | undefined = undefined
  keepBytes = 0
  /** What the service is told by the request header `catraca-answer`: `degrade` or `mark`. Undefined: nothing. */
  told: 'degrade' | 'mark' | undefined = undefined

  /** True when the request goes on to its handler. */
  get allowed(): boolean {
    return this.refusing.length === 0 && this.ready === undefined
  }

  /** The decision that binds: refused, the one with the longest wait; admitted, the one with the least share left. */
  get decision(): Decision | undefined {
    return this.binding?.decision
  }

  /** The policy that binds; of a request that passes marked the one over whose limit it is. */
  get binding(): Said | undefined {
    if (this.refusing.length > 0) return longestWait(this.refusing)
    return this.marked.length > 0 ? longestWait(this.marked) : leastShare(this.admitted)
  }

  /** What every policy said, the observed ones too. */
  get policies(): PolicyDecision[] {
    const all = [...this.admitted, ...this.refusing, ...this.marked, ...this.observed]
    return all
      .toSorted((a, b) => a.policy.index - b.policy.index)
      .flatMap(({ policy, decision }) =>
        decision.policies.map((one) => ({ ...one, mode: this.observes(policy) ? 'observe' : 'enforce' })),
      )
  }

  private observes(policy: Policy): boolean {
    return this.observed.some((one) => one.policy === policy)
  }
}

function longestWait(list: readonly Said[]): Said | undefined {
  let binding = list[0]
  for (const one of list) if (binding !== undefined && one.decision.waitUs > binding.decision.waitUs) binding = one
  return binding
}

function leastShare(list: readonly Said[]): Said | undefined {
  let binding = list[0]
  let least = Infinity
  for (const one of list) {
    const share = one.decision.remaining / one.decision.limit
    if (share < least) {
      least = share
      binding = one
    }
  }
  return binding
}
