import { toldHeader } from '../mount/told.ts'
import type { NodeRequest } from './messages.ts'

/** Requests whose header a guard wrote; an inner guard leaves it. */
const written = new WeakSet<object>()

/** Takes the header away from a caller who wrote it, in every form in which Node shows it. */
export function forgetForged({ headers, rawHeaders }: NodeRequest): void {
  if (headers[toldHeader] === undefined || written.has(headers)) return
  delete (headers as Record<string, unknown>)[toldHeader]
  if (rawHeaders === undefined) return
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== toldHeader) continue
    // Node counts on the length of this array.
    rawHeaders[at] = `${toldHeader}-refused`
    rawHeaders[at + 1] = ''
  }
}

export function tell({ headers }: NodeRequest, what: string): void {
  ;(headers as Record<string, unknown>)[toldHeader] = what
  written.add(headers)
}
