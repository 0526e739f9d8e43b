import { isList } from '../mount/field-names.ts'
import type { NodeRequest, NodeResponse } from './messages.ts'

/** A header as one text. */
export function headerOf({ headers }: Pick<NodeRequest, 'headers'>, name: string): string | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined
  return Array.isArray(value) ? value.join(', ') : value
}

/** Adds header fields; lists go on where an outer limit began them. */
export function setFields(response: NodeResponse, fields: readonly string[]): void {
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string
    const value = fields[at + 1] as string
    const outer = isList(name) ? listOf(response.getHeader(name)) : ''
    response.setHeader(name, outer === '' ? value : `${outer}, ${value}`)
  }
}

/** What others set, as one text. */
export function listOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' ? value : ''
}
