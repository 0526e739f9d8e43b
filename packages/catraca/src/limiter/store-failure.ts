import type { RuleChange } from '../core/decision.ts'
import type { Duration } from '../core/duration.ts'
import { checkOptions, type Parameters, rejectUnknown } from '../core/parameters.ts'
import type { StoreFailureMode, StoreFailureOptions } from '../stores/remote.ts'
import { optionInvalid } from './arguments.ts'

/** How the limit is kept while the shared store is gone, for policies in mode `local`. */
export interface StoreFailure {
  /** Instances that share the limits, each of which then admits limit ÷ instances: 1 to 100,000, or `live`: as counted. */
  expectedInstances: number | 'live'
  /** Units that all instances together then admit over all keys. Default: no ceiling. */
  ceiling?: { limit: number; window: Duration }
}

const failureModes: readonly StoreFailureMode[] = ['local', 'open', 'closed']
const ruleChanges: readonly RuleChange[] = ['keep', 'proportional', 'reset']
const maxInstances = 100_000
const ceilingParameters: Parameters = {
  limit: { kind: 'integer', unit: 'units', min: 1, max: 1e12, words: 'units that all instances together admit' },
  window: { kind: 'duration', words: 'length of the window that slides' },
}

export function checkFailureMode(value: unknown, path: string): StoreFailureMode {
  return checkChoice(failureModes, value, path)
}

export function checkRuleChange(value: unknown, path: string): RuleChange {
  return checkChoice(ruleChanges, value, path)
}

/** Checks {@link StoreFailure}. Throws a `CatracaError` that names the path, the value and what is allowed. */
export function checkStoreFailure(value: unknown, path: string): StoreFailureOptions {
  rejectUnknown(['expectedInstances', 'ceiling'], value, path)
  const { expectedInstances, ceiling } = value as Record<string, unknown>
  const counted =
    Number.isSafeInteger(expectedInstances) &&
    (expectedInstances as number) >= 1 &&
    (expectedInstances as number) <= maxInstances
  if (!counted && expectedInstances !== 'live') {
    const allowed = `a whole number of instances from 1 to ${maxInstances}, or "live"`
    throw optionInvalid(`${path}.expectedInstances`, expectedInstances, allowed)
  }
  const instances = expectedInstances as number | 'live'
  if (ceiling === undefined) return { expectedInstances: instances }
  const { limit, window } = checkOptions(ceilingParameters, ceiling, `${path}.ceiling`)
  return { expectedInstances: instances, ceiling: { limit: limit as number, windowUs: window as number } }
}

function checkChoice<Choice extends string>(of: readonly Choice[], value: unknown, path: string): Choice {
  if (of.includes(value as Choice)) return value as Choice
  throw optionInvalid(path, value, of.map((choice) => JSON.stringify(choice)).join(', '))
}
