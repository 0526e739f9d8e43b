import { CatracaError } from '../../core/errors.ts'
import { type Gate, gateOf, isGuard } from './gate.ts'
import type { MountOptions, RouteOptions, SimpleOptions, What } from './options.ts'

/** The gates of routes with numbers of their own. Routes that are given one object share one limit, as GET and its HEAD do. */
export class RouteGates<Q, S> {
  private readonly what: What<Q, S>
  private readonly gate: Gate<Q, S>
  private named = 0
  private readonly gates = new WeakMap<object, Gate<Q, S>>()

  constructor(what: What<Q, S>, mount?: MountOptions<Q, S>) {
    this.what = what
    this.gate = gateOf(what, mount)
  }

  /** True where policies may look into bodies: one limit never does. */
  get readsBodies(): boolean {
    return isGuard(this.what)
  }

  /**
   * The gate of a route; undefined for one without a limit. Throws a `CatracaError` for options that are not allowed.
   *
   * @param route Names the route, where it is at fault.
   */
  of(limit: RouteOptions<Q, S> | undefined, route: () => string): Gate<Q, S> | undefined {
    if (limit === undefined) return this.gate
    if (limit === false) return undefined
    let gate = this.gates.get(limit)
    if (gate === undefined) {
      const { what } = this
      if (isGuard(what)) throw guardHasNumbers(route())
      const { name = 'default' } = what
      // Numbers that the route leaves out are not those of the others: a burst belongs to its limit.
      const own: Partial<SimpleOptions<Q, S>> = { ...what, name: `${name}-route-${++this.named}` }
      for (const one of ['limit', 'window', 'algorithm', 'burst', 'routes'] as const) delete own[one]
      gate = gateOf<Q, S>({ ...own, ...limit })
      this.gates.set(limit, gate)
    }
    return gate
  }
}

function guardHasNumbers(route: string): CatracaError {
  const message = `the limit of ${route} stands beside a guard; allowed: false. Its document has the numbers`
  return new CatracaError('CATRACA_OPTION_INVALID', message, { path: 'rateLimit', value: route })
}
