import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { designDocument } from '../../catraca/test/guard/documents.ts'
import { schemas } from '../src/index.ts'
import { Source } from '../src/source.ts'
import { badFiles } from './bad-files.ts'

const folder = fileURLToPath(new URL('../schema/', import.meta.url))
const presets = fileURLToPath(new URL('../../gateway/presets/', import.meta.url))
/** `npm run docs` sets this and writes what the tests otherwise compare. */
const update = process.env['UPDATE_DOCS'] === '1'

function compiled(name: string): ValidateFunction {
  return new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true }).compile(schemas()[name] as object)
}

describe('the files in schema/', () => {
  for (const [name, schema] of Object.entries(schemas())) {
    test(`${name} is current`, () => {
      const file = `${folder}${name}`
      if (update) {
        writeFileSync(file, JSON.stringify(schema))
        const biome = fileURLToPath(new URL('../../../node_modules/.bin/biome', import.meta.url))
        expect(spawnSync(biome, ['format', '--write', file]).status).toBe(0)
      }
      // The form is that of the formatter, which is checked elsewhere.
      const written: unknown = JSON.parse(readFileSync(file, 'utf8'))
      expect(JSON.stringify(written), 'run `npm run docs`').toBe(JSON.stringify(schema))
    })
  }

  test('no others are there', () => {
    expect(readdirSync(folder).toSorted()).toEqual(Object.keys(schemas()).toSorted())
  })
})

describe('ajv', () => {
  const policy = compiled('policy.json')
  const gateway = compiled('gateway.json')

  test('accepts the design document', () => {
    policy(designDocument)
    expect(policy.errors ?? []).toEqual([])
    gateway({ ...designDocument, upstreams: { app: 'http://127.0.0.1:3000' } })
    expect(gateway.errors ?? []).toEqual([])
  })

  for (const file of readdirSync(presets)) {
    test(`accepts ${file}`, () => {
      gateway(new Source(readFileSync(`${presets}${file}`, 'utf8'), {}).value)
      expect(gateway.errors ?? []).toEqual([])
    })
  }

  for (const { name, text } of badFiles.filter(({ shape }) => shape === true)) {
    test(`refuses: ${name}`, () => expect(gateway(parse(text))).toBe(false))
  }

  for (const { name, text } of badFiles.filter(({ shape }) => shape === false)) {
    // What a schema cannot say is left to the checker, and a file that is right but for that has no red lines.
    test(`leaves to the checker: ${name}`, () => {
      gateway(parse(text))
      expect(gateway.errors ?? []).toEqual([])
    })
  }
})
