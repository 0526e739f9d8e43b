import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RemoteStore } from 'catraca'
import { rateLimit } from 'catraca/node'
import { faultyStore } from 'catraca/testing'
import { expect, onTestFinished, test } from 'vitest'

/** A server with one limit over a store that others share. */
async function start(store: RemoteStore, more: object = {}): Promise<() => Promise<number>> {
  const limit = rateLimit({
    limit: 4,
    window: '1h',
    algorithm: 'token-bucket',
    name: 'api',
    store,
    storeFailure: { expectedInstances: 2 },
    ...more,
  })
  const server = createServer(limit((_, response) => response.end('ok')))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return async () => {
    const response = await fetch(url)
    await response.arrayBuffer()
    return response.status
  }
}

test('one limit over a store that instances share is one budget, and each has its part while the store is gone', async () => {
  const store = faultyStore()
  onTestFinished(() => store.close())
  const [one, other] = [await start(store), await start(store.sibling())]
  const statuses = [await one(), await other(), await one(), await other(), await one(), await other()]
  expect(statuses).toEqual([200, 200, 200, 200, 429, 429])

  const lost = faultyStore({ faults: { gone: 1 } })
  onTestFinished(() => lost.close())
  const alone = await start(lost)
  expect([await alone(), await alone(), await alone()]).toEqual([200, 200, 429])
  const closed = faultyStore({ faults: { gone: 1 } })
  onTestFinished(() => closed.close())
  expect(await (await start(closed, { onStoreFailure: 'closed' }))()).toBe(503)
})

test('what is charged comes back by what the request really cost', async () => {
  const store = faultyStore()
  onTestFinished(() => store.close())
  const ask = await start(store, { settle: () => 0 })
  for (let count = 0; count < 9; count++) expect(await ask()).toBe(200)
})

test('what needs a shared store is refused without one, and other words are named', () => {
  const wrong = (more: object) => () => rateLimit({ limit: 1, window: '1m', ...more })
  expect(wrong({ onStoreFailure: 'closed' })).toThrow(
    'options.onStoreFailure is "closed"; allowed: only with a remote store',
  )
  expect(wrong({ overflow: ['mark'] })).toThrow(/options.overflow is unknown; allowed: .*\bsettle\b/)
  expect(wrong({ store: faultyStore(), storeFailure: { expectedInstances: 0 } })).toThrow(
    'options.storeFailure.expectedInstances',
  )
})
