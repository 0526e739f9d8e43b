import { nowUs as clockUs } from '../core/clock.ts'
import { type Decision, decide, type Source, unaskedOf } from '../core/decision.ts'
import type { Line } from '../limiter/line.ts'
import type { Signal } from '../limiter/signal.ts'
import { behindQueues } from '../limiter/wait-answers.ts'
import { Waiting } from '../limiter/waiting.ts'
import type { Ledger } from '../stores/store.ts'
import type { Policy } from './policy.ts'
import type { Question, SharedPart } from './shared-part.ts'

/** How long requests of a policy wait, and how many. */
export interface QueueBounds {
  readonly maxWaitUs: number
  readonly maxWaiting: number
}

/** A stack that is waited for. */
export interface WaitingStack {
  readonly asked: readonly Policy[]
  readonly sources: readonly Source[]
  readonly question: Question
  /** True where it lives in the store that instances share. */
  readonly apart: boolean
  readonly nowUs: number | undefined
}

/** Requests of all policies that wait at the same time. */
const maxWaiting = 1_000_000

/**
 * Requests that wait for their turn behind a policy. Of buckets each has its time from the first moment; behind other
 * rules, in memory, there is a line for each key, and who comes later is not asked before them.
 */
export class Turns {
  private readonly ledger: Ledger
  private readonly shared: SharedPart | undefined
  private waiting = new Waiting(maxWaiting)
  private readonly perPolicy = new Map<string, number>()
  /** Ends the waits under way, in the order in which they began. */
  private readonly replacing = new Set<() => void>()

  constructor(ledger: Ledger, shared: SharedPart | undefined) {
    this.ledger = ledger
    this.shared = shared
  }

  /**
   * Waits behind the policy of a stack that refused. Undefined where too many wait already; else the stack's answer, at
   * the latest after `maxWaitUs`, and at once where it would be later. `replaced` where another document came meanwhile. A
   * wait that `signal` aborts, or that was replaced, costs nothing.
   */
  async wait(
    policy: Policy,
    stack: WaitingStack,
    bounds: QueueBounds,
    signal: Signal | undefined,
  ): Promise<Decision | 'replaced' | undefined> {
    const { name } = policy
    const waiting = this.perPolicy.get(name) ?? 0
    if (waiting >= bounds.maxWaiting) return undefined
    this.perPolicy.set(name, waiting + 1)
    try {
      return await this.waitInLine(this.lineOf(stack), bounds.maxWaitUs, signal)
    } finally {
      this.perPolicy.set(name, (this.perPolicy.get(name) ?? 1) - 1)
    }
  }

  private waitInLine(line: Line, maxWaitUs: number, signal: Signal | undefined): Promise<Decision | 'replaced'> {
    return new Promise((resolve, reject) => {
      let replaced = false
      const replace = (): void => {
        replaced = true
        resolve('replaced')
      }
      this.replacing.add(replace)
      this.waiting.wait(line, { maxWaitUs, signal }).then((decision) => {
        this.replacing.delete(replace)
        if (!replaced) resolve(decision)
        else if (decision.allowed) void line.giveBack(decision)
      }, reject)
    })
  }

  /** The answer of policies in memory to who does not wait: it comes behind those who do. */
  askHere(asked: readonly Policy[], { members, keys, costs }: Question, nowUs: number | undefined): Decision {
    const { waiting, ledger } = this
    if (!waiting.anyQueue) return ledger.applySome(members, keys, costs, nowUs, true)
    const waits = asked.map((policy, at) => waiting.queueWaitUs(placeOf(policy, keys[at] as string)))
    return waits.some((waitUs) => waitUs > 0)
      ? behindQueues(ledger.applySome(members, keys, costs, nowUs, false), waits)
      : ledger.applySome(members, keys, costs, nowUs, true)
  }

  /** Units came back: who waits in a line for them is asked for. */
  freed({ policy, key }: Decision): void {
    if (this.waiting.anyQueue) this.waiting.freed(`${policy}:${key}`)
  }

  /** Ends all waits, in the order in which they came, since they are asked anew in it. Who comes later waits anew. */
  replace(): void {
    const { waiting, replacing } = this
    this.waiting = new Waiting(maxWaiting)
    for (const replace of replacing) replace()
    replacing.clear()
    waiting.close()
  }

  /** Ends all waits, as aborted, and lets nobody wait any more. */
  close(): void {
    this.waiting.close()
  }

  private lineOf({ asked, sources, question, apart, nowUs }: WaitingStack): Line {
    const { ledger } = this
    const shared = apart ? (this.shared as SharedPart) : undefined
    const { members, keys, costs, tags } = question
    const shaper = sources.findIndex(({ rule }) => rule.algorithm === 'leaky-queue')
    return {
      places: asked.map((policy, at) => placeOf(policy, keys[at] as string)),
      shaper: shaper < 0 ? undefined : shaper,
      patience: (place) => {
        if (sources[place]?.rule.reserves === true) return 'reserve'
        return shared === undefined ? 'queue' : 'refuse'
      },
      take: () => shared?.take(question) ?? ledger.applySome(members, keys, costs, nowUs, true),
      peek: () => shared?.peek(question) ?? ledger.applySome(members, keys, costs, nowUs, false),
      reserve: (place, maxWaitUs) => {
        const [member, key, cost] = [members[place] as number, keys[place] as string, costs[place] as number]
        return (
          shared?.reserve(member, key, tags?.[place], cost, maxWaitUs) ??
          ledger.reserve(member, key, cost, nowUs, maxWaitUs)
        )
      },
      takeRest: (place) => {
        const others = <T>(list: readonly T[]): T[] => list.filter((_, at) => at !== place)
        const rest = { members: others(members), keys: others(keys), costs: others(costs), tags: tags && others(tags) }
        return shared?.take(rest) ?? ledger.applySome(rest.members, rest.keys, rest.costs, nowUs, true)
      },
      giveBack: (decision) => {
        if (shared !== undefined) return shared.refund(decision)
        let given = 0
        for (const one of decision.stack) given = ledger.refund(one, one.cost, nowUs ?? clockUs())
        return given
      },
      unasked: () => {
        const parts = sources.map((source, at) =>
          unaskedOf(source, keys[at] as string, costs[at] as number, nowUs ?? clockUs()),
        )
        return parts.length === 1 ? (parts[0] as Decision) : decide(parts, 0)
      },
    }
  }
}

/** Names a policy with a key, for those who wait. */
function placeOf({ name }: Policy, key: string): string {
  return `${name}:${key}`
}
