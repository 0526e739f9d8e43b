import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type * as LanguageModule from '../../src/http/language.ts'

/** A literal path into another project is an error of the compiler. */
const languageFile = new URL('../../src/http/language.ts', import.meta.url).href
const { languageFor } = (await import(languageFile)) as typeof LanguageModule

describe('the language of Accept-Language', () => {
  test.each([
    [undefined, 'en'],
    ['', 'en'],
    ['pt', 'pt'],
    ['pt-BR', 'pt'],
    ['PT-br', 'pt'],
    ['pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7', 'pt'],
    ['en-US,en;q=0.9,pt;q=0.8', 'en'],
    ['en;q=0.5, pt;q=0.6', 'pt'],
    ['en;q=0.5, pt;q=0.5', 'en'],
    ['pt;q=0.5, en;q=0.5', 'pt'],
    ['pt, en', 'pt'],
    ['en, pt', 'en'],
    ['fr, pt;q=0.1', 'pt'],
    ['fr', 'en'],
    ['*', 'en'],
    ['*;q=0.5, pt;q=0.4', 'en'],
    ['*;q=0.5, pt;q=0.5', 'pt'],
    ['en;q=0, *', 'pt'],
    ['en;q=0', 'en'],
    ['pt;q=0, *;q=0.1', 'en'],
    ['*;q=0', 'en'],
    ['pt-PT;q=0.1, en;q=0.5, pt-BR;q=0.9', 'pt'],
    ['pt-BR;q=0.9, en;q=0.5, pt-PT;q=0.1', 'pt'],
    [' pt ; q = 1.000 ', 'pt'],
    ['pt;Q=1', 'pt'],
    // Not what the grammar has: passed over, each by itself.
    ['pt;q=2', 'en'],
    ['pt;q=-1', 'en'],
    ['pt;q=0.1234', 'en'],
    ['pt;q=', 'en'],
    ['pt;q', 'en'],
    ['pt;level=1', 'en'],
    ['pt;q=1;q=1', 'en'],
    ['pt_BR', 'en'],
    ['português', 'en'],
    [';;;,pt', 'pt'],
    ['pt;q=x, en;q=0.1', 'en'],
    ['\u0000, , =', 'en'],
    [`${'fr,'.repeat(31)}pt`, 'pt'],
    [`${'fr,'.repeat(32)}pt`, 'en'],
  ] as const)('%j is %s', (text, language) => {
    expect(languageFor(text, 'en')).toBe(language)
  })

  test.each([
    [undefined, 'pt'],
    ['fr', 'pt'],
    ['*', 'pt'],
    ['en', 'en'],
    ['pt;q=0.5, en;q=0.5', 'pt'],
    ['en;q=0.5, pt;q=0.5', 'en'],
    ['en;q=0, pt;q=0', 'pt'],
    ['nonsense;q=x', 'pt'],
  ] as const)('%j is %s where the default is Portuguese', (text, language) => {
    expect(languageFor(text, 'pt')).toBe(language)
  })

  test('any text gives a language', () => {
    const pieces = fc.constantFrom('pt', 'en', '*', '-', ';', ',', 'q', '=', '0', '.5', '1', ' ', 'BR', 'é', '\n')
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(pieces).map((list) => list.join('')),
        ),
        (text) => {
          expect(['en', 'pt']).toContain(languageFor(text, 'en'))
        },
      ),
    )
  })
})
