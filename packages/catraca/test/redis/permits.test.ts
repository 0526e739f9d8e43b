import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { FaultProxy, RedisProcess } from '@catraca/gateway/redis-server'
import { concurrency, createLimiter } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type AnyLimiter, connect, eventually, ready, sleep, times } from './support.ts'

let server: RedisProcess

beforeAll(async () => {
  server = await RedisProcess.start()
})

afterAll(() => server.stop())

async function client(port = server.port): Promise<Redis> {
  const redis = connect(port)
  onTestFinished(() => redis.disconnect())
  await ready(redis)
  return redis
}

function limiterOf(redis: Redis, name: string, limit: number, permitTtl: string, timeoutMs = 5_000): AnyLimiter {
  const store = redisStore({ client: redis, timeoutMs })
  onTestFinished(() => store.close())
  return createLimiter(concurrency({ limit, permitTtl: permitTtl as '1s' }), { name, store, onStoreFailure: 'closed' })
}

const left = async (limiter: AnyLimiter): Promise<number> => (await limiter.peek('k')).remaining

test('acceptance 209: the permits of a process that is killed are back after their time', async () => {
  const script = fileURLToPath(new URL('./permits.case.mjs', import.meta.url))
  const child = spawn(process.execPath, [script, String(server.port)], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (data: Buffer) => {
    said += data.toString()
  })
  child.stderr.on('data', (data: Buffer) => {
    said += data.toString()
  })
  await eventually('it holds both', () => said.includes('\n'))
  expect(said).toBe('true,true\n')
  const other = limiterOf(await client(), 'killed', 2, '1500ms')
  const refused = await other.take('k')
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect([refused.allowed, refused.reason]).toEqual([false, 'concurrency'])
  expect(refused.retryAfterMs).toBeLessThanOrEqual(1_500)
  const began = performance.now()
  await eventually('a permit is back', async () => (await other.take('k')).allowed)
  expect(performance.now() - began).toBeLessThan(5_000)
  expect(await left(other)).toBeLessThanOrEqual(1)
})

test('a permit is free for others when it is released, once', async () => {
  const [a, b] = [await client(), await client()]
  const [one, other] = [limiterOf(a, 'released', 2, '1h'), limiterOf(b, 'released', 2, '1h')]
  const held = [await one.take('k'), await one.take('k')]
  expect((await other.take('k')).allowed).toBe(false)
  await one.release(held[0] as (typeof held)[number])
  await one.release(held[0] as (typeof held)[number])
  expect(await left(other)).toBe(1)
  const third = await other.take('k')
  expect(third.allowed).toBe(true)
  third.release()
  await eventually('it is back', async () => (await left(one)) === 1)
})

test('a permit that is renewed lasts, one that is not ends, and a release after that takes nothing from others', async () => {
  const limiter = limiterOf(await client(), 'renewed', 2, '1500ms')
  const [kept, lost] = [await limiter.take('k'), await limiter.take('k')]
  for (let turn = 0; turn < 5; turn++) {
    await sleep(400)
    expect(await limiter.renew(kept)).toBe(true)
  }
  expect(await left(limiter)).toBe(1)
  expect(await limiter.renew(lost)).toBe(false)
  const next = await limiter.take('k')
  expect(next.allowed).toBe(true)
  await limiter.release(lost)
  expect(await left(limiter)).toBe(0)
  await limiter.release(kept)
  expect(await limiter.renew(kept)).toBe(false)
  expect(await left(limiter)).toBe(1)
})

test('2,000 permits taken, renewed and released by five processes end with none held', async () => {
  const limiters = await Promise.all(times(5, async () => limiterOf(await client(), 'crowd', 100, '1h')))
  let held = 0
  let most = 0
  await Promise.all(
    times(200, async (index) => {
      const limiter = limiters[index % 5] as AnyLimiter
      for (let turn = 0; turn < 10; turn++) {
        const decision = await limiter.take('k')
        if (!decision.allowed) continue
        held++
        most = Math.max(most, held)
        if (turn % 3 === 0) expect(await limiter.renew(decision)).toBe(true)
        held--
        await limiter.release(decision)
      }
    }),
  )
  expect(most).toBeLessThanOrEqual(100)
  expect(await left(limiters[0] as AnyLimiter)).toBe(100)
})

test('a permit that comes after its call was given up is given back', async () => {
  const proxy = await FaultProxy.start(server.port)
  onTestFinished(() => proxy.close())
  const limiter = limiterOf(await client(proxy.port), 'late', 3, '1h', 150)
  const watcher = limiterOf(await client(), 'late', 3, '1h')
  const first = await limiter.take('k')
  expect([first.allowed, first.degraded]).toEqual([true, false])
  await proxy.set({ delayMs: 400 })
  const late = await limiter.take('k')
  expect([late.allowed, late.degraded]).toEqual([false, true])
  await eventually('the store has given it', async () => (await left(watcher)) === 1)
  await eventually('it is given back', async () => (await left(watcher)) === 2)
  await proxy.set('pass')
})
