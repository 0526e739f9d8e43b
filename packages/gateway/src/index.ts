export * from 'catraca'
export type { Per } from './edge/partition.ts'
export { createGateway, type Gateway, type GatewayStats, type ListenOptions } from './gateway.ts'
export type { GatewayOptions, Timeouts } from './options.ts'
