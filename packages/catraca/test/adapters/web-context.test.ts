import { adapterSuite } from 'catraca/testing'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { fetchDriver } from './drivers/fetch.ts'
import { insideWeb } from './drivers/web-context.ts'

const inside = await insideWeb()

// A settle that fails on purpose is told there.
beforeAll(() => void vi.spyOn(console, 'error').mockImplementation(() => {}))
afterAll(() => void vi.restoreAllMocks())

test('the context has the web and nothing else', () => {
  for (const name of ['process', 'Buffer', 'require', 'global', 'setImmediate', 'module']) {
    expect(inside.typeOf(name), name).toBe('undefined')
  }
  for (const name of ['Request', 'ReadableStream', 'crypto', 'performance']) {
    expect(inside.typeOf(name), name).not.toBe('undefined')
  }
})

adapterSuite(test, { ...fetchDriver(inside.rateLimit), createGuard: inside.createGuard })

test('a settle that fails is told on the console', () => {
  const words = vi.mocked(console.error).mock.calls.map(([error]) => String(error))
  // Twice for each of five mistakes.
  expect(words.filter((text) => /settle/.test(text))).toHaveLength(10)
})
