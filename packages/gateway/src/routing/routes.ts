import type { GatewayDocument } from '@catraca/config'
import { normalPath, parseRoute, type Route } from 'catraca/policy'

interface Entry {
  readonly host: string | undefined
  readonly route: Route
  readonly upstream: string
}

/** Which upstream answers a request. */
export class Routes {
  private readonly entries: readonly Entry[]
  private readonly caseSensitive: boolean

  constructor({ routes, upstreams, caseSensitive = false }: GatewayDocument) {
    const all = routes ?? [{ path: '/**', upstream: Object.keys(upstreams)[0] as string }]
    this.caseSensitive = caseSensitive
    this.entries = all.map(({ host, path, upstream }, index) => {
      return { host: host?.toLowerCase(), route: parseRoute(path, `routes[${index}].path`, caseSensitive), upstream }
    })
  }

  /** The name of the first upstream whose host and path match; undefined for none. */
  find(method: string, target: string, host: string | undefined): string | undefined {
    const path = normalPath(target, this.caseSensitive)
    const name = hostName(host)
    for (const entry of this.entries) {
      if (entry.host !== undefined && entry.host !== name) continue
      if (entry.route.matches(method, path)) return entry.upstream
    }
    return undefined
  }
}

/** A `Host` field without its port. */
function hostName(host: string | undefined): string {
  if (host === undefined) return ''
  return host.toLowerCase().replace(/:\d+$/, '')
}
