import { nowUs as clockUs, later } from '../core/clock.ts'
import { Decision } from '../core/decision.ts'
import { reasonCode } from '../core/reason.ts'
import { isEnforced } from '../policy/applies.ts'
import type { Enforcer } from '../policy/enforcer.ts'
import { guardsVerification } from '../policy/home.ts'
import type { Said } from '../policy/verdict.ts'
import { VerificationGate } from '../resilience/verification-gate.ts'
import type { RequestFacts } from './request-facts.ts'

/** The longest wait for another verification of the same address, and how many can wait. */
const maxWaitUs = 200_000
const maxWaiting = 4_096
/** Credentials that were valid when last seen, which need not queue with strangers. */
const maxVerified = 10_000

/** A request that waits to be verified. */
interface Ticket {
  readonly facts: RequestFacts
  readonly answer: (entry: 'go' | 'refuse') => void
}

/**
 * Who may be verified now: whoever was verified before at once, strangers only as far as the policies for anonymous
 * callers of their address have room for failures.
 */
export class Verification {
  private readonly enforcer: Enforcer
  private readonly gate = new VerificationGate<Ticket>(maxWaitUs, maxWaiting)
  private readonly verified = new Set<string>()

  constructor(enforcer: Enforcer) {
    this.enforcer = enforcer
  }

  /** True for a credential that was valid when last seen. */
  knows(credential: string): boolean {
    return this.verified.has(credential)
  }

  /** Notes what became of a credential; the oldest makes room. */
  remember(credential: string, valid: boolean): void {
    if (!valid) {
      this.verified.delete(credential)
      return
    }
    if (this.verified.has(credential)) return
    if (this.verified.size >= maxVerified) {
      const [oldest] = this.verified
      this.verified.delete(oldest as string)
    }
    this.verified.add(credential)
  }

  /** How many more units of this unverified request the policies for anonymous callers would let pass. */
  room(facts: RequestFacts): number {
    let room = Infinity
    for (const policy of this.enforcer.current.list) {
      if (!guardsVerification(policy) || !isEnforced(policy, facts)) continue
      room = Math.min(room, Math.floor(this.enforcer.peekHere(policy, facts).remaining / policy.cost))
    }
    return room
  }

  /** Asks to be verified; at once, or when another of the address has ended. */
  enter(facts: RequestFacts, room: number): 'go' | 'refuse' | Promise<'go' | 'refuse'> {
    const nowUs = facts.nowUs ?? clockUs()
    let answer: Ticket['answer'] = () => {}
    const waiting = new Promise<'go' | 'refuse'>((done) => {
      answer = done
    })
    const entry = this.gate.enter(facts.address, room, { facts, answer }, nowUs, facts.units)
    if (entry !== 'wait') return entry
    later(maxWaitUs / 1_000, () => {
      // The timer may fire a little early by the clock of the limits.
      for (const { answer: end } of this.gate.expire(facts.address, nowUs + maxWaitUs)) end('refuse')
    })
    return waiting
  }

  /** Makes room for the next; a failure was charged before. */
  leave({ address, units }: RequestFacts): void {
    const { go, refuse } = this.gate.leave(address, ({ facts }) => this.room(facts), units)
    for (const { answer } of go) answer('go')
    for (const { answer } of refuse) answer('refuse')
  }

  /** What the policies for anonymous callers say to a request that must not be verified now. */
  refusals(facts: RequestFacts): Said[] {
    const refusing: Said[] = []
    const passing: Said[] = []
    for (const policy of this.enforcer.current.list) {
      if (!guardsVerification(policy) || !isEnforced(policy, facts)) continue
      const decision = this.enforcer.peekHere(policy, facts)
      ;(decision.allowed ? passing : refusing).push({ policy, decision })
    }
    if (refusing.length > 0) return refusing
    return passing.map(({ policy, decision }) => ({ policy, decision: refusedFor(decision, maxWaitUs) }))
  }
}

/** A decision that would have passed, were it not for others of the address that are being verified. */
function refusedFor({ source, key, nowUs, cost, lead, level, prior }: Decision, waitUs: number): Decision {
  return new Decision(source, key, reasonCode('limited'), nowUs, cost, 0, lead, level, prior, waitUs)
}
