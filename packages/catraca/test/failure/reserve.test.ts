import { tokenBucket } from 'catraca'
import { expect, test } from 'vitest'
import { frozen } from '../lease/setup.ts'
import { Instance } from './faulty-store.ts'

frozen()

const hour = 3_600_000_000
/** Of two instances each has a burst of 1 and 5 per second, and admits two over all keys in an hour. */
const lost = async (): Promise<Instance> => {
  const rule = tokenBucket({ limit: 10, window: '1s', burst: 2 })
  const instance = new Instance([['p', rule, 'local']], {
    expectedInstances: 2,
    ceiling: { limit: 4, windowUs: hour },
  })
  instance.store.nextFaults.push('refuses')
  instance.store.fault = 'gone'
  await instance.ledger.apply([0], ['lost first'], undefined, [1], false)
  return instance
}

test('what is reserved without the store counts under the ceiling, and what is refused does not', async () => {
  const { ledger } = await lost()
  const reserve = (maxWaitUs: number) => ledger.reserve(0, 'k', undefined, 1, maxWaitUs)
  expect(await reserve(hour)).toMatchObject({ allowed: true, delayMs: 0, degraded: true })
  expect(await reserve(199_999)).toMatchObject({ allowed: false, reason: 'limited', retryAfterMs: 200, degraded: true })
  const second = await reserve(200_000)
  expect(second).toMatchObject({ allowed: true, delayMs: 200, charged: 1, degraded: true })
  expect(await reserve(hour)).toMatchObject({ allowed: false, reason: 'ceiling', charged: 0, degraded: true })
  // Given back, it makes room under the ceiling too.
  expect(await ledger.refund(second, 1)).toBe(1)
  expect(await reserve(hour)).toMatchObject({ allowed: true, delayMs: 200 })
})

test('settle of a decision made without the store is made here', async () => {
  const { ledger, store } = await lost()
  const decision = await ledger.reserve(0, 'k', undefined, 1, 0)
  store.sent.length = 0
  expect(await ledger.settle(decision, 5)).toBe(-1)
  expect((await ledger.apply([0], ['k'], undefined, [1], false)).retryAfterMs).toBe(400)
  expect(store.sent).toEqual([])
})
