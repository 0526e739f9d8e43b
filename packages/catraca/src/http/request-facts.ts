import type { Facts, Identity } from '../policy/facts.ts'
import type { NormalPath } from '../policy/path.ts'
import type { GuardRequest } from './request.ts'

/** The facts of one HTTP request, filled in as they become known. */
export class RequestFacts implements Facts {
  readonly method: string
  readonly path: NormalPath
  readonly address: string
  identity: Identity | undefined = undefined
  failed = false
  readonly units: number
  readonly nowUs: number | undefined
  body: unknown = undefined
  private readonly request: GuardRequest

  constructor(request: GuardRequest, path: NormalPath, address: string) {
    this.method = request.method
    this.path = path
    this.address = address
    this.units = request.units ?? 1
    this.nowUs = request.now === undefined ? undefined : Math.round(request.now * 1_000)
    this.request = request
  }

  header(name: string): string | undefined {
    return this.request.header(name)
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
