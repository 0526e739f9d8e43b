import { STATUS_CODES } from 'node:http'
import type { Answer } from 'catraca/http'
import { spareUnreadBody } from 'catraca/node'
import type { EdgeRequest, EdgeResponse } from './messages.ts'

/** What a problem answer says beyond its status and detail. */
export interface ProblemMembers {
  readonly type: string
  readonly title: string
  readonly [member: string]: unknown
}

/**
 * Answers with a problem document (`application/problem+json`, RFC 9457) that no cache keeps, without reading the body.
 *
 * @param detail What happened and what to do, for a person. @param fields Further header fields, names and values in turn.
 */
export function answerProblem(
  request: EdgeRequest,
  response: EdgeResponse,
  status: number,
  detail: string,
  members?: ProblemMembers,
  fields: readonly string[] = [],
): void {
  const { type, title, ...more } = members ?? { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error' }
  const body = Buffer.from(`${JSON.stringify({ type, title, status, detail, ...more })}\n`)
  spareUnreadBody(request, response)
  response.writeHead(status, [
    ...response.limitFields,
    ...fields,
    'Cache-Control',
    'no-store',
    'Content-Type',
    'application/problem+json',
    'Content-Length',
    String(body.length),
  ])
  response.end(body)
  request.resume()
}

/** Sends a whole answer that the guard made. */
export function answerWhole(request: EdgeRequest, response: EdgeResponse, { status, fields, body }: Answer): void {
  const bytes = Buffer.from(body)
  spareUnreadBody(request, response)
  response.writeHead(status, [...fields, 'Content-Length', String(bytes.length)])
  response.end(bytes)
  request.resume()
}
