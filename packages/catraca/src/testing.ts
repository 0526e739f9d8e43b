export { type Random, seededRandom } from './core/random.ts'
export type {
  AdapterApp,
  AdapterDriver,
  AppAnswer,
  AppLimit,
  AppRequest,
  AppRoute,
  DeclareTest,
  RunningApp,
  SuiteSocket,
} from './testing/adapter/app.ts'
export { adapterSuite } from './testing/adapter/suite.ts'
export { type CacheScene, cacheSuite } from './testing/cache/suite.ts'
export { type FakeClock, fakeClock } from './testing/fake-clock.ts'
export { type Faults, type FaultyStore, type FaultyStoreOptions, faultyStore } from './testing/faulty-store.ts'
export { type JobsScene, jobsSuite } from './testing/jobs/suite.ts'
export { type LeaseCase, leaseCases } from './testing/lease-search/cases.ts'
export type { Grant } from './testing/lease-search/centre.ts'
export type { Counts, Fault, Span } from './testing/lease-search/log.ts'
export {
  type LeaseSearch,
  type LeaseSearchResult,
  type LeaseViolation,
  searchLeases,
} from './testing/lease-search/search.ts'
export type { Caller } from './testing/lease-search/world.ts'
export { type BypassApp, type BypassVector, bypassVectors, routeBypassSuite } from './testing/route-bypass.ts'
export { type RulePromise, ruleSuite } from './testing/rule/suite.ts'
export { type StoreScene, storeSuite } from './testing/store/suite.ts'
