import type { IncomingHttpHeaders } from 'node:http'
import { endsHere, namedByConnection } from './hop-by-hop.ts'

/** Header fields as the upstream client hands them over: names and values in turn, as bytes. */
export type RawHeaders = readonly (Buffer | string)[]

/**
 * The header fields for the caller, names and values in turn, in the order and spelling in which they came.
 *
 * @param raw As received. @param parsed The same by lower-case name.
 */
export function responseHeaders(raw: RawHeaders, parsed: IncomingHttpHeaders): string[] {
  const named = namedByConnection(parsed.connection)
  const fields: string[] = []
  for (let at = 0; at < raw.length; at += 2) {
    const name = text(raw[at])
    if (!endsHere(name.toLowerCase(), named)) fields.push(name, text(raw[at + 1]))
  }
  return fields
}

/** The reason phrase, or nothing when it is one that cannot be sent on. */
export function reasonPhrase(phrase: string | undefined): string | undefined {
  return phrase !== undefined && /^[\t\x20-\x7e]+$/.test(phrase) ? phrase : undefined
}

function text(bytes: Buffer | string | undefined): string {
  return typeof bytes === 'string' ? bytes : (bytes?.toString('latin1') ?? '')
}
