import { CatracaError, show } from '../../core/errors.ts'
import type { Signal } from '../../limiter/signal.ts'
import { Collected } from '../mount/collected.ts'
import type { Asked } from '../mount/gate.ts'
import { type WebRequest, web } from './messages.ts'

/** A body of more bytes than this is not looked into. */
const mostBytes = 1_048_576

/** A request of the web as a gate sees it; `raw` is what the framework made of it. */
export class WebAsked<Q> implements Asked<Q> {
  readonly raw: Q
  readonly method: string
  readonly target: string
  units = 1
  private readonly request: WebRequest
  private readonly address: () => string | undefined

  constructor(raw: Q, request: WebRequest, address: () => string | undefined) {
    this.raw = raw
    this.request = request
    this.method = request.method
    this.target = request.url
    this.address = address
  }

  /** Throws `CATRACA_ADDRESS_MISSING`: as one bucket for all, callers without one would lock each other out. */
  get peer(): string {
    const address: unknown = this.address()
    if (typeof address === 'string' && address !== '') return address
    const message = `the address of a caller is ${show(address)}; allowed: a text. Say with the option address where it stands, or with key whom to count`
    throw new CatracaError('CATRACA_ADDRESS_MISSING', message, { path: 'options.address', value: address })
  }

  get signal(): Signal {
    return this.request.signal
  }

  header(name: string): string | undefined {
    return this.request.headers.get(name) ?? undefined
  }

  body(): Promise<unknown> | undefined {
    return bodyOf(this.request)
  }
}

/**
 * The body as JSON, read from a copy. Undefined when somebody read it before, when it is no JSON, or longer than 1 MiB:
 * policies count such a request as one whose value is missing, and its handler answers what it likes.
 */
export function bodyOf(request: WebRequest): Promise<unknown> | undefined {
  return request.bodyUsed || request.body === null ? undefined : readJson(request.clone())
}

async function readJson({ body }: WebRequest): Promise<unknown> {
  const reader = body?.getReader()
  if (reader === undefined) return undefined
  const collected = new Collected(mostBytes)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      if (!collected.add(value)) {
        // The copy is given up; the original goes on to the handler.
        reader.cancel().catch(() => {})
        return undefined
      }
    }
    return JSON.parse(new web.TextDecoder().decode(collected.take() as Uint8Array))
  } catch {
    return undefined
  }
}
