export { Restarts } from './resilience/restarts/restarts.ts'
export { type Channel, channelOf, type ProcessLike } from './stores/workers/channel.ts'
export { type PrimaryStore, type PrimaryStoreOptions, primaryStore } from './stores/workers/primary-store.ts'
export { type WorkerStoreOptions, workerStore } from './stores/workers/worker-store.ts'
