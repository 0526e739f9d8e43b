import type { Answer } from '../../http/answers.ts'
import type { AnyGuard } from '../../http/guard.ts'
import type { GuardRequest } from '../../http/request.ts'
import type { Verdict } from '../../policy/verdict.ts'
import type { NodeRequest, NodeResponse, NodeSocket } from './messages.ts'
import { spareUnreadBody } from './unread-body.ts'

/** A header as one text. */
export function headerOf({ headers }: NodeRequest, name: string): string | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined
  return Array.isArray(value) ? value.join(', ') : value
}

/** A Node request as a guard sees it. */
export class NodeGuardRequest<Q extends NodeRequest> implements GuardRequest<Q> {
  readonly raw: Q
  readonly method: string
  readonly target: string
  readonly units: number

  constructor(raw: Q, units: number) {
    this.raw = raw
    this.method = raw.method ?? 'GET'
    this.target = raw.originalUrl ?? raw.url ?? '/'
    this.units = units
  }

  get peer(): string | undefined {
    return this.raw.socket.remoteAddress
  }

  header(name: string): string | undefined {
    return headerOf(this.raw, name)
  }

  body(): unknown {
    return this.raw.body
  }
}

/** Passes one request through a guard: sets the header fields and goes on, or answers the refusal. */
export function guarded<Q extends NodeRequest>(
  guard: AnyGuard<Q>,
  asked: GuardRequest<Q>,
  response: NodeResponse,
  next: (error?: unknown) => void,
): void {
  let verdict: Verdict | Promise<Verdict>
  try {
    verdict = guard.ask(asked)
  } catch (error) {
    next(error)
    return
  }
  if (verdict instanceof Promise) verdict.then((known) => goOn(guard, asked.raw, response, known, next), next)
  else goOn(guard, asked.raw, response, verdict, next)
}

function goOn<Q extends NodeRequest>(
  guard: AnyGuard<Q>,
  request: Q,
  response: NodeResponse,
  verdict: Verdict,
  next: () => void,
): void {
  // Whoever left meanwhile, or was answered by others, is neither served nor charged.
  if (response.closed || response.destroyed || response.headersSent || request.socket.destroyed === true) {
    guard.refund(verdict)
    return
  }
  request.rateLimit = verdict.decision
  if (!verdict.allowed) {
    answerRefusal(request, response, guard.answerOf(verdict))
    return
  }
  if (verdict.holds) onceOver(request, response, () => guard.release(verdict))
  setFields(response, guard.fieldsOf(verdict))
  next()
}

/** What is to be done when a connection closes; one listener each, however many requests are pipelined on it. */
const endings = new WeakMap<NodeSocket, Set<() => void>>()

/**
 * Calls `end` once when the answer is over, sent or not. An answer that waits behind others of its connection tells
 * nothing when the caller leaves, so the connection is listened to as well.
 */
function onceOver({ socket }: NodeRequest, response: NodeResponse, end: () => void): void {
  let ends = endings.get(socket)
  if (ends === undefined) {
    const all = new Set<() => void>()
    ends = all
    endings.set(socket, all)
    socket.once('close', () => {
      for (const one of all) one()
    })
  }
  const once = (): void => {
    if (ends.delete(once)) end()
  }
  ends.add(once)
  response.once('close', once)
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
function listOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' ? value : ''
}

function isList(name: string): boolean {
  return name === 'RateLimit' || name === 'RateLimit-Policy'
}

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
