import { FaultProxy } from '@catraca/gateway/redis-server'
import { describe, expect, onTestFinished, test } from 'vitest'
import { retryDelayMs } from '../src/store/redis-client.ts'
import { startWith } from './documents.ts'
import { ask, startTcp, startUpstream, until } from './helpers.ts'
import { call, calls, linesOfStore, ofStore, sharedDocument, startRedis } from './store-support.ts'

describe('gateways over one Redis', () => {
  test('share one budget exactly', async () => {
    const { origin, seen } = await startUpstream()
    const { url: redis } = await startRedis()
    const gateways = [await startWith(sharedDocument(origin, redis)), await startWith(sharedDocument(origin, redis))]
    const urls = gateways.map(({ url }) => url)
    expect(await calls(40, urls)).toEqual({ 200: 12, 429: 28 })
    expect(seen).toHaveLength(12)
    expect(gateways.map(({ gateway }) => gateway.health)).toEqual(['healthy', 'healthy'])
    expect(linesOfStore(gateways.flatMap(({ warnings }) => warnings))).toEqual([])
    const address = redis.replace('redis://', '')
    expect(gateways[0]?.gateway.store).toEqual({ kind: 'redis', address, state: 'healthy' })
  })

  test('ask the upstream only once the store has answered', async () => {
    const { origin, seen } = await startUpstream()
    const { port } = await startRedis()
    const proxy = await FaultProxy.start(port)
    onTestFinished(() => proxy.close())
    const { url } = await startWith(sharedDocument(origin, proxy.url, { timeout: 5_000 }))
    expect(await call(url)).toBe(200)
    await proxy.set({ delayMs: 300 })
    const answer = call(url)
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(seen).toHaveLength(1)
    expect(await answer).toBe(200)
    expect(seen).toHaveLength(2)
  })

  test('tell a caller what is left in the store, and charge nobody who left meanwhile', async () => {
    const { origin, seen } = await startUpstream()
    const redis = await startRedis()
    const { url } = await startWith(sharedDocument(origin, redis.url, { timeout: 5_000 }))
    expect(await call(url)).toBe(200)
    redis.pause()
    const left = ask(`${url}/api`, { headers: { 'x-api-key': 'key' }, signal: AbortSignal.timeout(200) })
    await expect(left).rejects.toThrow()
    // The gateway has to notice that the caller is gone.
    await new Promise((resolve) => setTimeout(resolve, 200))
    redis.resume()
    const remaining = async (): Promise<number | undefined> => {
      const { body } = await ask(`${url}/rate-limit`, { headers: { 'x-api-key': 'key' } })
      const { policies } = JSON.parse(String(body)) as { policies: { policy: string; remaining: number }[] }
      return policies.find(({ policy }) => policy === 'api')?.remaining
    }
    await expect.poll(remaining).toBe(11)
    expect(seen).toHaveLength(1)
  })

  test('a changed file changes policies and storeFailure; another store is for the next start', async () => {
    const { origin } = await startUpstream()
    const { url: redis } = await startRedis()
    const document = sharedDocument(origin, redis)
    const { url, gateway, warnings } = await startWith(document)
    expect(await calls(12, [url])).toEqual({ 200: 12 })
    gateway.reload({ ...sharedDocument(origin, redis, { limit: 15 }), storeFailure: { expectedInstances: 5 } })
    expect(linesOfStore(warnings)).toEqual([])
    expect(await calls(10, [url])).toEqual({ 200: 3, 429: 7 })
    gateway.reload({ ...sharedDocument(origin, 'redis://127.0.0.1:1', { limit: 16 }), admin: { port: 0 } })
    expect(linesOfStore(warnings)).toEqual(['admin, store: another value is taken at the next start'])
    gateway.reload(sharedDocument(origin, 'redis://127.0.0.1:1', { limit: 16 }))
    expect(linesOfStore(warnings)[1]).toBe('store: another value is taken at the next start')
    expect(await calls(10, [url])).toEqual({ 200: 1, 429: 9 })
    expect(gateway.store).toMatchObject({ state: 'healthy', address: redis.replace('redis://', '') })
    const { storeFailure: _, ...uncounted } = { ...document, store: 'memory' as const }
    expect(() => gateway.reload(uncounted)).toThrow(/storeFailure.expectedInstances is missing/)
    expect(await calls(5, [url])).toEqual({ 429: 5 })
  })
})

