import { hmacSha256, sha256 } from '../core/sha256.ts'
import { networkOf } from './address.ts'
import type { Facts } from './facts.ts'
import type { Route } from './route.ts'

/** What a key is made of. `param` is written `path:<name>`. */
export type PartKind =
  | 'address'
  | 'client'
  | 'user'
  | 'tenant'
  | 'service'
  | 'api-key'
  | 'plan'
  | 'route'
  | 'header'
  | 'cookie'
  | 'query'
  | 'param'
  | 'body'

/** Where a part of a key comes from. */
export interface KeyPart {
  /** As written in `per`. */
  readonly text: string
  readonly kind: PartKind
  /** Lower-case header name, name of a cookie, query parameter, path parameter or member of the body. */
  readonly name: string
  /** The value a request has for it. */
  readonly read: (facts: Facts) => string | undefined
}

/** What a part may need to know of its document and policy. */
export interface PartContext {
  /** Routes of the policy; undefined for all requests. */
  readonly routes: readonly Route[] | undefined
  /** The secret that keys of credentials are made with. */
  readonly hashSecret: string | undefined
  /** The declared plan that a caller's plan counts as. */
  readonly planOf: (plan: string | undefined) => string | undefined
}

export const partWords =
  'address, address/48, client, user, tenant, service, api-key, plan, route, header:<name>, cookie:<name>, ' +
  'query:<name>, path:<name> or body:<field>'

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/

/** Reads one entry of `per`; undefined when it is none. */
export function parsePart(text: string, context: PartContext): KeyPart | undefined {
  const { hashSecret } = context
  // A value that the caller sends may be a secret, and secrets never become keys.
  const hidden = (value: string | undefined): string | undefined =>
    value === undefined || value === ''
      ? undefined
      : hashSecret === undefined
        ? sha256(value)
        : hmacSha256(hashSecret, value)
  const part = (kind: PartKind, name: string, read: KeyPart['read']): KeyPart => ({ text, kind, name, read })
  switch (text) {
    case 'address':
      return part('address', '', ({ address }) => address)
    case 'client':
    case 'user':
    case 'tenant':
      return part(text, '', ({ identity }) => identity?.[text])
    case 'service':
      return part('service', '', () => 'service')
    case 'api-key':
      return part('api-key', '', (facts) => hidden(facts.credential))
    case 'plan':
      return part('plan', '', ({ identity }) => (identity === undefined ? undefined : context.planOf(identity.plan)))
    case 'route':
      return part('route', '', (facts) => onlyOne(context.routes, facts, ({ text: route }) => route))
    default:
  }
  const bits = /^address\/(\d{1,3})$/.exec(text)?.[1]
  if (bits !== undefined) {
    const prefix = Number(bits)
    const fits = prefix >= 16 && prefix <= 128
    return fits ? part('address', bits, (facts) => networkOf(facts.peer, prefix) ?? facts.address) : undefined
  }
  const colon = text.indexOf(':')
  const name = text.slice(colon + 1)
  if (colon === -1 || name === '' || name.length > 128) return undefined
  switch (text.slice(0, colon)) {
    case 'header': {
      const lower = name.toLowerCase()
      return token.test(name) ? part('header', lower, (facts) => hidden(facts.header(lower))) : undefined
    }
    case 'cookie':
      return token.test(name) ? part('cookie', name, (facts) => hidden(facts.cookie(name))) : undefined
    case 'query':
      return part('query', name, (facts) => hidden(facts.query(name)))
    case 'path':
      return part('param', name, (facts) =>
        onlyOne(context.routes, facts, (route, reading) => route.params(reading)?.[name]),
      )
    case 'body':
      return part('body', name, (facts) => facts.bodyField(name))
    default:
      return undefined
  }
}

/**
 * What all readings of a path have in common; undefined where servers would find different values in it: whoever could
 * choose among them, or add to one, would have many buckets for one thing.
 */
function onlyOne(
  routes: readonly Route[] = [],
  { method, path }: Facts,
  read: (route: Route, reading: string) => string | undefined,
): string | undefined {
  let found: string | undefined
  for (const reading of typeof path === 'string' ? [path] : path) {
    const route = routes.find((one) => one.matches(method, reading))
    const value = route === undefined ? undefined : read(route, reading)
    if (route !== undefined && value !== (found ??= value)) return undefined
  }
  return found
}

/**
 * Stands for a value that a request does not have: all such requests share one bucket under the rest of the key. A value
 * that begins like it gets one more NUL in front, so that no request can pose as one without a value.
 */
const nul = '\u0000'
export const missing = `${nul}missing`

/** The key of a request: the value of a single part as it is, several each with its length, so that no two meet. */
export function keyOf(parts: readonly KeyPart[], facts: Facts): string {
  const [first] = parts as readonly [KeyPart]
  if (parts.length === 1) return escaped(valueOf(first, facts))
  let key = ''
  for (const part of parts) {
    const value = valueOf(part, facts)
    key += value === undefined ? '-' : `${value.length}:${value}`
  }
  return key
}

function escaped(value: string | undefined): string {
  if (value === undefined) return missing
  return value.charCodeAt(0) === 0 ? nul + value : value
}

/** The value of a part; an empty one counts as missing. */
export function valueOf(part: KeyPart, facts: Facts): string | undefined {
  return part.read(facts) || undefined
}
