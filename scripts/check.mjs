import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { fail, root, setup, tool } from './setup.mjs'

/** Everything that is judged without running the product. Every step runs, then the failures are named. */
setup()
build()

const packages = ['packages/catraca', 'packages/config', 'packages/gateway']
const typeTests = 'packages/catraca/test/types/typecheck.tsconfig.json'
const attw = `${tool('attw')} --profile esm-only --format ascii`
const packed = mkdtempSync(join(tmpdir(), 'catraca-pack-'))
const step = (name, command, ...args) => ({ name, command, args })
const steps = [
  step('types', tool('tsc'), '-b'),
  step(
    'type tests',
    tool('vitest'),
    'run',
    '--typecheck.only',
    '--typecheck.tsconfig',
    typeTests,
    '--reporter',
    'default',
  ),
  step('lint', tool('oxlint'), '-f', 'unix', '--deny-warnings', '.'),
  step('format', tool('biome'), 'ci', '--colors=off', '.'),
  step('unused code', tool('knip'), '--no-progress'),
  step('size', tool('size-limit')),
  ...packages.flatMap((folder) => [
    step(`published form of ${folder}`, tool('publint'), 'run', folder, '--strict'),
    step(`pack ${folder}`, 'npm', 'pack', `./${folder}`, '--pack-destination', packed, '--silent'),
  ]),
  step('types as published, catraca', 'sh', '-c', `${attw} ${packed}/catraca-0*.tgz`),
  step('types as published, config', 'sh', '-c', `${attw} ${packed}/catraca-config-*.tgz`),
  step('types as published, gateway', 'sh', '-c', `${attw} ${packed}/catraca-gateway-*.tgz`),
  step('acceptance', process.execPath, 'scripts/acceptance.mjs', '--last'),
]

const failed = []
for (const { name, command, args } of steps) {
  const env = { ...process.env, NO_COLOR: '1' }
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8', env })
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'} ${name}`)
  if (status !== 0 || name === 'acceptance') console.log([stdout, stderr].join('').trimEnd())
  if (status !== 0) failed.push(name)
}
rmSync(packed, { recursive: true, force: true })
if (failed.length > 0) fail(`failed: ${failed.join(', ')}`)