describe('a Redis that is not there', () => {
  test('is tried every half second at least, also after a week, and not by all instances at once', () => {
    const delays = Array.from({ length: 100 }, () => retryDelayMs(1_000_000))
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(250)
    expect(Math.max(...delays)).toBeLessThanOrEqual(500)
    expect(new Set(delays).size).toBeGreaterThan(50)
    expect(retryDelayMs(1)).toBeLessThanOrEqual(50)
  })

  test('at the start: declared modes decide, one warning; when it comes it is used', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    await redis.kill()
    const { url, gateway, warnings } = await startWith(sharedDocument(origin, redis.url))
    await until(() => linesOfStore(warnings).length === 1)
    expect(gateway.health).not.toBe('healthy')
    expect(await calls(10, [url])).toEqual({ 200: 4, 429: 6 })
    expect(await call(url, '/login', 'POST')).toBe(503)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(linesOfStore(warnings)).toEqual([
      expect.stringMatching(
        /^the store at 127\.0\.0\.1:\d+ does not answer \(connect ECONNREFUSED .*\); policies decide/,
      ),
    ])
    await redis.restart()
    await until(() => gateway.health === 'healthy')
    expect(await call(url, '/login', 'POST')).toBe(200)
    expect(await calls(20, [url])).toEqual({ 200: 12, 429: 8 })
    expect(linesOfStore(warnings)[1]).toMatch(/answers again after [\d.]+ s; 11 decisions were made without it$/)
  })

  test('without any traffic: the beginning and the end are told', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const { url, gateway, warnings, events } = await startWith(sharedDocument(origin, redis.url))
    expect(await call(url)).toBe(200)
    await redis.kill()
    await until(() => gateway.health === 'degraded')
    await redis.restart()
    await until(() => gateway.health === 'healthy')
    expect(linesOfStore(warnings)[1]).toMatch(/; 0 decisions were made without it$/)
    await until(() => ofStore(events).length === 3)
    const lost = { type: 'lost', kind: 'restart', decisionsAtRisk: expect.any(Number) }
    expect(ofStore(events)).toMatchObject([{ type: 'degraded' }, { type: 'recovered' }, lost])
  })

  test('a wrong password: declared modes, one warning, and no password in it', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    await redis.command('CONFIG', 'SET', 'requirepass', 'right')
    const { url, gateway, warnings } = await startWith(
      sharedDocument(origin, redis.url.replace('redis://', 'redis://:hunter2%2F@')),
    )
    expect(await call(url, '/login', 'POST')).toBe(503)
    expect(await calls(10, [url])).toEqual({ 200: 4, 429: 6 })
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(linesOfStore(warnings)).toHaveLength(1)
    expect(linesOfStore(warnings)[0]).toMatch(/^the store at 127\.0\.0\.1:\d+ does not answer \(WRONGPASS /)
    expect(JSON.stringify([warnings, gateway.store])).not.toContain('hunter2')
    const good = await startWith(sharedDocument(origin, redis.url.replace('redis://', 'redis://:right@')))
    expect(await call(good.url, '/login', 'POST')).toBe(200)
    expect(linesOfStore(good.warnings)).toEqual([])
  })

  test('a database that the server does not have: declared modes, and no other database is used', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const { url, gateway, warnings } = await startWith(sharedDocument(origin, `${redis.url}/99`))
    await until(() => linesOfStore(warnings).length > 0)
    expect(await call(url, '/login', 'POST')).toBe(503)
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    expect(await call(url, '/login', 'POST')).toBe(503)
    expect(linesOfStore(warnings)).toEqual([expect.stringContaining('(ERR DB index is out of range)')])
    expect(gateway.health).not.toBe('healthy')
    expect(await redis.command('DBSIZE')).toBe(0)
  })

  test('a server that takes connections and says nothing: declared modes, and it is tried anew', async () => {
    const { origin } = await startUpstream()
    let connections = 0
    const silent = await startTcp((socket) => {
      connections++
      socket.resume()
    })
    const { url, warnings } = await startWith(
      sharedDocument(origin, silent.replace('http://', 'redis://'), { timeout: 200 }),
    )
    expect(await call(url, '/login', 'POST')).toBe(503)
    expect(await calls(10, [url])).toEqual({ 200: 4, 429: 6 })
    await until(() => connections >= 2)
    expect(linesOfStore(warnings)).toEqual([expect.stringContaining('(no answer within 200 ms)')])
  })

  test.each(['killed', 'paused'] as const)('close ends while it is %s', async (how) => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const { url, gateway } = await startWith(sharedDocument(origin, redis.url, { timeout: 200 }))
    expect(await call(url)).toBe(200)
    if (how === 'killed') await redis.kill()
    else redis.pause()
    expect(await call(url, '/login', 'POST')).toBe(503)
    const start = performance.now()
    await gateway.close(0)
    expect(performance.now() - start).toBeLessThan(1_500)
  })
})
