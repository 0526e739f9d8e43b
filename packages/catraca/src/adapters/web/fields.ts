import type { Answer } from '../../http/answers.ts'
import { isPubliclyCacheable } from '../../http/cacheable.ts'
import { isList } from '../mount/field-names.ts'
import { withBody } from './body.ts'
import { type WebResponse, web } from './messages.ts'

/** A whole answer as a `Response`; none of its bytes to HEAD. */
export function responseOf({ status, fields, body }: Answer, method: string): WebResponse {
  const headers = new web.Headers()
  for (let at = 0; at < fields.length; at += 2) headers.append(fields[at] as string, fields[at + 1] as string)
  return new web.Response(method === 'HEAD' || status === 304 || status === 204 ? null : body, { status, headers })
}

/**
 * Adds header fields; lists begin before those of an inner limit. The head of an answer of `fetch` or of a redirect is
 * closed: it is copied.
 *
 * @param omits Answers that caches may share get none.
 */
export function withFields(response: WebResponse, omits: boolean, fields: readonly string[]): WebResponse {
  if (fields.length === 0 || (omits && isPubliclyCacheable(response.headers.get('Cache-Control') ?? '')))
    return response
  try {
    setFields(response, fields)
    return response
  } catch {
    // That of a WebSocket can be made by the platform only.
    if (response.status < 200) return response
    const copy = withBody(response, response.body)
    setFields(copy, fields)
    return copy
  }
}

function setFields({ headers }: WebResponse, fields: readonly string[]): void {
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string
    const inner = isList(name) ? headers.get(name) : null
    headers.set(name, inner === null ? (fields[at + 1] as string) : `${fields[at + 1]}, ${inner}`)
  }
}
