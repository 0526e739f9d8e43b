import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformWithOxc } from 'vite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { registry } from '../../packages/catraca/src/algorithms/registry.ts'
import { problemLine, readGatewayText, readPolicyText } from '../../packages/config/src/index.ts'
import { RedisProcess } from '../../packages/gateway/src/redis-server.ts'
import { blocks } from './tables.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...markdownIn('docs'),
  ...markdownIn('docs/rules'),
  ...markdownIn('docs/guides'),
  ...markdownIn('docs/reference'),
  ...markdownIn('docs/errors'),
]
/** The design speaks of what is not built yet. */
const built = pages.filter((name) => name !== 'docs/design.md')
/** `npm run docs` sets this and writes what the tests otherwise compare. */
const update = process.env['UPDATE_DOCS'] === '1'

describe('generated parts of the pages come from runs and are current', () => {
  const pattern = /<!-- generated: (.+?) -->\n[\s\S]*?<!-- end -->/g
  const used = new Set<string>()
  for (const page of pages) {
    const text = readFileSync(join(root, page), 'utf8')
    for (const [, name = ''] of text.matchAll(pattern)) used.add(name)
    if (text.search(pattern) < 0) continue
    test(page, () => {
      const current = text.replace(pattern, (_, name: string) => {
        const block = blocks[name]
        if (block === undefined) throw new Error(`${page} asks for an unknown part: ${name}`)
        return `<!-- generated: ${name} -->\n${block()}\n<!-- end -->`
      })
      if (update) writeFileSync(join(root, page), current)
      else expect(text, 'run `npm run docs`').toBe(current)
    })
  }

  test('every part stands on a page', () => {
    expect([...used].toSorted()).toEqual(Object.keys(blocks).toSorted())
  })

  test('every rule has a page', () => {
    const named = readdirSync(join(root, 'docs/rules')).map((file) => file.replace('.md', ''))
    expect(named.filter((name) => name !== 'README').toSorted()).toEqual(Object.keys(registry).toSorted())
  })
})

describe('the code on the pages runs and prints what the page says', () => {
  let redis: RedisProcess
  beforeAll(async () => {
    redis = await RedisProcess.start()
  })
  afterAll(() => redis.stop())
  const pattern = /```ts\n([\s\S]*?)```(?:\n+```text\n([\s\S]*?)```)?/g
  for (const page of built) {
    const examples = [...readFileSync(join(root, page), 'utf8').matchAll(pattern)]
    for (const [index, [, code = '', output = '']] of examples.entries()) {
      test(`${page}, example ${index + 1}`, async () => {
        const { code: plain } = await transformWithOxc(code, 'example.ts')
        const folder = join(root, '.cache/examples')
        mkdirSync(folder, { recursive: true })
        const file = join(folder, `${page.replaceAll('/', '-')}-${index}.mjs`)
        writeFileSync(file, plain)
        const run = spawnSync(process.execPath, [file], {
          cwd: root,
          encoding: 'utf8',
          env: { ...process.env, REDIS_URL: redis.url },
        })
        expect(run.stderr).toBe('')
        expect(run.stdout).toBe(output)
      })
    }
  }
})

describe('the files on the pages can be read', () => {
  for (const page of built) {
    const examples = [...readFileSync(join(root, page), 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)]
    for (const [index, [, text = '']] of examples.entries()) {
      test(`${page}, file ${index + 1}`, () => {
        const read = /^upstreams:/m.test(text) ? readGatewayText : readPolicyText
        const problems = read(text, page, { PORT: '8080' }).problems
        // A page may show a part of a document; what it shows is at least YAML, and a whole one is right.
        const whole = /^version:/m.test(text)
        const found = problems.filter(({ code }) => whole || code.startsWith('CATRACA_FILE_'))
        expect(found.map(problemLine)).toEqual([])
      })
    }
  }
})

describe('links between pages lead somewhere', () => {
  for (const page of pages) {
    test(page, () => {
      const text = readFileSync(join(root, page), 'utf8')
      for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)) {
        expect(() => readFileSync(join(root, page, '..', target)), `${page} links to ${target}`).not.toThrow(/ENOENT/)
      }
    })
  }
})

function markdownIn(folder: string): string[] {
  return readdirSync(join(root, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${folder}/${file}`)
}
