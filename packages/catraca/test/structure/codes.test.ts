import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Code, codes } from 'catraca'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const pages = join(root, 'docs/errors')
const sources = ['packages/catraca/src', 'packages/config/src', 'packages/gateway/src'].map((path) => join(root, path))
const names = Object.keys(codes).toSorted() as Code[]

/** Source texts of the packages, the map of codes itself left out. */
const texts = sources.flatMap((source) =>
  readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && name !== join('core', 'errors.ts'))
    .map((name) => readFileSync(join(source, name), 'utf8')),
)

describe('the map of codes', () => {
  test('and the pages in docs/errors hold the same set', () => {
    const found = existsSync(pages) ? readdirSync(pages).filter((name) => name.startsWith('CATRACA_')) : []
    expect(found.toSorted()).toEqual(names.map((name) => `${name}.md`))
  })

  test('and the codes named in the source hold the same set', () => {
    // Names of environment variables look alike; they are read as env['…'].
    const used = new Set(texts.flatMap((text) => text.match(/(?<!env\[)'CATRACA_[A-Z_]+'/g) ?? []))
    expect([...used].toSorted()).toEqual(names.map((name) => `'${name}'`))
  })

  test('gives every code a kind and a sentence', () => {
    for (const name of names) {
      expect(name).toMatch(/^CATRACA_[A-Z]+(?:_[A-Z]+)*$/)
      expect(['error', 'diagnosis', 'check']).toContain(codes[name].kind)
      expect(codes[name].words).toMatch(/^[a-z].{10,}[^.]$/)
    }
  })
})

describe.each(names)('docs/errors/%s.md', (name) => {
  test('is headed by its code and is no empty page', () => {
    const file = join(pages, `${name}.md`)
    expect(existsSync(file), `${file} is missing`).toBe(true)
    const text = readFileSync(file, 'utf8')
    expect(text.split('\n')[0]).toContain(name)
    expect(text.length).toBeGreaterThan(200)
  })
})
