import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

test('five million unique keys stay within the bound, and keys over their limit stay refused', {
  timeout: 300_000,
}, () => {
  const script = fileURLToPath(new URL('./flood.case.mjs', import.meta.url))
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--expose-gc', script, '5000000'], {
    encoding: 'utf8',
  })
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  const { mostKeys, residentMB, stillRefused, evicted, evictedLimited } = JSON.parse(stdout)
  expect(mostKeys).toBeLessThanOrEqual(1_000_000)
  expect(evicted).toBeGreaterThan(3_900_000)
  expect({ stillRefused, evictedLimited }).toEqual({ stillRefused: 1_000, evictedLimited: 0 })
  // A million keys of about 80 bytes, as much again that is forgotten and not yet collected, and the young generation.
  expect(residentMB).toBeLessThan(400)
})
