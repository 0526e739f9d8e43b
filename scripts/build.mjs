import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root, run, say, setup, tool, writeStamp } from './setup.mjs'

const stampFile = join(root, '.cache/build')
const outputs = [
  'packages/catraca/dist/index.js',
  'packages/catraca/dist/http.js',
  'packages/config/dist/index.js',
  'packages/gateway/dist/cli/main.js',
]

/** Types by tsc, the library by vite. Does nothing when no source changed since the last build. */
export function build() {
  const state = fingerprint()
  const built = outputs.every((file) => existsSync(join(root, file)))
  if (built && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === state) return
  say('building')
  run(tool('tsc'), [
    '-b',
    'packages/catraca',
    'packages/catraca/tsconfig.frameworks.json',
    'packages/config',
    'packages/gateway',
  ])
  clean()
  run(tool('vite'), ['build', '--logLevel', 'warn'], { cwd: join(root, 'packages/catraca') })
  writeStamp(stampFile, state)
}

/** Removes the JavaScript of earlier builds, whose chunks have other names; the types beside it stay. */
function clean() {
  const folder = join(root, 'packages/catraca/dist')
  for (const file of readdirSync(folder)) if (file.endsWith('.js')) rmSync(join(folder, file))
}

/** One hash over every file a build reads. */
function fingerprint() {
  const hash = createHash('sha256')
  const files = ['package-lock.json', 'tsconfig.base.json']
  for (const name of readdirSync(join(root, 'packages'))) {
    files.push(`packages/${name}/package.json`, `packages/${name}/tsconfig.json`, `packages/${name}/vite.config.ts`)
    for (const file of readdirSync(join(root, 'packages', name, 'src'), { recursive: true, encoding: 'utf8' })) {
      if (file.endsWith('.ts')) files.push(`packages/${name}/src/${file}`)
    }
  }
  for (const file of files.toSorted()) {
    if (existsSync(join(root, file))) hash.update(file).update(readFileSync(join(root, file)))
  }
  return hash.digest('hex')
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  setup()
  build()
}
