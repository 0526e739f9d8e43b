export { type Duration, durationMs } from './core/duration.ts'
export { type Bounds, boundsOf } from './policy/bounds.ts'
export { type Budget, budgetOf } from './policy/budget.ts'
export type {
  IdentityMatch,
  Mode,
  OverrideEntry,
  PolicyDocument,
  PolicyEntry,
  RuleEntry,
  StoreFailure,
  TrustEntry,
} from './policy/document.ts'
export { documentShape } from './policy/document-shape.ts'
export { candidateWords, overflowWords, splitWords } from './policy/excess-words.ts'
export type { ExplainedLease, Explanation, NotAsked } from './policy/explain.ts'
export type { Descriptor, Identity } from './policy/facts.ts'
export { type CheckContext, type Finding, findingsOf } from './policy/findings.ts'
export { type NormalPath, normalPath } from './policy/path.ts'
export {
  type Policies,
  type Policy,
  policyProblems,
  problemError,
  readPolicies,
  type Stage,
  type Variant,
} from './policy/policy.ts'
export { parseRoute, type Route } from './policy/route.ts'
export { policySchema, type Schema, schemaOf } from './policy/schema.ts'
export {
  allowedWords,
  isObject,
  type ObjectShape,
  type Place,
  type Problem,
  placeText,
  problemsOf,
  type Shape,
  unknownName,
} from './policy/shape.ts'
export { type Language, ruleWords } from './policy/words.ts'
export { shareOf } from './stores/failure/share.ts'
export type { LeaseOptions } from './stores/lease/options.ts'
export { type LeaseBounds, leaseBounds } from './stores/lease/terms.ts'
