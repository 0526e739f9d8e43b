import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('a worker of a cluster that counts in its own memory is told, once per limit', async () => {
  const file = fileURLToPath(new URL('cluster.case.mjs', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [file])
  expect(stdout.trim().split('\n').toSorted()).toEqual([
    'primary nothing',
    'worker CATRACA_MEMORY_IN_CLUSTER CATRACA_MEMORY_IN_CLUSTER',
  ])
})
