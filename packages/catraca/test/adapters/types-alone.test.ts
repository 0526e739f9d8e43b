import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const library = fileURLToPath(new URL('../../', import.meta.url))
const tsc = fileURLToPath(new URL('../../../../node_modules/.bin/tsc', import.meta.url))
/** A project outside, where nothing is installed but the library as it is published. */
const folder = mkdtempSync(join(tmpdir(), 'types-alone-'))
const installed = join(folder, 'node_modules/catraca')
mkdirSync(installed, { recursive: true })
cpSync(join(library, 'package.json'), join(installed, 'package.json'))
cpSync(join(library, 'dist/types'), join(installed, 'dist/types'), { recursive: true })
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function compile(entries: readonly string[], lib = ['es2023', 'esnext.disposable']): string {
  const lines = entries.map((entry, index) => `export * as e${index} from '${entry}'`)
  writeFileSync(join(folder, 'index.ts'), lines.join('\n'))
  const compilerOptions = { strict: true, noEmit: true, module: 'nodenext', target: 'es2023', lib, types: [] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['index.ts'] }))
  return spawnSync(tsc, ['-p', folder], { encoding: 'utf8' }).stdout
}

test('entries that name no framework need no types but those of the language', () => {
  const entries = ['', '/express', '/fetch', '/http', '/node', '/policy', '/redis', '/testing', '/workers']
  expect(compile(entries.map((entry) => `catraca${entry}`))).toBe('')
})

test('an entry of a framework asks for the types of that one', () => {
  for (const name of ['fastify', 'hono', 'koa']) expect(compile([`catraca/${name}`])).toContain(`'${name}'`)
})
