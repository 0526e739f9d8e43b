import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import { expect, test, vi } from 'vitest'
import { connect, ready } from './support.ts'

test('a listener that throws is its own fault: the decision stands', async () => {
  const server = await RedisProcess.start()
  const redis = connect(server.port)
  await ready(redis)
  const store = redisStore({ client: redis, timeoutMs: 5_000 })
  const thrown = vi.fn(() => {
    throw new Error('mine')
  })
  const unhandled: unknown[] = []
  const note = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', note)
  const options = { name: 'step', store, storeFailure: { expectedInstances: 1 }, on: { 'clock.step': thrown } }
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1000d' }), options)
  await limiter.take('k')
  const key = (await redis.keys('*:step*')).find((name) => name.includes('{k}')) as string
  const value = (await redis.getBuffer(key)) as Buffer
  value.writeDoubleLE(value.readDoubleLE(0) * 1.1, 0)
  await redis.set(key, value, 'PX', 100_000)
  expect((await limiter.take('k')).remaining).toBe(8)
  expect(thrown).toHaveBeenCalledOnce()
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([new Error('mine')])
  limiter.close()
  redis.disconnect()
  await server.stop()
})
