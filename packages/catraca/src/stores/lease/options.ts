import type { LeaseTerms } from '../../core/decision.ts'
import type { Duration } from '../../core/duration.ts'
import { CatracaError } from '../../core/errors.ts'
import { checkOptions, type Parameters } from '../../core/parameters.ts'
import type { Rule } from '../../core/rule.ts'

/** How an instance may hold units of a limit, so that it decides without a trip to the store. */
export interface LeaseOptions {
  /** Units it holds of one key when they run low, at most: 1 to 1,000,000. A key gets as many as it uses during `ttl`. */
  block: number
  /** How long units are held that are not used, and how far back use is looked at: 100 ms to 1 h. Default `10s`. */
  ttl?: Duration
}

export const leaseParameters = {
  block: {
    kind: 'integer',
    unit: 'units',
    min: 1,
    max: 1_000_000,
    words: 'units of one key that an instance asks for at once, at most; as many as the key uses during ttl',
  },
  ttl: {
    kind: 'duration',
    default: '10s',
    words: 'how long units are held that are not used, and how far back use is looked at: 100ms to 1h',
  },
} as const satisfies Parameters

const ttlUs = { least: 100_000, most: 3_600_000_000 } as const

/**
 * Checks {@link LeaseOptions} for a rule. Throws a `CatracaError` that names the path: `CATRACA_OPTION_INVALID` for a wrong
 * value, `CATRACA_LEASE_REFUSED` for a rule that is asked for each time or a policy that must be exact.
 */
export function leaseTerms(rule: Rule, options: unknown, path: string, exact = false): LeaseTerms {
  const checked = checkOptions(leaseParameters, options, path)
  const terms: LeaseTerms = { block: checked['block'] as number, ttlUs: checked['ttl'] as number }
  if (terms.ttlUs < ttlUs.least || terms.ttlUs > ttlUs.most) {
    const value = (options as LeaseOptions).ttl
    throw new CatracaError('CATRACA_OPTION_INVALID', `${path}.ttl is ${JSON.stringify(value)}; allowed: 100ms to 1h`, {
      path: `${path}.ttl`,
      value,
    })
  }
  const why = exact ? 'the policy says exact: true' : whyNot(rule)
  if (why === undefined) return terms
  throw new CatracaError('CATRACA_LEASE_REFUSED', `${path} is refused: ${why}; leave it out`, { path, value: options })
}

/** Why the units of a rule are not held by instances; undefined where they may be. */
function whyNot({ algorithm, lease }: Rule): string | undefined {
  if (lease !== 'never') return undefined
  if (algorithm === 'quota') return 'a quota is what is billed, so it is counted in one place each time'
  if (algorithm === 'concurrency') return 'permits of concurrency are held by requests, not by instances'
  return `each unit of ${algorithm} has a place in one queue`
}
