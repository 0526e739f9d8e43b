import type { Answer } from '../../http/answers.ts'
import { isList } from '../mount/field-names.ts'
import { listOf } from './fields.ts'
import type { NodeRequest, NodeResponse } from './messages.ts'
import { spareUnreadBody } from './unread-body.ts'

/** Sends a whole answer without reading the body of the request. */
export function answerRefusal(request: NodeRequest, response: NodeResponse, answer: Answer): void {
  const { status, body } = answer
  spareUnreadBody(request, response)
  const fields = groupedFields(answer, (name) => response.getHeader(name))
  if (status !== 204 && status !== 304) {
    fields.push('Content-Length', String(typeof body === 'string' ? utf8Length(body) : body.length))
  }
  response.writeHead(status, fields)
  response.end(body)
  request.resume()
}

/**
 * Names and values in turn, each name once: beside fields that were set before Node keeps the last value of a name alone.
 * Lists that are not about limits go on where others began them; of limits the one that refuses speaks alone.
 *
 * @param before What was set under a name.
 */
export function groupedFields({ fields }: Answer, before: (name: string) => unknown): (string | string[])[] {
  const grouped: (string | string[])[] = []
  for (let at = 0; at < fields.length; at += 2) {
    const [name, value] = [fields[at] as string, fields[at + 1] as string]
    const known = grouped.indexOf(name)
    if (known >= 0 && known % 2 === 0) grouped[known + 1] = [...[grouped[known + 1] ?? []].flat(), value]
    else {
      const outer = isList(name) && !name.startsWith('RateLimit') ? listOf(before(name)) : ''
      grouped.push(name, outer === '' ? value : `${outer}, ${value}`)
    }
  }
  return grouped
}

/** Bytes of a text in UTF-8. */
function utf8Length(text: string): number {
  let bytes = 0
  for (const character of text) {
    const code = character.codePointAt(0) as number
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
  }
  return bytes
}
