import { nowUs as clockUs } from '../core/clock.ts'
import { type Decision, decide, type Source, unaskedOf } from '../core/decision.ts'
import type { RemoteLedger } from '../stores/remote.ts'
import type { Ledger } from '../stores/store.ts'
import type { Line } from './line.ts'

/** Names a policy with a key, for those who wait. */
export function placeOf(policy: number, key: string, tag?: string): string {
  return tag === undefined ? `${policy}:${key}` : `${policy}:${tag.length}:${tag}${key}`
}

/** The line for a stack in memory; `ask` asks all of it, as the limiter does. */
export function memoryLine(
  ledger: Ledger,
  policies: readonly Source[],
  keys: readonly string[],
  cost: number,
  ask: (charge: boolean) => Decision,
): Line {
  const costs = policies.map(() => cost)
  return {
    places: keys.map((key, policy) => placeOf(policy, key)),
    shaper: shaperOf(policies),
    patience: (place) => (policies[place]?.rule.reserves === true ? 'reserve' : 'queue'),
    take: () => ask(true),
    peek: () => ask(false),
    reserve: (place, maxWaitUs) => ledger.reserve(place, keys[place] as string, cost, undefined, maxWaitUs),
    takeRest: (place) => {
      const members = others([...policies.keys()], place)
      return ledger.applySome(members, others(keys, place), others(costs, place), undefined, true)
    },
    giveBack: (decision) => {
      const given = decision.stack.map((one) => ledger.refund(one, one.cost, clockUs()))
      return given[0] as number
    },
    unasked: () => unasked(policies, keys, cost),
  }
}

/** The line for a stack in a shared store; only what reserves is waited for there. */
export function remoteLine(
  ledger: RemoteLedger,
  policies: readonly Source[],
  keys: readonly string[],
  tags: readonly string[] | undefined,
  cost: number,
): Line {
  const members = [...policies.keys()]
  const costs = policies.map(() => cost)
  return {
    places: keys.map((key, policy) => placeOf(policy, key, tags?.[policy])),
    shaper: shaperOf(policies),
    patience: (place) => (policies[place]?.rule.reserves === true ? 'reserve' : 'refuse'),
    take: () => ledger.tryApply(members, keys, tags, costs) ?? ledger.apply(members, keys, tags, costs, true),
    peek: () => ledger.apply(members, keys, tags, costs, false),
    reserve: (place, maxWaitUs) => ledger.reserve(place, keys[place] as string, tags?.[place], cost, maxWaitUs),
    takeRest: (place) => {
      const own = tags === undefined ? undefined : others(tags, place)
      return ledger.apply(others(members, place), others(keys, place), own, others(costs, place), true)
    },
    giveBack: async (decision) => {
      const given = await Promise.all(decision.stack.map((one) => ledger.refund(one, one.cost)))
      return given[0] as number
    },
    unasked: () => unasked(policies, keys, cost),
  }
}

/** The first policy that gives each request its time. */
function shaperOf(policies: readonly Source[]): number | undefined {
  const place = policies.findIndex(({ rule }) => rule.algorithm === 'leaky-queue')
  return place < 0 ? undefined : place
}

function others<T>(all: readonly T[], place: number): T[] {
  return all.filter((_, index) => index !== place)
}

function unasked(policies: readonly Source[], keys: readonly string[], cost: number): Decision {
  const parts = policies.map((source, index) => unaskedOf(source, keys[index] as string, cost, clockUs()))
  return parts.length === 1 ? (parts[0] as Decision) : decide(parts, 0)
}
