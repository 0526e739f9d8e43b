import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as library from 'catraca'
import { describe, expect, test, vi } from 'vitest'

const folder = new URL('../../', import.meta.url)
const { exports: entries, dependencies } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8')) as {
  exports: Record<string, string | { default: string }>
  dependencies?: unknown
}
const files = Object.values(entries).flatMap((entry) => (typeof entry === 'string' ? [] : [entry.default]))

/** Values that each entry shows. A new name is added here on purpose; a name that goes is a breaking change. */
const shown: Record<string, string[]> = {
  './dist/index.js': [
    'CatracaError',
    'byteGroup',
    'codes',
    'concurrency',
    'createLimiter',
    'fixedWindow',
    'gcra',
    'isCatracaError',
    'leakyMeter',
    'leakyQueue',
    'memoryStore',
    'quota',
    'shape',
    'slidingCounter',
    'slidingLog',
    'tokenBucket',
  ],
  './dist/policy.js': [
    'allowedWords',
    'boundsOf',
    'budgetOf',
    'candidateWords',
    'documentShape',
    'durationMs',
    'findingsOf',
    'isObject',
    'leaseBounds',
    'normalPath',
    'overflowWords',
    'parseRoute',
    'placeText',
    'policyProblems',
    'policySchema',
    'problemError',
    'problemsOf',
    'readPolicies',
    'ruleWords',
    'schemaOf',
    'shareOf',
    'splitWords',
    'unknownName',
  ],
  './dist/http.js': [
    'Trust',
    'canonicalAddress',
    'createGuard',
    'isPubliclyCacheable',
    'limitFieldNames',
    'listFieldNames',
    'memoryCache',
    'memoryJobs',
    'statusAnswer',
  ],
  './dist/node.js': ['hasBody', 'leavingOf', 'rateLimit', 'spareUnreadBody'],
  './dist/express.js': ['rateLimit'],
  './dist/fastify.js': ['rateLimit'],
  './dist/hono.js': ['rateLimit'],
  './dist/koa.js': ['rateLimit'],
  './dist/nest.js': ['RateLimit', 'SkipRateLimit', 'rateLimit'],
  './dist/fetch.js': ['rateLimit'],
  './dist/redis.js': ['redisStore'],
  './dist/workers.js': ['Restarts', 'channelOf', 'primaryStore', 'workerStore'],
  './dist/testing.js': [
    'adapterSuite',
    'bypassVectors',
    'cacheSuite',
    'fakeClock',
    'faultyStore',
    'jobsSuite',
    'leaseCases',
    'routeBypassSuite',
    'ruleSuite',
    'searchLeases',
    'seededRandom',
    'storeSuite',
  ],
}

const load = async (file: string): Promise<Record<string, unknown>> => {
  const url = new URL(file, folder)
  expect(existsSync(fileURLToPath(url)), `${file} is missing: build first, with npm run build or npm test`).toBe(true)
  return (await import(/* @vite-ignore */ url.href)) as Record<string, unknown>
}

describe('public entries', () => {
  test('catraca shows exactly these names from the source', () => {
    expect(Object.keys(library).toSorted()).toEqual(shown['./dist/index.js'])
  })

  test('every entry is listed here', () => {
    expect(files.toSorted()).toEqual(Object.keys(shown).toSorted())
  })

  test.each(files)('%s shows exactly these names as built', async (file) => {
    expect(Object.keys(await load(file)).toSorted()).toEqual(shown[file])
  })

  test('the library has no dependencies', () => {
    expect(dependencies ?? {}).toEqual({})
  })
})

describe('CatracaError', () => {
  test('is one object across all built entries that show it', async () => {
    const classes = (await Promise.all(files.map(load))).flatMap((entry) => entry['CatracaError'] ?? [])
    expect(new Set(classes).size).toBe(1)
  })

  test('is the class of what every part of the library throws', () => {
    const { CatracaError, createLimiter, fixedWindow, memoryStore } = library
    const wrong = 0 as never
    const calls = [
      () => fixedWindow(wrong),
      () => memoryStore(wrong),
      () => createLimiter(wrong),
      () => createLimiter(fixedWindow({ limit: 1, window: '1s' })).take(wrong),
    ]
    for (const call of calls) expect(call).toThrow(CatracaError)
  })

  test('of another copy of the library is recognised by isCatracaError, not by instanceof', async () => {
    vi.resetModules()
    const other = await import('catraca')
    const error = new other.CatracaError('CATRACA_COST_INVALID', 'from the copy')
    expect(other.CatracaError).not.toBe(library.CatracaError)
    expect(error instanceof library.CatracaError).toBe(false)
    expect(library.isCatracaError(error)).toBe(true)
    for (const value of [null, undefined, 'x', {}, new Error('plain')])
      expect(library.isCatracaError(value)).toBe(false)
  })

  test('is an Error with code, help, path, value and cause', () => {
    const cause = new Error('cause')
    const error = new library.CatracaError('CATRACA_COST_INVALID', 'cost is 0', { path: 'cost', value: 0, cause })
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({
      name: 'CatracaError',
      code: 'CATRACA_COST_INVALID',
      help: 'docs/errors/CATRACA_COST_INVALID.md',
      message: 'cost is 0 [CATRACA_COST_INVALID]',
      path: 'cost',
      value: 0,
      cause,
    })
    expect(Object.keys(error)).not.toContain('stack')
  })
})
