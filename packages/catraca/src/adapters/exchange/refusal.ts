import type { Answer } from '../../http/answers.ts'
import type { NodeRequest, NodeResponse } from './messages.ts'
import { spareUnreadBody } from './unread-body.ts'

/** Sends a whole answer without reading the body of the request. */
export function answerRefusal(request: NodeRequest, response: NodeResponse, { status, fields, body }: Answer): void {
  spareUnreadBody(request, response)
  response.writeHead(status, [
    ...fields,
    'Content-Length',
    String(typeof body === 'string' ? utf8Length(body) : body.length),
  ])
  response.end(body)
  request.resume()
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
