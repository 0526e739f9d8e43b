import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLimiter, fixedWindow } from 'catraca'
import { array, assert, integer, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import type * as Hash from '../../src/core/sha256.ts'

/** The hash is no public entry; a literal path into another project is an error of the compiler. */
const hashFile = new URL('../../src/core/sha256.ts', import.meta.url).href
const { sha256 } = (await import(hashFile)) as typeof Hash

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes that stay on the heap after `run`, while what it returns is alive. */
function kept(run: () => unknown): number {
  collect()
  const before = process.memoryUsage().heapUsed
  const alive = run()
  collect()
  const after = process.memoryUsage().heapUsed
  expect(alive).toBeDefined()
  return after - before
}

/** Texts cut from buffers of half a megabyte each, 100 MB in all. */
function cuts(): string[] {
  return Array.from({ length: 200 }, (_, index) => {
    const large = Buffer.alloc(500_000, String.fromCharCode(97 + (index % 26))).toString('latin1')
    return large.slice(index, index + 60 + (index % 60))
  })
}

describe('keys cut from large texts', () => {
  test('do not keep them alive: keys', () => {
    const bytes = kept(() => {
      const limiter = createLimiter(fixedWindow({ limit: 5, window: '1h' }))
      for (const key of cuts()) limiter.take(key)
      return limiter
    })
    expect(bytes).toBeLessThan(5_000_000)
  })

  test('do not keep them alive: blocked keys', () => {
    const bytes = kept(() => {
      const limiter = createLimiter(fixedWindow({ limit: 5, window: '1h' }))
      for (const key of cuts()) limiter.block(key, '1h')
      return limiter
    })
    expect(bytes).toBeLessThan(5_000_000)
  })

  test('do not keep them alive: keys of a stack with more than 1024 others', () => {
    const bytes = kept(() => {
      const rule = fixedWindow({ limit: 5, window: '1h' })
      const limiter = createLimiter({ a: rule, b: rule })
      for (let index = 0; index < 1_100; index++) limiter.take({ a: `a:${index}`, b: `b:${index}` })
      for (const key of cuts()) limiter.take({ a: key, b: key })
      return limiter
    })
    expect(bytes).toBeLessThan(5_000_000)
  })

  test('the measure sees what is kept', () => {
    expect(kept(cuts)).toBeGreaterThan(50_000_000)
  })
})

describe('sha256', () => {
  const reference = (text: string): string => {
    const bytes = Buffer.alloc(text.length * 2)
    for (let index = 0; index < text.length; index++) bytes.writeUInt16BE(text.charCodeAt(index), index * 2)
    return createHash('sha256').update(bytes).digest('hex')
  }

  test('equals the hash of node:crypto over the UTF-16 units, on random texts with lone surrogates', () => {
    const units = array(integer({ min: 0, max: 0xffff }), { maxLength: 400 })
    assert(
      property(units, (codes) => {
        const text = String.fromCharCode(...codes)
        expect(sha256(text)).toBe(reference(text))
      }),
      { numRuns: 1_000, seed: 20_270_101 },
    )
  })

  test('equals it at every length around the blocks, and for a megabyte', () => {
    const texts = Array.from({ length: 201 }, (_, length) => 'é'.repeat(length))
    for (const text of texts) expect(sha256(text)).toBe(reference(text))
    const long = 'abcdefghij'.repeat(100_000)
    expect(sha256(long)).toBe(reference(long))
  })

  test('gives the printed value of the empty text', () => {
    expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  })
})
