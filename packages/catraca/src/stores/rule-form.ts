import { registry } from '../algorithms/registry.ts'
import { CatracaError, show } from '../core/errors.ts'
import type { Rule } from '../core/rule.ts'

/** Options of a rule as its factory takes them. */
export type RuleOptions = Record<string, string | number>

/** The options a rule was made from, as its factory takes them: what is made from them anew is the same rule. */
export function optionsOf({ algorithm, options }: Rule): RuleOptions {
  const parameters = registry[algorithm]?.parameters ?? {}
  const given: RuleOptions = {}
  for (const [name, value] of Object.entries(options)) {
    const plain = name.endsWith('Ms') ? name.slice(0, -2) : name
    // A queue is made with a capacity and keeps it as the burst of its bucket.
    given[plain in parameters ? plain : 'capacity'] = value
  }
  return given
}

/** Makes a rule of an algorithm of the registry. Throws a `CatracaError` for any other, and as the factory does. */
export function makeRule(algorithm: string, options: Readonly<RuleOptions>): Rule {
  const kind = registry[algorithm]
  if (kind !== undefined) return kind.make(options as never)
  throw new CatracaError(
    'CATRACA_OPTION_INVALID',
    `a rule is of the algorithm ${show(algorithm)}, which cannot be shared; allowed: ${Object.keys(registry).join(', ')}`,
    { path: 'rule.algorithm', value: algorithm },
  )
}
