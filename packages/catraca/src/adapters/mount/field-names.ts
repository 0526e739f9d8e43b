import { limitFieldNames, listFieldNames } from '../../http/dialects.ts'

/** Fields that belong to one connection and not to an answer that is kept for others. */
const ofConnection = ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade']
const passing = new Set([...ofConnection, 'content-length', ...limitFieldNames])
/** Names as limits write them, and in lower case, so that the usual ones need no look at their letters. */
const lists = new Set([...listFieldNames, 'RateLimit', 'RateLimit-Policy', 'Access-Control-Expose-Headers', 'Vary'])

/** True for a header field that is part of a kept answer. */
export function isKept(name: string): boolean {
  return !passing.has(name.toLowerCase())
}

/** True for the fields in which several speak one after the other. */
export function isList(name: string): boolean {
  return lists.has(name)
}
