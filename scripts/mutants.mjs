import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { plant } from './mutant-plugin.mjs'
import { mutants } from './mutants.data.mjs'
import { fail, root, setup, setupRedis, tool } from './setup.mjs'

/** Plants each defect in turn and runs the library's tests, which must fail. `--only TEXT` takes those whose name holds it. */
setup()
build()
await setupRedis()
const only = process.argv[process.argv.indexOf('--only') + 1]
const chosen = process.argv.includes('--only') ? mutants.filter(({ name }) => name.includes(only)) : mutants
if (chosen.length === 0) fail(`no mutant is named like ${JSON.stringify(only)}`)
for (const mutant of chosen) plant(readFileSync(join(root, mutant.file), 'utf8'), mutant)

console.log('first without a defect: the tests must pass')
if (await testsFail('')) fail('the tests fail without a planted defect, so they prove nothing about one')

const survivors = []
for (const [index, { name }] of chosen.entries()) {
  const started = Date.now()
  const killed = await testsFail(name)
  if (!killed) survivors.push(name)
  const seconds = ((Date.now() - started) / 1_000).toFixed(0)
  console.log(
    `${String(index + 1).padStart(2)}/${chosen.length} ${killed ? 'caught  ' : 'SURVIVED'} ${name} (${seconds} s)`,
  )
}
console.log(`${chosen.length - survivors.length} of ${chosen.length} planted defects caught`)
if (survivors.length > 0) fail(`the suite does not notice: ${survivors.join('; ')}`)

/** True when tests ran and one failed; a run that could not start is an error, not a catch. */
function testsFail(name) {
  return new Promise((resolve) => {
    const env = { ...process.env, CATRACA_MUTANT: name, NO_COLOR: '1' }
    // What runs on the built files cannot see the defect.
    // The test of the script's hash would see a defect in it that decides nothing wrong.
    const excluded = ['flood', 'script', 'drills/*'].flatMap((test) => ['--exclude', `**/${test}.test.ts`])
    const args = ['run', 'packages/catraca', '--bail', '1', '--reporter', 'dot', ...excluded]
    const child = spawn(tool('vitest'), args, { cwd: root, env })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('close', (code) => {
      const failed = /Tests\s+\d+ failed/.test(output)
      if (code !== 0 && !failed) fail(`the tests could not run with "${name}" planted:\n${output.slice(-2_000)}`)
      resolve(failed)
    })
  })
}
