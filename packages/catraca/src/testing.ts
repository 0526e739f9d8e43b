export { type BypassApp, type BypassVector, bypassVectors, routeBypassSuite } from './testing/route-bypass.ts'
