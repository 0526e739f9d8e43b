import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createLimiter, fixedWindow, memoryStore, tokenBucket } from '../../dist/index.js'

/** Run by node-test.test.ts as a process of its own, against the library as it is published. */
void test('under mock.timers of node:test a limiter without a given time follows them', () => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_800_000_000_000 })
  const limiter = createLimiter(tokenBucket({ limit: 2, window: '1s' }))
  assert.equal(limiter.take('k', { cost: 2 }).allowed, true)
  assert.equal(limiter.take('k').retryAfterMs, 500)
  mock.timers.tick(499)
  assert.equal(limiter.take('k').retryAfterMs, 1)
  mock.timers.tick(1)
  assert.equal(limiter.take('k').allowed, true)
  mock.timers.setTime(1_900_000_000_000)
  assert.equal(limiter.take('k', { cost: 2 }).allowed, true)
  mock.timers.reset()
})

void test('keys that ended leave memory by the mocked time', () => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_800_000_000_000 })
  const store = memoryStore()
  const limiter = createLimiter(fixedWindow({ limit: 2, window: '1s' }), { store })
  for (let index = 0; index < 100; index++) limiter.take(`key:${index}`)
  assert.equal(store.stats().keys, 100)
  for (let second = 0; second < 120; second++) mock.timers.tick(1_000)
  assert.equal(store.stats().keys, 0)
  mock.timers.reset()
})

void test('after reset the real time counts again', () => {
  const limiter = createLimiter(fixedWindow({ limit: 1, window: '1d', anchor: 'first' }))
  mock.timers.enable({ apis: ['Date'], now: 1_000 })
  limiter.take('k')
  mock.timers.reset()
  assert.equal(limiter.take('k').allowed, true)
})
