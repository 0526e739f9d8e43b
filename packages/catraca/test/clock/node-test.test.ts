import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('node-test.case.mjs', import.meta.url))
const built = fileURLToPath(new URL('../../dist/index.js', import.meta.url))

test('the built library follows mock.timers of node:test', () => {
  expect(existsSync(built), `${built} is missing: build first, with npm run build or npm test`).toBe(true)
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--test', '--test-reporter=tap', script], {
    encoding: 'utf8',
    // A runner inside another one would report to it instead of to us.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_OPTIONS: '' },
  })
  expect(status, `${stdout}${stderr}`).toBe(0)
  expect(stdout).toMatch(/^# pass 3$/m)
  expect(stdout).toMatch(/^# fail 0$/m)
})
