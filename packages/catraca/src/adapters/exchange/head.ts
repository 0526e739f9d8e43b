import { isPubliclyCacheable } from '../../http/cacheable.ts'
import type { NodeResponse } from './messages.ts'

/** What is used of a response only where its head is looked at. */
export interface WholeResponse {
  statusCode: number
  getHeader(name: string): unknown
  getHeaders(): Readonly<Record<string, unknown>>
  setHeader(name: string, value: unknown): unknown
  appendHeader(name: string, value: unknown): unknown
  removeHeader(name: string): void
  writeHead: (status: number, ...rest: unknown[]) => unknown
}

/** Calls `look` once when the head is about to be sent, all its fields set. What `look` changes is sent. */
export function beforeHead(response: NodeResponse, look: (response: WholeResponse) => void): void {
  const whole = response as unknown as WholeResponse
  const { writeHead } = whole
  let looked = false
  whole.writeHead = (status, ...rest) => {
    if (looked) return writeHead.call(whole, status, ...rest)
    looked = true
    const [reason, fields] = typeof rest[0] === 'string' ? rest : [undefined, rest[0]]
    whole.statusCode = status
    if (typeof fields === 'object' && fields !== null) setAll(whole, fields)
    look(whole)
    return reason === undefined ? writeHead.call(whole, status) : writeHead.call(whole, status, reason)
  }
}

/** Takes the limit off an answer that caches may share: what one caller has left is not the next one's business. */
export function omitWhereShared(response: NodeResponse, fields: readonly string[]): void {
  beforeHead(response, (whole) => {
    const value = whole.getHeader('Cache-Control') as string | string[] | undefined
    if (!isPubliclyCacheable(String(value ?? ''))) return
    for (let at = 0; at < fields.length; at += 2) whole.removeHeader(fields[at] as string)
  })
}

/** Sets what `writeHead` was given: an object, names and values in turn, or pairs. As there, it replaces what was set. */
function setAll(response: WholeResponse, fields: object): void {
  if (!Array.isArray(fields)) {
    for (const [name, value] of Object.entries(fields)) if (value !== undefined) response.setHeader(name, value)
    return
  }
  const pairs: [string, unknown][] = Array.isArray(fields[0]) ? fields : []
  if (pairs.length === 0) for (let at = 0; at < fields.length; at += 2) pairs.push([fields[at], fields[at + 1]])
  for (const [name] of pairs) response.removeHeader(name)
  for (const [name, value] of pairs) response.appendHeader(name, value)
}
