import { CatracaError } from '../../core/errors.ts'
import { type Gate, gateOf, isGuard } from './gate.ts'
import type { MountOptions, RouteOptions, What } from './options.ts'

/** The gates of routes with numbers of their own. Routes that are given one object share one limit, as GET and its HEAD do. */
export class RouteGates<Q, S> {
  private readonly what: What<Q, S>
  private readonly gate: Gate<Q, S>
  private readonly gates = new WeakMap<object, Gate<Q, S>>()

  constructor(what: What<Q, S>, mount?: MountOptions<Q, S>) {
    this.what = what
    this.gate = gateOf(what, mount)
  }

  /**
   * The gate of a route; undefined for one without a limit. Throws a `CatracaError` for options that are not allowed.
   *
   * @param route Names the route, and its limit where that has no name.
   */
  of(limit: RouteOptions<Q, S> | undefined, route: string): Gate<Q, S> | undefined {
    if (limit === undefined) return this.gate
    if (limit === false) return undefined
    let gate = this.gates.get(limit)
    if (gate === undefined) {
      const { what } = this
      if (isGuard(what)) throw guardHasNumbers(route)
      gate = gateOf<Q, S>({ ...what, name: nameOf(route), ...limit })
      this.gates.set(limit, gate)
    }
    return gate
  }
}

/** A route as the name of a limit: `GET /reports/:id` becomes `GET-reports-id`. */
function nameOf(route: string): string {
  return route.replaceAll(/[^A-Za-z0-9_.]+/g, '-').replaceAll(/^[^A-Za-z]+|-$/g, '').slice(0, 64) || 'route'
}

function guardHasNumbers(route: string): CatracaError {
  const message = `the limit of ${route} stands beside a guard; allowed: false. Its document has the numbers`
  return new CatracaError('CATRACA_OPTION_INVALID', message, { path: 'rateLimit', value: route })
}
