import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
/** Under its own name the script would have to belong to the project of these tests. */
const script = new URL('../../../../scripts/layers.ts', import.meta.url).href
const { findViolations } = (await import(script)) as { findViolations: (root: string) => string[] }

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'layers-'))
  write('packages/catraca/package.json', '{ "name": "catraca", "exports": { ".": "./a.js", "./redis": "./b.js" } }')
  write('packages/lab/package.json', '{ "name": "@catraca/lab", "exports": { ".": "./a.js" } }')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

/** What is found when one file of the library holds `text`. */
function planted(file: string, text: string): string[] {
  write(`packages/catraca/src/${file}`, text)
  return findViolations(folder)
}

test('the tree keeps every arrow of DESIGN section 4', () => {
  expect(findViolations(root)).toEqual([])
})

/** Arrows in the order of the design: each room may import the rooms listed, and no other. */
const arrows: Record<string, string[]> = {
  core: [],
  algorithms: ['core'],
  resilience: ['core'],
  fields: ['core'],
  stores: ['core', 'algorithms', 'resilience', 'fields'],
  limiter: ['core', 'algorithms', 'resilience', 'fields', 'stores'],
  policy: ['core', 'algorithms', 'resilience', 'fields', 'stores', 'limiter'],
  http: ['core', 'algorithms', 'resilience', 'fields', 'stores', 'limiter', 'policy'],
  adapters: ['core', 'algorithms', 'resilience', 'fields', 'stores', 'limiter', 'policy', 'http'],
  client: ['core', 'resilience', 'fields', 'limiter', 'policy'],
  testing: ['core', 'algorithms', 'resilience', 'fields', 'stores', 'limiter', 'policy', 'http', 'client'],
}
const rooms = Object.keys(arrows)
const pairs = rooms.flatMap((from) => rooms.filter((to) => to !== from).map((to) => [from, to] as const))

describe('between the rooms of the library', () => {
  test.each(pairs)('%s → %s is kept or found, as the design says', (from, to) => {
    const found = planted(`${from}/x/a.ts`, `import { b } from '../../${to}/y/b.ts'`)
    if (arrows[from]?.includes(to)) expect(found).toEqual([])
    else {
      const why =
        to === 'testing'
          ? 'nothing imports testing'
          : `${from} may import ${[from, ...(arrows[from] ?? [])].join(', ')}`
      expect(found).toEqual([expect.stringContaining(`${from}/x/a.ts:1 imports ../../${to}/y/b.ts: ${why}`)])
    }
  })

  test.each(rooms)('%s may import itself, and not the entries above it', (room) => {
    expect(planted(`${room}/x/a.ts`, `import { b } from './b.ts'`)).toEqual([])
    expect(planted(`${room}/x/a.ts`, `import { b } from '../../index.ts'`)).toEqual([
      expect.stringContaining('not the entries'),
    ])
  })

  test('an entry shows every room but testing', () => {
    const shown = rooms.filter((room) => room !== 'testing').map((room) => `export * from './${room}/x.ts'`)
    expect(planted('index.ts', shown.join('\n'))).toEqual([])
    expect(planted('index.ts', `export * from './testing/x.ts'`)).toEqual([
      expect.stringContaining('nothing imports testing'),
    ])
  })

  test('a folder that the design does not name is found', () => {
    expect(planted('utils/a.ts', `import '../core/b.ts'`)).toEqual([expect.stringContaining('utils is not a room')])
    expect(planted('limiter/a.ts', `import '../utils/a.ts'`)).toContainEqual(expect.stringContaining('not utils'))
  })
})

describe('every form of import is seen', () => {
  test.each([
    `import { a } from '../limiter/x.ts'`,
    `import type { A } from '../limiter/x.ts'`,
    `import { type A } from '../limiter/x.ts'`,
    `import * as all from '../limiter/x.ts'`,
    `import '../limiter/x.ts'`,
    `export { a } from '../limiter/x.ts'`,
    `export type { A } from '../limiter/x.ts'`,
    `export * from '../limiter/x.ts'`,
    `export * as all from '../limiter/x.ts'`,
    `const a = () => import('../limiter/x.ts')`,
    `let a: import('../limiter/x.ts').A`,
    `type A = typeof import('../limiter/x.ts')`,
    `import a = require('../limiter/x.ts')`,
    `const a = require('../limiter/x.ts')`,
    `/// <reference path="../limiter/x.ts" />`,
  ])('%s', (text) => {
    expect(planted('core/a.ts', `\n${text}\n`)).toEqual([
      expect.stringContaining('core/a.ts:2 imports ../limiter/x.ts'),
    ])
  })

  test('a computed name is found, a text or comment that looks like an import is not', () => {
    expect(planted('core/a.ts', `export const a = (b: string) => import(b)`)).toEqual([
      expect.stringContaining('a computed name'),
    ])
    const text = '// import { a } from "../limiter/x.ts"\nexport const a = `import b from "../limiter/x.ts"`'
    expect(planted('core/a.ts', text)).toEqual([])
  })

  test('a file that cannot be parsed is found, a test beside the source is left alone', () => {
    expect(planted('core/a.ts', 'import {')).toEqual([expect.stringContaining('core/a.ts cannot be read')])
    expect(planted('core/a.ts', '')).toEqual([])
    expect(planted('core/a.test.ts', `import { test } from 'vitest'`)).toEqual([])
  })
})

