import { expect, test } from 'vitest'
import { Restarts } from './restarts.ts'

test('at once, then after 1 s, twice as long each time, at most 30 s', () => {
  const restarts = new Restarts()
  const waits = Array.from({ length: 8 }, () => restarts.nextMs(29_999))
  expect(waits).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
})

test('one that worked for 30 s is started again at once', () => {
  const restarts = new Restarts()
  restarts.nextMs(0)
  restarts.nextMs(0)
  expect(restarts.nextMs(30_000)).toBe(0)
  expect(restarts.nextMs(0)).toBe(1_000)
})
