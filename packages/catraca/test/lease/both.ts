import type { Decision } from 'catraca'
import { expect } from 'vitest'
import { grantFrom } from '../../src/stores/memory/grant-from.ts'
import type { MemoryLedger } from '../../src/stores/memory/memory-ledger.ts'
import { Book } from '../contract/ledger.ts'
import { answerOf } from '../properties/support/engine.ts'
import { costOf, type History, instantOf, type Step, startOf } from '../properties/support/histories.ts'
import type { Specimen } from '../properties/support/subjects.ts'
import type { Instance } from './support.ts'

/** Charges of an admitted decision of both sides. */
interface Pair {
  readonly memory: Decision
  readonly shared: Decision
}

/**
 * The script and a memory ledger, done the same to at the same instants: grants, questions, parts given back, charges
 * unasked. Policies of one name are variants of one.
 */
export class Both {
  readonly instance: Instance
  readonly memory: MemoryLedger
  private readonly admitted: Pair[] = []
  /** Set where what other questions do to a key is not the matter. */
  grantsOnly = false
  private readonly refunds: boolean
  private nowUs = 0

  /** Where the rule of a key changes nothing is given back: memory finds charges under another rule, the script does not. */
  constructor(instance: Instance, specimens: readonly Specimen[], change: 'keep' | 'proportional' | 'reset' = 'keep') {
    this.instance = instance
    this.refunds = specimens.length === 1
    this.memory = new Book(specimens.map(({ rule }) => ['p', rule, change])).ledger
  }

  at(us: number): void {
    this.nowUs = us
    this.instance.shared.at(us)
  }

  async grant(member: number, least: number, most: number): Promise<Decision> {
    const { memory, nowUs } = this
    // It reads the clock once, in milliseconds: the instant is given here, to the microsecond.
    const ledger = {
      applySome: (members, keys, costs, us, charge) => memory.applySome(members, keys, costs, us ?? nowUs, charge),
    } as MemoryLedger
    const here = grantFrom(ledger, member, 'a', least, most)
    const there = await this.instance.shared.ledger.grant(member, 'a', undefined, least, most)
    return this.compare(here, there)
  }

  async take(member: number, cost: number): Promise<Decision> {
    const here = this.memory.applySome([member], ['a'], [cost], this.nowUs, true)
    return this.compare(here, await this.instance.shared.take(member, 'a', cost))
  }

  async charge(member: number, units: number): Promise<void> {
    this.memory.charge(member, 'a', units, this.nowUs)
    await this.instance.shared.ledger.charge(member, 'a', undefined, units)
  }

  /** Gives back some units of one of the charges so far, perhaps not for the first time. */
  async refund(choice: number, share: number): Promise<void> {
    const pair = this.admitted[choice % Math.max(1, this.admitted.length)]
    if (pair === undefined || !this.refunds) return
    const units = 1 + (share % pair.memory.cost)
    const memory = this.memory.refund(pair.memory, units, this.nowUs)
    const shared = await this.instance.shared.ledger.refund(pair.shared, units)
    expect({ units, back: shared }).toEqual({ units, back: memory })
  }

  private compare(memory: Decision, shared: Decision): Decision {
    expect(figures(shared)).toEqual(figures(memory))
    if (memory.charged > 0) this.admitted.push({ memory, shared })
    return memory
  }
}

/** All that callers and later refunds go by; of a refusal not the level, which memory leaves as of the last charge. */
export function figures(decision: Decision): Record<string, unknown> {
  const { reason, remaining, retryUs, resetUs, delayUs } = answerOf(decision)
  const { cost, charged, level, nowUs } = decision
  // Of a debt that takes a lifetime to pay only that it is one: its levels are past 2^53, where both round up.
  if (resetUs > 2 ** 50) return { reason, remaining, cost, charged }
  return { reason, remaining, retryUs, resetUs, delayUs, cost, charged, nowUs, ...(charged > 0 && { level }) }
}

/** Plays a history with grants, questions, returns and charges in it. `begin`: an instant at or after which it falls. */
export async function playGrants(
  both: Both,
  specimens: readonly Specimen[],
  history: History,
  begin = startOf(specimens[0] as Specimen, history),
  until = Infinity,
): Promise<void> {
  let now = begin
  let last: Decision | undefined
  for (const step of history.steps) {
    const member = (step.share + step.pause) % specimens.length
    const specimen = specimens[member] as Specimen
    const next = instantOf(specimen, step, now, last)
    if (next >= until) continue
    now = next
    both.at(now)
    last = (await act(both, member, specimen, step, last)) ?? last
  }
}

async function act(
  both: Both,
  member: number,
  specimen: Specimen,
  step: Step,
  last: Decision | undefined,
): Promise<Decision | undefined> {
  const { share, pause } = step
  const cost = costOf(specimen, step, last)
  switch (both.grantsOnly ? 'grant' : deeds[share % deeds.length]) {
    case 'grant': {
      const least = [1, cost, Math.ceil(cost / 2), 1 + (share % cost)][pause % 4] as number
      return both.grant(member, least, cost)
    }
    case 'take':
      return both.take(member, cost)
    case 'refund':
      await both.refund(pause, share)
      return undefined
    default:
      await both.charge(member, Math.min(cost, specimen.capacity))
      return undefined
  }
}

const deeds = ['grant', 'grant', 'refund', 'grant', 'take', 'refund', 'grant', 'charge', 'refund', 'grant', 'take']