describe('the library stands alone', () => {
  test.each([
    ['node:fs', 'the library runs without Node'],
    ['redis', 'the library has no dependencies'],
    ['@catraca/lab', 'the library has no dependencies'],
    ['catraca', 'the library has no dependencies'],
    ['../../../gateway/src/x.ts', 'the library imports nothing outside its own source'],
    ['../../../../scripts/x.ts', 'the library imports nothing outside its own source'],
    ['../../package.json', 'the library imports nothing outside its own source'],
  ])('%s is found', (specifier, why) => {
    for (const text of [`import '${specifier}'`, `import type { A } from '${specifier}'`]) {
      expect(planted('http/a.ts', text)).toEqual([expect.stringContaining(`imports ${specifier}: ${why}`)])
    }
  })
})

describe('an adapter may name the types of what it is for', () => {
  test.each(['fastify', 'hono', 'koa'])('%s', (name) => {
    expect(planted(`adapters/${name}.ts`, `import type { A } from '${name}'`)).toEqual([])
    const found = [expect.stringContaining(`imports ${name}: the library has no dependencies`)]
    expect(planted(`adapters/${name}.ts`, `import { A } from '${name}'`)).toEqual(found)
    expect(planted(`adapters/${name}.ts`, '')).toEqual([])
    for (const elsewhere of ['adapters/node.ts', 'http/a.ts', `${name}.ts`]) {
      expect(planted(elsewhere, `import type { A } from '${name}'`)).toEqual(found)
      planted(elsewhere, '')
    }
  })

  test('that for Nest its exception too', () => {
    expect(planted('adapters/nest.ts', `import { A } from '@nestjs/common'`)).toEqual([])
    expect(planted('adapters/koa.ts', `import { A } from '@nestjs/common'`)).toHaveLength(1)
  })
})

describe('siblings do not know each other', () => {
  test('algorithms share only bucket and ring', () => {
    expect(planted('algorithms/gcra/a.ts', `import '../bucket/b.ts'\nimport '../ring/b.ts'`)).toEqual([])
    const found = planted('algorithms/gcra/a.ts', `import '../token-bucket/b.ts'`)
    expect(found).toEqual([expect.stringContaining('gcra and token-bucket are siblings')])
  })

  test('a registry lists its folders, a folder does not know the registry', () => {
    expect(planted('algorithms/registry.ts', `import './gcra/a.ts'`)).toEqual([])
    const found = planted('algorithms/gcra/a.ts', `import '../registry.ts'`)
    expect(found).toEqual([expect.stringContaining('are siblings')])
  })

  test('adapters do not know each other, as folders or as files', () => {
    expect(planted('adapters/koa/a.ts', `import '../express/b.ts'`)).toEqual([expect.stringContaining('are siblings')])
    write('packages/catraca/src/adapters/koa/a.ts', '')
    expect(planted('adapters/koa.ts', `import './express.ts'`)).toEqual([expect.stringContaining('are siblings')])
  })
})

describe.each(['algorithms', 'resilience'])('%s holds pure synchronous steps', (room) => {
  test('no clock, no chance of its own; the type of chance may be named', () => {
    expect(planted(`${room}/a.ts`, `import { nowUs } from '../core/clock.ts'`)).toEqual([
      expect.stringContaining('no clock'),
    ])
    expect(planted(`${room}/a.ts`, `import type { T } from '../core/clock.ts'`)).toEqual([
      expect.stringContaining('no clock'),
    ])
    const chance = planted(`${room}/a.ts`, `import { type Random, seededRandom } from '../core/random.ts'`)
    expect(chance).toEqual([expect.stringContaining('no chance')])
    expect(planted(`${room}/a.ts`, `import { type Random } from '../core/random.ts'`)).toEqual([])
  })

  test.each([
    'export async function a() {}',
    'export const a = async () => {}',
    'export class A { async a() {} }',
    'export const a = { async a() {} }',
    'for await (const a of []);',
    'await 0',
  ])('%s is found', (text) => {
    expect(planted(`${room}/a.ts`, text)).toEqual([expect.stringContaining(`${room}/a.ts:1 is asynchronous`)])
  })

  test('other rooms may wait', () => {
    expect(planted('client/a.ts', 'export async function a() {}')).toEqual([])
  })
})

describe('other packages know the library by its public entries', () => {
  test.each(['packages/gateway', 'packages/lab', 'packages/config', 'apps/console'])('%s', (folderOf) => {
    const found = (text: string): string[] => {
      write(`${folderOf}/src/deep/a.ts`, text)
      return findViolations(folder)
    }
    expect(
      found(`import 'catraca'\nimport 'catraca/redis'\nimport '@catraca/lab'\nimport 'node:fs'\nimport 'zod'`),
    ).toEqual([])
    expect(found(`import '../b.ts'\nimport '../../package.json'`)).toEqual([])
    for (const specifier of [
      'catraca/src/core/clock.ts',
      'catraca/dist/index.js',
      'catraca/nope',
      '@catraca/lab/src/a.ts',
    ]) {
      expect(found(`import type { A } from '${specifier}'`)).toEqual([
        expect.stringContaining('is not a public entry of'),
      ])
    }
    for (const specifier of ['../../../../packages/catraca/src/index.ts', '/elsewhere/packages/catraca/src/index.ts']) {
      expect(found(`import '${specifier}'`)).toEqual([expect.stringContaining('other packages are imported by name')])
    }
  })
})
