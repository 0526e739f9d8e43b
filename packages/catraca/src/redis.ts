export type { IoredisClient, NodeRedisClient, NodeRedisCluster, RedisClient } from './stores/redis/client.ts'
export { type RedisStoreOptions, redisStore } from './stores/redis/redis-store.ts'
