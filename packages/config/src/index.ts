export type { Environment } from './environment.ts'
export type {
  AnswerDialect,
  AnswersEntry,
  ApiKeyEntry,
  ApiKeysEntry,
  CacheEntry,
  GatewayDocument,
  JobsEntry,
  ListenEntry,
  RedisEntry,
  RouteEntry,
  TimeoutsEntry,
  UpstreamEntry,
} from './gateway-document.ts'
export { gatewayProblems, policyPart } from './gateway-problems.ts'
export { gatewayShape } from './gateway-shape.ts'
export {
  type FileProblem,
  fileError,
  problemLine,
  type Read,
  readGatewayFile,
  readGatewayText,
  readPolicyFile,
  readPolicyText,
} from './read.ts'
export { schemas } from './schemas.ts'
export type { Position } from './source.ts'
