/** True when caches that serve several callers may store an answer with this `Cache-Control`. */
export function isShared(cacheControl: string): boolean {
  return /(?:^|[\s,])(?:public|s-maxage)(?=$|[\s,=])/i.test(cacheControl)
}

/** Fields that belong to one connection, or to one caller's limit, and not to an answer that is kept for others. */
const passing =
  /^(?:connection|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade|content-length|ratelimit(?:-.*)?)$/i

/** True for a header field that is part of a kept answer. */
export function isKept(name: string): boolean {
  return !passing.test(name)
}

/** True for the fields in which several limits speak one after the other. */
export function isList(name: string): boolean {
  return name === 'RateLimit' || name === 'RateLimit-Policy'
}
