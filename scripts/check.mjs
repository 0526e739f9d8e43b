import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { fail, root, setup, tool } from './setup.mjs'

/** Everything that is judged without running the product. Every step runs, then the failures are named. */
setup()
build()

const packages = ['packages/catraca', 'packages/gateway']
const packed = mkdtempSync(join(tmpdir(), 'catraca-pack-'))
const steps = [
  ['types', tool('tsc'), ['-b']],
  ['lint', tool('oxlint'), ['-f', 'unix', '--deny-warnings', '.']],
  ['format', tool('biome'), ['ci', '--colors=off', '.']],
  ['unused code', tool('knip'), ['--no-progress']],
  ['size', tool('size-limit'), []],
  ...packages.flatMap((folder) => [
    [`published form of ${folder}`, tool('publint'), ['run', folder, '--strict']],
    [`pack ${folder}`, 'npm', ['pack', `./${folder}`, '--pack-destination', packed, '--silent']],
  ]),
  [
    'types as published, catraca',
    'sh',
    ['-c', `${tool('attw')} --profile esm-only --format ascii ${packed}/catraca-0*.tgz`],
  ],
  [
    'types as published, gateway',
    'sh',
    ['-c', `${tool('attw')} --profile esm-only --format ascii ${packed}/catraca-gateway-*.tgz`],
  ],
  ['acceptance', process.execPath, ['scripts/acceptance.mjs', '--last']],
]

const failed = []
for (const [name, command, args] of steps) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  })
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'} ${name}`)
  if (status !== 0 || name === 'acceptance') console.log((stdout + stderr).trimEnd())
  if (status !== 0) failed.push(name)
}
rmSync(packed, { recursive: true, force: true })
if (failed.length > 0) fail(`failed: ${failed.join(', ')}`)
