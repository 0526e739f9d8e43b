import { toldHeader } from '../mount/told.ts'
import { type WebRequest, web } from './messages.ts'

/** Requests whose header a guard wrote; an inner guard leaves it. */
const written = new WeakSet<object>()

/**
 * The request as its handler is to see it: with the header `catraca-answer` where a guard has something to say, without it
 * where the caller wrote it. The same object where nothing is to be changed.
 */
export function requestFor<Q extends WebRequest>(request: Q, told: string | undefined): Q {
  if (told === undefined && (written.has(request) || request.headers.get(toldHeader) === null)) return request
  const headers = new web.Headers(request.headers)
  if (told === undefined) headers.delete(toldHeader)
  else headers.set(toldHeader, told)
  const { url, method, signal } = request
  // Of a body that somebody read before nothing is left to be handed on.
  const copy = request.bodyUsed
    ? new web.Request(url, { method, signal, headers })
    : new web.Request(request, { headers })
  if (told !== undefined) written.add(copy)
  return copy as Q
}
