import { show } from '../core/errors.ts'
import type { Refusal, RefusalBody } from './answer-options.ts'

/** A body and its media type. */
export interface Content {
  readonly contentType: string
  readonly body: string
}

/** What the option `body` gives, as it is sent; throws what it throws, or why what it gives cannot be sent. */
export function contentOf(hook: (refusal: Refusal) => RefusalBody, refusal: Refusal): Content {
  const given: unknown = hook(refusal)
  if (typeof given === 'string') return { contentType: 'text/plain; charset=utf-8', body: given }
  if (typeof given !== 'object' || given === null) throw new TypeError(`it gave ${show(given)}`)
  const { contentType, body, then } = given as { contentType?: unknown; body?: unknown; then?: unknown }
  if (typeof then === 'function') {
    // Nobody else will look at it: rejected, it would end the process.
    Promise.resolve(given).catch(() => {})
    throw new TypeError('it gave a promise')
  }
  if (typeof contentType === 'string' && typeof body === 'string') {
    if (/^[!-~][ -~]*$/.test(contentType)) return { contentType, body }
    throw new TypeError(`it gave the content type ${show(contentType)}`)
  }
  const text = JSON.stringify(given) as string | undefined
  if (text === undefined) throw new TypeError('it gave an object that is nothing in JSON')
  return { contentType: 'application/json', body: `${text}\n` }
}
