import { type GatewayDocument, policyPart } from '@catraca/config'
import { isCatracaError, slidingCounter } from 'catraca'
import { type AnyGuard, createGuard, memoryJobs } from 'catraca/http'
import {
  type Descriptor,
  type Explanation,
  type OverrideEntry,
  type PolicyDocument,
  ruleWords,
  type StoreFailure,
} from 'catraca/policy'
import { type IoredisClient, redisStore } from 'catraca/redis'
import { type Channel, workerStore } from 'catraca/workers'
import { policiesFor, timesWorkers } from '../workers/seat.ts'
import { addressOf } from './redis-client.ts'

/** Nothing is carried out to explain a document. */
const jobs = memoryJobs({ run: () => undefined })

/** Something in both languages. */
export type Words = Explanation['rule']

/** Where what was used is kept, as a document says. */
export type StorePlan =
  | {
      readonly kind: 'memory'
      /** Processes that share it, where there are several. */
      readonly workers?: number
    }
  | {
      readonly kind: 'redis'
      /** Host, port and database. */
      readonly address: string
      /** All processes of all gateways. */
      readonly expectedInstances: number | 'live'
      /** Processes of one gateway, where there are several. */
      readonly workers?: number
      /** What one instance lets pass over all keys while the store is gone. Undefined: no ceiling, or instances are counted. */
      readonly ceiling?: Words
    }

/** What a policy in the shared store does while that is gone. */
export interface WithoutStore {
  readonly mode: StoreFailure
  /** What one instance then allows a key, in mode `local` and with a stated number of instances. */
  readonly share?: Words
  /** True where a request costs more than one instance then ever lets pass at once. */
  readonly neverFits?: true
}

/** A policy seen from a request, and what becomes of it without the store it is in. */
export type PlannedExplanation = Explanation & { readonly withoutStore?: WithoutStore }

/** The options of rules that instances divide among themselves. */
const divided = ['limit', 'burst', 'capacity']

/** A client of a store that is never asked. */
const nobody: IoredisClient = {
  status: 'end',
  evalsha: refuse,
  eval: refuse,
  connect: refuse,
  disconnect() {},
  on() {},
  off() {},
}

/** A channel to nobody. */
const noChannel: Channel = {
  send() {},
  onMessage: () => () => {},
  onClose(listener) {
    const timer = setImmediate(listener)
    return () => clearImmediate(timer)
  },
}

/** Where a document keeps what was used. */
export function storePlanOf({ store, storeFailure, defaults, workers = 1 }: GatewayDocument): StorePlan {
  const several = workers > 1 && { workers }
  if (typeof store !== 'object') return { kind: 'memory', ...several }
  const expectedInstances = timesWorkers(storeFailure?.expectedInstances ?? defaults?.expectedInstances ?? 1, workers)
  const plan = { kind: 'redis', address: addressOf(store), expectedInstances, ...several } as const
  const { ceiling } = storeFailure ?? {}
  if (ceiling === undefined || expectedInstances === 'live') return plan
  const { limit, window } = ceiling
  const share = slidingCounter({ limit: part(limit, expectedInstances), window })
  return { ...plan, ceiling: { en: ruleWords(share, 'en'), pt: ruleWords(share, 'pt') } }
}

/** Every policy of a document seen from a request, without a store being asked. Counts nothing. */
export async function plannedExplanations(
  document: GatewayDocument,
  descriptor: Descriptor,
): Promise<PlannedExplanation[]> {
  const policies = policyPart({ ...document }) as unknown as PolicyDocument
  const now = await explained(createGuard({ policies, jobs }), descriptor)
  const plan = storePlanOf(document)
  if (plan.kind === 'memory') return plan.workers === undefined ? now : explainedWorkers(document, now, descriptor)
  const stated = policiesFor(policies, document, document.workers ?? 1)
  const homes = await explained(
    createGuard({ policies: stated, store: redisStore({ client: nobody }), jobs }),
    descriptor,
  )
  const shares = await explainedShares(policies, plan.expectedInstances, descriptor)
  return now.map((one, at) => {
    if (homes[at]?.store !== 'shared') return one
    const mode = one.onStoreFailure
    const share = mode === 'local' ? shares?.[at] : undefined
    const { lease } = homes[at]
    const held = lease === undefined ? {} : { lease }
    if (share === undefined) return { ...one, ...held, store: 'shared', withoutStore: { mode } }
    const neverFits = one.cost > share.bounds.atOnce && { neverFits: true as const }
    return { ...one, ...held, store: 'shared', withoutStore: { mode, share: share.rule, ...neverFits } }
  })
}

/** The same for several processes that share their memory: how each policy lives then. */
async function explainedWorkers(
  document: GatewayDocument,
  now: readonly Explanation[],
  descriptor: Descriptor,
): Promise<PlannedExplanation[]> {
  const { workers = 1 } = document
  const policies = policiesFor(policyPart({ ...document }) as unknown as PolicyDocument, document, workers)
  const store = workerStore({ channel: noChannel, workers })
  const shared = await explained(createGuard({ policies, store, jobs }), descriptor)
  store.close()
  // What is left is what a memory without any use says, not what is said without the primary.
  return shared.map((one, at) => ({ ...one, says: now[at]?.says ?? one.says }))
}

/** The same of the parts that one instance has. Undefined where they cannot be said beforehand. */
async function explainedShares(
  policies: PolicyDocument,
  instances: number | 'live',
  descriptor: Descriptor,
): Promise<Explanation[] | undefined> {
  if (instances === 'live') return undefined
  try {
    return await explained(createGuard({ policies: dividedDocument(policies, instances), jobs }), descriptor)
  } catch (error) {
    // A part of a limit may be too fine to be counted; the library then takes a smaller one.
    if (isCatracaError(error)) return undefined
    throw error
  }
}

async function explained(guard: AnyGuard, descriptor: Descriptor): Promise<Explanation[]> {
  try {
    return await guard.explain(descriptor)
  } finally {
    guard.close()
  }
}

function dividedDocument(document: PolicyDocument, instances: number): PolicyDocument {
  const all = (entries: Record<string, OverrideEntry> = {}): Record<string, OverrideEntry> =>
    Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, dividedRule(entry, instances)]))
  const policies = Object.entries(document.policies).map(([name, entry]) => {
    const { rule, plans, clients } = entry
    return [name, { ...entry, rule: dividedRule(rule, instances), plans: all(plans), clients: all(clients) }]
  })
  return { ...document, policies: Object.fromEntries(policies) as PolicyDocument['policies'] }
}

function dividedRule<T extends Record<string, unknown>>(rule: T, instances: number): T {
  const parts = divided.filter((name) => typeof rule[name] === 'number')
  return { ...rule, ...Object.fromEntries(parts.map((name) => [name, part(rule[name] as number, instances)])) }
}

function part(units: number, instances: number): number {
  return Math.max(1, Math.floor(units / instances))
}

function refuse(): Promise<never> {
  return Promise.reject(new Error('this store is never asked'))
}
