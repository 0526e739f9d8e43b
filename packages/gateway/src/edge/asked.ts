import type { GuardRequest } from 'catraca/http'
import { hasBody, leavingOf } from 'catraca/node'
import type { EdgeRequest, EdgeResponse } from './messages.ts'

/** A body longer than this is not looked into. */
const maxBodyBytes = 64 * 1024

/** A request of the edge as the guard sees it. */
export class Asked implements GuardRequest<EdgeRequest> {
  readonly raw: EdgeRequest
  readonly method: string
  readonly target: string
  private readonly response: EdgeResponse

  constructor(raw: EdgeRequest, response: EdgeResponse) {
    this.raw = raw
    this.method = raw.method ?? 'GET'
    this.target = raw.url ?? '/'
    this.response = response
  }

  get peer(): string | undefined {
    return this.raw.socket.remoteAddress
  }

  get signal(): ReturnType<typeof leavingOf> {
    return leavingOf(this.raw.socket)
  }

  header(name: string): string | undefined {
    const value = this.raw.headers[name]
    return typeof value === 'string' || value === undefined ? value : value.join(', ')
  }

  private parsedBody: unknown

  /** Reads a JSON body of a stated, small length, and keeps its bytes for the upstream. Undefined for any other. */
  body(): unknown {
    this.parsedBody ??= this.read()
    return this.parsedBody
  }

  private read(): unknown {
    const { raw, response } = this
    const length = Number(raw.headers['content-length'] ?? Infinity)
    if (!hasBody(raw) || !(length <= maxBodyBytes) || !isJson(raw.headers['content-type'])) return undefined
    if (raw.headers.expect !== undefined && raw.httpVersionMinor > 0) {
      response.writeContinue()
      response.continued = true
    }
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      raw.on('data', (chunk: Buffer) => void chunks.push(chunk))
      raw.once('end', () => {
        raw.taken = Buffer.concat(chunks)
        resolve(parsed(raw.taken.toString('utf8')))
      })
      raw.once('close', () => {
        if (raw.taken === undefined) reject(new Error('the caller left in the middle of its body'))
      })
      raw.once('error', reject)
    })
  }
}

function isJson(type: string | undefined): boolean {
  return type !== undefined && /^[^;]*\bjson\s*(?:;|$)/i.test(type)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
