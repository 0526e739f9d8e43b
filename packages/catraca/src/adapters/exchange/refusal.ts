import type { Answer } from '../../http/answers.ts'
import type { NodeRequest, NodeResponse } from './messages.ts'
import { spareUnreadBody } from './unread-body.ts'

/** Sends a whole answer without reading the body of the request. */
export function answerRefusal(request: NodeRequest, response: NodeResponse, answer: Answer): void {
  const { status, body } = answer
  spareUnreadBody(request, response)
  const fields = groupedFields(answer)
  if (status !== 204 && status !== 304) {
    fields.push('Content-Length', String(typeof body === 'string' ? utf8Length(body) : body.length))
  }
  response.writeHead(status, fields)
  response.end(body)
  request.resume()
}

/** Names and values in turn, each name once: beside fields that were set before Node keeps the last value of a name alone. */
export function groupedFields({ fields }: Answer): (string | string[])[] {
  const grouped: (string | string[])[] = []
  for (let at = 0; at < fields.length; at += 2) {
    const [name, value] = [fields[at] as string, fields[at + 1] as string]
    const before = grouped.indexOf(name)
    if (before < 0 || before % 2 === 1) grouped.push(name, value)
    else grouped[before + 1] = [...[grouped[before + 1] ?? []].flat(), value]
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
