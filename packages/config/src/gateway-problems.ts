import { isObject, parseRoute, type Place, policyProblems, type Problem, placeText, problemsOf, unknownName } from 'catraca/policy'
import type { GatewayDocument } from './gateway-document.ts'
import { gatewayKeys, gatewayShape } from './gateway-shape.ts'

/** Everything that is wrong in a gateway document, in its order; empty when it can be served. Never throws. */
export function gatewayProblems(document: unknown): Problem[] {
  const problems = problemsOf(gatewayShape, document)
  if (problems.length > 0 || !isObject(document)) return problems
  return [...policyProblems(policyPart(document)), ...meaningProblems(document as unknown as GatewayDocument)]
}

/** A gateway document without the gateway's own part. */
export function policyPart(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(document).filter(([key]) => !Object.hasOwn(gatewayKeys, key)))
}

function meaningProblems({ upstreams, routes, auth, plans }: GatewayDocument): Problem[] {
  const names = Object.keys(upstreams)
  const found: Problem[] = []
  if (routes === undefined && names.length > 1) {
    found.push(wrong(['routes'], undefined, 'is missing; with several upstreams say which answers what'))
  }
  routes?.forEach(({ path, upstream }, index) => {
    const place = ['routes', index, 'path']
    try {
      parseRoute(path, placeText(place))
      if (/\s/.test(path)) found.push(wrong(place, path, 'holds a space; allowed: a path without method'))
    } catch (error) {
      found.push(wrong(place, path, wordsOf(error, placeText(place))))
    }
    if (!names.includes(upstream)) found.push(unknownName(upstream, names, ['routes', index, 'upstream'], 'upstream'))
  })
  const hashes = new Set<string>()
  auth?.apiKeys?.keys.forEach(({ sha256, plan }, index) => {
    const place = ['auth', 'apiKeys', 'keys', index]
    if (hashes.has(sha256)) found.push(wrong([...place, 'sha256'], sha256, 'stands here a second time'))
    hashes.add(sha256)
    if (plan !== undefined && plans?.names.includes(plan) !== true) {
      found.push(unknownName(plan, plans?.names ?? [], [...place, 'plan'], 'plan', 'CATRACA_PLAN_UNKNOWN'))
    }
  })
  return found
}

function wrong(place: Place, value: unknown, words: string): Problem {
  return { code: 'CATRACA_OPTION_INVALID', place, value, words }
}

function wordsOf(error: unknown, path: string): string {
  const message = (error as Error).message.replace(/ \[CATRACA_\w+\]$/, '')
  return message.startsWith(`${path} `) ? message.slice(path.length + 1) : message
}
