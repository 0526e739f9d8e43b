import {
  durationMs,
  isObject,
  type Place,
  type Problem,
  parseRoute,
  policyProblems,
  problemsOf,
  unknownName,
} from 'catraca/policy'
import type { GatewayDocument, RedisEntry } from './gateway-document.ts'
import { gatewayKeys, gatewayShape, redisLike } from './gateway-shape.ts'

/** Everything that is wrong in a gateway document, in its order; empty when it can be served. Never throws. */
export function gatewayProblems(document: unknown): Problem[] {
  const problems = problemsOf(gatewayShape, document)
  if (problems.length > 0 || !isObject(document)) return problems
  const shared = isObject(document['store'])
  return [...policyProblems(policyPart(document), shared), ...meaningProblems(document as unknown as GatewayDocument)]
}

/** A gateway document without the gateway's own part. */
export function policyPart(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(document).filter(([key]) => !Object.hasOwn(gatewayKeys, key)))
}

function meaningProblems({ store, upstreams, routes, auth, plans }: GatewayDocument): Problem[] {
  const names = Object.keys(upstreams)
  const found: Problem[] = []
  if (typeof store === 'object') found.push(...storeProblems(store))
  for (const [name, entry] of Object.entries(upstreams)) {
    const place = ['upstreams', name]
    if (typeof entry === 'string') found.push(...originProblems(entry, place))
    else entry.urls.forEach((url, index) => found.push(...originProblems(url, [...place, 'urls', index])))
  }
  if (routes === undefined && names.length > 1) {
    found.push(wrong(['routes'], undefined, 'is missing; with several upstreams say which answers what'))
  }
  routes?.forEach(({ path, upstream }, index) => {
    const place = ['routes', index, 'path']
    if (!isPath(path)) found.push(wrong(place, path, `is ${JSON.stringify(path)}; allowed: ${pathWords}`))
    if (!names.includes(upstream)) found.push(unknownName(upstream, names, ['routes', index, 'upstream'], 'upstream'))
  })
  const hashes = new Set<string>()
  auth?.apiKeys?.keys.forEach(({ sha256, plan }, index) => {
    const place = ['auth', 'apiKeys', 'keys', index]
    if (hashes.has(sha256))
      found.push(wrong([...place, 'sha256'], sha256, 'stands here a second time; allowed: each hash once'))
    hashes.add(sha256)
    if (plan !== undefined && plans?.names.includes(plan) !== true) {
      found.push(unknownName(plan, plans?.names ?? [], [...place, 'plan'], 'plan', 'CATRACA_PLAN_UNKNOWN'))
    }
  })
  return found
}

function storeProblems({ redis, timeout = 50 }: RedisEntry): Problem[] {
  const found: Problem[] = []
  // The address is not in the message, since it may hold a password.
  if (!URL.canParse(redis)) found.push(wrong(['store', 'redis'], undefined, `is no address; allowed: ${redisLike}`))
  const ms = durationMs(timeout)
  if (ms < 1 || ms > 60_000) {
    found.push(wrong(['store', 'timeout'], timeout, `is ${JSON.stringify(timeout)}; allowed: 1ms to 60s`))
  }
  return found
}

function wrong(place: Place, value: unknown, words: string): Problem {
  return { code: 'CATRACA_OPTION_INVALID', place, value, words }
}

const pathWords =
  'a path such as "/auth/**", without a method; in it :name or * for one segment, ** for any number, %xx for special characters'

function isPath(path: string): boolean {
  if (/^[A-Z]/.test(path)) return false
  try {
    parseRoute(path, '')
    return true
  } catch {
    return false
  }
}

/** What the pattern of an origin lets through: a port that is none, an address that is none. */
function originProblems(origin: string, place: Place): Problem[] {
  if (URL.canParse(origin)) return []
  const words = `is ${JSON.stringify(origin)}; allowed: an http or https origin such as "http://127.0.0.1:3000"`
  return [wrong(place, origin, words)]
}
