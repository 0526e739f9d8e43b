import { expect, test, vi } from 'vitest'
import { run } from '../command.ts'

vi.setConfig({ testTimeout: 60_000 })

test('six edges hold blocks of 20 of limits of 1000: what they admit is within the bounds that are printed', async () => {
  const drill = run('drill', 'lease', '--edges', '6', '--json')
  expect(await drill.exit).toBe(0)
  const result = JSON.parse(drill.out()) as {
    asked: number
    calls: number
    verdicts: { policy: string; admitted: number; atLeast: number; atMost: number; good: boolean }[]
  }
  expect(result.asked).toBe(1_500)
  expect(result.verdicts.map(({ policy, atLeast, atMost, good }) => ({ policy, atLeast, atMost, good }))).toEqual([
    { policy: 'sliding-log', atLeast: 870, atMost: 1_156, good: true },
    { policy: 'fixed-window', atLeast: 870, atMost: 1_000, good: true },
  ])
  for (const { admitted, atLeast, atMost } of result.verdicts) {
    expect(admitted).toBeGreaterThanOrEqual(atLeast)
    expect(admitted).toBeLessThanOrEqual(atMost)
  }
  // Exact, each of the 3000 requests takes a trip.
  expect(result.calls).toBeLessThan(1_500)
})

test('a number of edges that is not allowed is named', async () => {
  const drill = run('drill', 'lease', '--edges', '17')
  expect(await drill.exit).not.toBe(0)
  expect(drill.err()).toContain('Allowed: whole numbers from 1 to 16.')
})
