import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readGatewayText } from '@catraca/config'
import { describe, expect, test } from 'vitest'
import { keyOf, startWith } from './documents.ts'
import { ask, startUpstream, until } from './helpers.ts'
import { call, calls, linesOfStore, ofStore, sharedDocument, startRedis } from './store-support.ts'

/** Far above the store's timeout of 200 ms and what decisions here take, below what a hanging call would take. */
const widelyMs = 1_000
/** A store that is there again is used within two seconds. */
const recoveryMs = 2_000

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

describe('an outage', () => {
  test.each(['killed', 'paused'] as const)(
    'acceptance 147: Redis is %s under load and comes back: only declared 503, no slow answer, recovered by itself',
    async (how) => {
      const { origin } = await startUpstream()
      const redis = await startRedis()
      const document = sharedDocument(origin, redis.url, { limit: 1_000_000, timeout: 200 })
      const { url, gateway } = await startWith(document)
      const answers: { path: string; status: number; ms: number }[] = []
      const load = { goesOn: true }
      const callAgain = async (path: string, method: string): Promise<void> => {
        while (load.goesOn) {
          const start = performance.now()
          const status = await call(url, path, method)
          answers.push({ path, status, ms: performance.now() - start })
          await sleep(2)
        }
      }
      const callers = ['/api', '/api', '/open', '/login'].map((path) =>
        callAgain(path, path === '/login' ? 'POST' : 'GET'),
      )
      await sleep(300)
      if (how === 'killed') await redis.kill()
      else redis.pause()
      await until(() => gateway.health === 'degraded')
      await sleep(700)
      if (how === 'killed') await redis.restart()
      else redis.resume()
      const there = performance.now()
      await until(() => gateway.health === 'healthy')
      expect(performance.now() - there).toBeLessThan(recoveryMs)
      const back = answers.length
      await sleep(300)
      load.goesOn = false
      await Promise.all(callers)

      const statuses = (path: string, from = 0): number[] =>
        [...new Set(answers.slice(from).flatMap((one) => (one.path === path ? one.status : [])))].toSorted(
          (a, b) => a - b,
        )
      expect(statuses('/api')).toEqual([200])
      expect(statuses('/open')).toEqual([200])
      expect(statuses('/login')).toEqual([200, 503])
      // What was under way when it came back may still have been decided without it.
      expect(statuses('/login', back + callers.length)).toEqual([200])
      expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(widelyMs)
      expect(answers.length).toBeGreaterThan(20)
    },
  )

  test('acceptance 148: closed answers 503 with Retry-After and not 429; open lets all pass', async () => {
    const { origin, seen } = await startUpstream()
    const redis = await startRedis()
    const { url, entries } = await startWith(sharedDocument(origin, redis.url))
    await redis.kill()
    for (let count = 0; count < 20; count++) {
      const { status, headers, body } = await ask(`${url}/login`, { method: 'POST' })
      expect(status).toBe(503)
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1)
      expect(JSON.parse(String(body))).toMatchObject({
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        status: 503,
        'violated-policies': ['login'],
      })
    }
    expect(seen).toHaveLength(0)
    expect(await calls(100, [url], '/open')).toEqual({ 200: 100 })
    await until(() => entries.length === 120)
    expect(entries[0]).toMatchObject({ status: 503, decision: 'refused', policy: 'login', degraded: true })
    expect(entries.filter(({ degraded }) => degraded)).toHaveLength(120)
  })

  test('acceptance 148: local admits one part of the limit here: 12 of 3 instances are 4', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const document = sharedDocument(origin, redis.url)
    const { url, entries } = await startWith(document)
    expect(await call(url)).toBe(200)
    await redis.kill()
    expect(await calls(20, [url])).toEqual({ 200: 4, 429: 16 })
    await until(() => entries.length === 21)
    expect(entries[0]).not.toHaveProperty('degraded')
  })

  test('acceptance 149: by every preset the business goes on and a login does not', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    await redis.kill()
    for (const preset of ['edge', 'strict', 'partner', 'login']) {
      const file = fileURLToPath(new URL(`../presets/${preset}.yaml`, import.meta.url))
      const store = `\nstore: { redis: "${redis.url}" }\nstoreFailure: { expectedInstances: 3 }\n`
      const { document, problems } = readGatewayText(readFileSync(file, 'utf8') + store, preset, { UPSTREAM: origin })
      expect(problems).toEqual([])
      if (document === undefined) continue
      const auth = document.auth === undefined ? {} : { auth: { apiKeys: { keys: [keyOf('key', 'acme')] } } }
      const { url } = await startWith({ ...document, ...auth })
      expect([preset, await call(url, '/v1/orders')]).toEqual([preset, 200])
      if (preset === 'partner') continue
      expect([preset, await call(url, '/login', 'POST')]).toEqual([preset, 503])
    }
  })

  test('acceptance 152: one event and warning at entry with the cause, one at exit with duration and decisions', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const { url, gateway, events, warnings } = await startWith(sharedDocument(origin, redis.url))
    expect(await call(url)).toBe(200)
    await redis.kill()
    const start = performance.now()
    for (let count = 0; count < 25; count++) await call(url, '/open')
    await sleep(800)
    expect(ofStore(events)).toEqual([
      { type: 'degraded', cause: expect.stringMatching(/ECONNREFUSED|ECONNRESET|lost/) },
    ])
    expect(linesOfStore(warnings)).toEqual([expect.stringContaining('policies decide without it')])
    await redis.restart()
    await until(() => gateway.health === 'healthy')
    const wholeMs = performance.now() - start
    const exit = events.find(({ type }) => type === 'recovered')
    expect(exit).toEqual({ type: 'recovered', durationMs: expect.any(Number), decisions: 25 })
    if (exit?.type !== 'recovered') return
    expect(exit.durationMs).toBeGreaterThan(700)
    expect(exit.durationMs).toBeLessThan(wholeMs + 500)
    await call(url, '/open')
    const types = ofStore(events).map(({ type }) => type)
    expect(types.filter((type) => type !== 'lost')).toEqual(['degraded', 'recovered'])
  })
})

