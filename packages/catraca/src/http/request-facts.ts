import type { Facts, Identity } from '../policy/facts.ts'
import type { NormalPath } from '../policy/path.ts'
import { cookieIn } from './cookie.ts'
import type { GuardRequest } from './request.ts'

/** The facts of one HTTP request, filled in as they become known. */
export class RequestFacts implements Facts {
  readonly method: string
  readonly path: NormalPath
  readonly address: string
  readonly peer: string
  credential: string | undefined = undefined
  identity: Identity | undefined = undefined
  failed = false
  readonly units: number
  nowUs: number | undefined
  body: unknown = undefined
  readonly request: GuardRequest
  private params: URLSearchParams | undefined

  /** @param address The caller's network as it is counted. @param peer Its whole address. */
  constructor(request: GuardRequest, path: NormalPath, address: string, peer: string) {
    this.method = request.method
    this.path = path
    this.address = address
    this.peer = peer
    this.units = request.units ?? 1
    this.nowUs = request.now === undefined ? undefined : Math.round(request.now * 1_000)
    this.request = request
  }

  header(name: string): string | undefined {
    return this.request.header(name)
  }

  cookie(name: string): string | undefined {
    return cookieIn(this.request.header('cookie') ?? '', name)
  }

  query(name: string): string | undefined {
    if (this.params === undefined) {
      const { target } = this.request
      const mark = target.indexOf('?')
      const hash = target.indexOf('#')
      this.params = new URLSearchParams(mark === -1 ? '' : target.slice(mark + 1, hash > mark ? hash : undefined))
    }
    const [first, ...more] = this.params.getAll(name)
    return more.every((value) => value === first) ? first : undefined
  }

  /** Texts and numbers that look the same are the same caller: services rarely tell `7` from `"7"`. */
  bodyField(name: string): string | undefined {
    const { body } = this
    if (typeof body !== 'object' || body === null || !Object.hasOwn(body, name)) return undefined
    const value = (body as Readonly<Record<string, unknown>>)[name]
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : undefined
  }
}
