import { createHash } from 'node:crypto'
import { type GatewayDocument, policyPart } from '@catraca/config'
import type { Rule } from 'catraca'
import {
  leaseBounds,
  type OverrideEntry,
  type Policy,
  type PolicyDocument,
  type PolicyEntry,
  readPolicies,
  type StoreFailure,
  shareOf,
} from 'catraca/policy'
import { plannedExplanations } from '../store/store-plan.ts'

/** One policy as it is drilled: alone, over a path of its own. */
export interface Drilled {
  readonly policy: string
  readonly mode: StoreFailure
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** Units that a request costs. */
  readonly cost: number
  readonly rule: Rule
  /** What one instance admits of the rule while the store is gone. */
  readonly share: Rule
  /** Units that the edges together may admit beyond the rule, because they hold them; 0 without a lease. */
  readonly over: number
  /** Units that they may hold when the store goes. */
  readonly held: number
}

/** What a drill asks, and of what document. */
export interface DrillPlan {
  readonly drilled: readonly Drilled[]
  /** Policies that are not drilled, and why. */
  readonly left: readonly { readonly policy: string; readonly why: string }[]
  /** The user's policies over the drill's store, upstream and keys. */
  document(redis: string, upstream: string): GatewayDocument
}

const tenant = 'drill'

/**
 * Plans a drill of the policies of a file that are enforced in the shared store. Each keeps its rule, its key, its plans,
 * its cost and its mode, and is asked under a path of its own, so that none hides what another does. An excess is refused,
 * whatever else the policy would answer: what passes is what is counted. The file's services,
 * keys and store are not touched: the drill brings its own.
 *
 * @param instances Edges of the drill; the share is that of the file's `expectedInstances`, or of these.
 */
export async function planDrill(file: GatewayDocument, instances: number): Promise<DrillPlan> {
  const policies = policyPart({ ...file }) as unknown as PolicyDocument
  const shared = { ...file, store: { redis: 'redis://127.0.0.1:1' }, ...statedInstances(file, instances) }
  const homes = new Map(
    (await plannedExplanations(shared, { method: 'GET', path: '/' })).map(({ policy, store }) => [policy, store]),
  )
  const expected = file.storeFailure?.expectedInstances ?? file.defaults?.expectedInstances ?? instances
  const parts = expected === 'live' ? instances : expected
  const full = readPolicies(policies)
  const plan = policies.plans?.default
  const left: { policy: string; why: string }[] = []
  const entries: Record<string, PolicyEntry> = {}
  const drilled: Drilled[] = []
  for (const policy of full.list) {
    const { name, entry } = policy
    const why = notDrilled(entry, homes.get(name), policy.mode)
    if (why !== undefined) {
      left.push({ policy: name, why })
      continue
    }
    const variant = (plan === undefined ? undefined : policy.byPlan?.get(plan)) ?? policy.base
    const { rule } = variant
    entries[name] = alone(entry, name)
    drilled.push({
      policy: name,
      mode: policy.onStoreFailure,
      cost: policy.cost,
      rule,
      share: shareOf(rule, parts),
      ...leased(policy, rule, instances),
      ...requestFor(entry, name),
    })
  }
  const { version, plans, defaults, hashSecret } = policies
  // Where the file says nothing, more than the usual: a busy machine is not the fault.
  const timeout =
    typeof file.store === 'object' && file.store.timeout !== undefined
      ? { timeout: file.store.timeout }
      : ({ timeout: '250ms' } as const)
  return {
    drilled,
    left,
    document: (redis, upstream) => ({
      version,
      ...(plans !== undefined && { plans }),
      ...(defaults !== undefined && { defaults }),
      ...(hashSecret !== undefined && { hashSecret }),
      ...(policies.storeFailure === undefined
        ? statedInstances(file, instances)
        : { storeFailure: policies.storeFailure }),
      policies: entries,
      store: { redis, prefix: 'catraca-drill', ...timeout },
      auth: {
        apiKeys: { keys: [{ sha256: sha256(key), client: 'drill', tenant, ...(plan !== undefined && { plan }) }] },
      },
      listen: { host: '127.0.0.1', port: 0 },
      upstreams: { drill: upstream },
      log: 'off',
    }),
  }
}

function leased({ lease }: Policy, rule: Rule, edges: number): Pick<Drilled, 'over' | 'held'> {
  if (lease === undefined) return { over: 0, held: 0 }
  const { over, held } = leaseBounds(rule, lease, edges)
  return { over, held: edges * held }
}

const key = 'the key of the drill'

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function statedInstances(file: GatewayDocument, instances: number): Pick<GatewayDocument, 'storeFailure'> {
  if (file.storeFailure !== undefined) return { storeFailure: file.storeFailure }
  return file.defaults?.expectedInstances === undefined ? { storeFailure: { expectedInstances: instances } } : {}
}

function notDrilled(entry: PolicyEntry, home: string | undefined, mode: string): string | undefined {
  if (mode !== 'enforce') return `it is not enforced (${mode})`
  if (home === 'memory') return 'it lives in the memory of each edge, which no outage of the store touches'
  const per = [entry.per].flat()
  if (entry.match?.identity === 'user' || per.includes('user')) return 'the edge knows no users'
  if (per.some((part) => part.startsWith('path:')))
    return 'its key is a part of its path, and the drill asks under another'
  return undefined
}

/** The same policy for a path of its own. */
function alone(entry: PolicyEntry, name: string): PolicyEntry {
  const whole = ['insteadOf', 'advice', 'mode', 'overflow', 'candidate', 'match']
  const rest = Object.fromEntries(Object.entries(entry).filter(([name]) => !whole.includes(name))) as typeof entry
  if (rest.plans !== undefined) rest.plans = refusing(rest.plans)
  if (rest.clients !== undefined) rest.clients = refusing(rest.clients)
  const identity = entry.match?.identity
  return { ...rest, match: { ...(identity !== undefined && { identity }), routes: [`${pathOf(name)}/**`] } }
}

/** The same numbers, an excess refused. */
function refusing(overrides: Record<string, OverrideEntry>): Record<string, OverrideEntry> {
  return Object.fromEntries(
    Object.entries(overrides).map(([name, { overflow: _answered, ...numbers }]) => [name, numbers]),
  )
}

function pathOf(name: string): string {
  return `/drill/${name}`
}

/** A request that the policy speaks about and that has every part of its key. */
function requestFor(entry: PolicyEntry, name: string): Pick<Drilled, 'method' | 'path' | 'headers' | 'body'> {
  const parts = [entry.per].flat().map(String)
  const fields = parts.flatMap((part) => (part.startsWith('body:') ? [part.slice('body:'.length)] : []))
  const headers: Record<string, string> = {}
  for (const part of parts) if (part.startsWith('header:')) headers[part.slice('header:'.length)] = 'drill'
  const cookies = parts.flatMap((part) => (part.startsWith('cookie:') ? [`${part.slice('cookie:'.length)}=drill`] : []))
  if (cookies.length > 0) headers['cookie'] = cookies.join('; ')
  const known = entry.match?.identity === 'client' || parts.some((part) => part === 'client' || part === 'tenant')
  if (known) headers['x-api-key'] = key
  if (fields.length > 0) headers['content-type'] = 'application/json'
  return {
    method: fields.length > 0 ? 'POST' : 'GET',
    path: `${pathOf(name)}/request`,
    headers,
    body: fields.length > 0 ? JSON.stringify(Object.fromEntries(fields.map((field) => [field, 'drill']))) : undefined,
  }
}