describe('what is told', () => {
  test('a key that holds something else: once, and its policy decides', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const { url, events, warnings, gateway } = await startWith(sharedDocument(origin, redis.url))
    expect(await call(url, '/login', 'POST')).toBe(200)
    const keys = (await redis.command('KEYS', '*login*')) as string[]
    expect(keys).toHaveLength(1)
    for (const key of keys) {
      await redis.command('DEL', key)
      await redis.command('SADD', key, 'other')
    }
    expect(await call(url, '/login', 'POST')).toBe(503)
    expect(await call(url, '/login', 'POST')).toBe(503)
    expect(await call(url)).toBe(200)
    const cause = expect.stringContaining('WRONGTYPE')
    expect(ofStore(events)).toEqual([{ type: 'fault', policy: 'login', key: '127.0.0.1', cause }])
    const line = expect.stringMatching(
      /under a key of login, '127\.0\.0\.1', and it was decided without it: WRONGTYPE /,
    )
    expect(linesOfStore(warnings)).toEqual([line])
    expect(gateway.health).toBe('healthy')
  })

  test('a store that was emptied: with the decisions at risk', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const { url, events, warnings } = await startWith(sharedDocument(origin, redis.url))
    expect(await calls(3, [url])).toEqual({ 200: 3 })
    await redis.command('FLUSHALL')
    await until(() => ofStore(events).length === 1)
    expect(ofStore(events)).toEqual([{ type: 'lost', kind: 'flush', decisionsAtRisk: expect.any(Number) }])
    expect(linesOfStore(warnings)[0]).toMatch(
      /was emptied; \d+ decisions? (?:was|were) charged to it since it was last looked at$/,
    )
  })

  test('a process that stood still: the store is not to blame', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const { url, events, warnings, gateway } = await startWith(sharedDocument(origin, redis.url, { timeout: 200 }))
    expect(await call(url)).toBe(200)
    redis.pause()
    const answer = call(url, '/login', 'POST')
    await sleep(50)
    const end = performance.now() + 600
    while (performance.now() < end);
    redis.resume()
    expect(await answer).toBe(200)
    expect(events[0]).toEqual({ type: 'paused', pauseMs: expect.any(Number) })
    expect(warnings[0]).toMatch(/^this process stood still for about \d00 ms, longer than the timeout of the store/)
    expect(ofStore(events)).toEqual([])
    expect(gateway.health).toBe('healthy')
  })

  test('the admin port: ready while the store is gone, and how the store is', async () => {
    const { origin } = await startUpstream()
    const redis = await startRedis()
    const { gateway } = await startWith({ ...sharedDocument(origin, redis.url), admin: { port: 0 } })
    const health = async (): Promise<unknown> => {
      const { status, headers, body } = await ask(`http://127.0.0.1:${gateway.adminPort}/health`)
      expect([status, headers['content-type']]).toEqual([200, 'application/json'])
      return JSON.parse(String(body))
    }
    const address = `127.0.0.1:${redis.port}`
    expect(await health()).toEqual({ status: 'ok', store: { kind: 'redis', address, state: 'healthy' } })
    await redis.kill()
    await until(() => gateway.health !== 'healthy')
    const state = expect.stringMatching(/^(?:degraded|probing)$/)
    const since = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    const cause = expect.stringMatching(/ECONN/)
    expect(await health()).toEqual({ status: 'ok', store: { kind: 'redis', address, state, since, cause } })
    expect((await ask(`http://127.0.0.1:${gateway.adminPort}/readyz`)).status).toBe(200)
  })
})
