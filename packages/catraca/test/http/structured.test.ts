import * as fc from 'fast-check'
import { parseItem, parseList } from 'structured-headers'
import { describe, expect, test } from 'vitest'
import type * as Structured from '../../src/fields/structured.ts'

/** A literal path into another project is an error of the compiler. */
const structuredFile = new URL('../../src/fields/structured.ts', import.meta.url).href
const { item, list, maxInteger } = (await import(structuredFile)) as typeof Structured

const text = fc.string({
  unit: fc.integer({ min: 32, max: 126 }).map((code) => String.fromCharCode(code)),
  maxLength: 12,
})
const integer = fc.oneof(fc.integer(), fc.constantFrom(0, maxInteger, -maxInteger))
const bytes = fc.uint8Array({ maxLength: 7 })
const bare = fc.oneof(text, integer, bytes)

/** The parser of the package gives bytes as an ArrayBuffer. */
function plain(value: unknown): unknown {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : value
}

describe('structured fields', () => {
  test('another parser reads back what was written', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(bare, bare, fc.option(bare, { nil: undefined })), { minLength: 1, maxLength: 3 }),
        (items) => {
          const written = items.map(([value, a, b]) => item(value, { a, 'b-1.*_': b }))
          const read = parseList(list(written)).map(([value, parameters]) => [
            plain(value),
            plain(parameters.get('a')),
            plain(parameters.get('b-1.*_')),
          ])
          expect(read).toEqual(items)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test.each([
    ['a', {}, '"a"'],
    ['say "a\\b"', {}, '"say \\"a\\\\b\\""'],
    [-0, {}, '0'],
    [new Uint8Array([0]), {}, ':AA==:'],
    [new Uint8Array([255, 254]), {}, '://4=:'],
    [new Uint8Array([1, 2, 3]), {}, ':AQID:'],
    ['a', { q: 1, w: undefined, qu: 'x' }, '"a";q=1;qu="x"'],
  ])('%j with %j is %s', (value, parameters, written) => {
    expect(item(value, parameters)).toBe(written)
    expect(() => parseItem(written)).not.toThrow()
  })

  test.each<[Structured.BareItem, Record<string, Structured.BareItem>]>([
    ['é', {}],
    ['a\n', {}],
    [maxInteger + 1, {}],
    [1.5, {}],
    [Number.NaN, {}],
    ['a', { Q: 1 }],
    ['a', { '1q': 1 }],
    ['a', { '': 1 }],
    ['a', { q: Infinity }],
  ])('%j with %j cannot be written', (value, parameters) => {
    expect(() => item(value, parameters)).toThrow(expect.objectContaining({ code: 'CATRACA_OPTION_INVALID' }))
  })
})
