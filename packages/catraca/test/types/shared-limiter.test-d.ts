import {
  createLimiter,
  type Decision,
  type Health,
  type Limiter,
  memoryStore,
  quota,
  type RemoteStore,
  type SharedLimiter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expectTypeOf, test } from 'vitest'

const rule = tokenBucket({ limit: 5, window: '1m' })
declare const store: RemoteStore
const single = createLimiter(rule, { name: 'one', store })
const stack = createLimiter(
  { user: rule, tenant: rule },
  { name: 'api', store, tag: 'tenant', storeFailure: { expectedInstances: 'live' } },
)

describe('the type of a limiter follows its store', () => {
  test('a remote one promises, a memory store answers at once', () => {
    expectTypeOf(single).toEqualTypeOf<SharedLimiter<typeof rule>>()
    expectTypeOf(createLimiter(rule)).toEqualTypeOf<Limiter<typeof rule>>()
    expectTypeOf(createLimiter(rule, { store: memoryStore() })).toEqualTypeOf<Limiter<typeof rule>>()
    expectTypeOf(single.take('k')).toEqualTypeOf<Promise<Decision>>()
    expectTypeOf(single.peek('k', { cost: 2 })).toEqualTypeOf<Promise<Decision>>()
    expectTypeOf(single.tryTake('k')).toEqualTypeOf<Decision | undefined>()
    expectTypeOf<ReturnType<typeof single.refund>>().toEqualTypeOf<Promise<number>>()
    expectTypeOf<ReturnType<typeof single.renew>>().toEqualTypeOf<Promise<boolean>>()
    expectTypeOf<ReturnType<typeof single.release>>().toEqualTypeOf<Promise<void>>()
    expectTypeOf(single.reset('k')).toEqualTypeOf<Promise<void>>()
    expectTypeOf(single.block('k', '1m')).toEqualTypeOf<Promise<void>>()
    expectTypeOf(single.health).toEqualTypeOf<Health>()
  })

  test('keys are checked by name', () => {
    expectTypeOf(stack.take({ user: 'u', tenant: 't' })).toEqualTypeOf<Promise<Decision>>()
    expectTypeOf(stack.reset({ user: 'u' }, { tag: 't' })).toEqualTypeOf<Promise<void>>()
    // @ts-expect-error tenant is missing
    void stack.take({ user: 'u' })
    // @ts-expect-error a text is for one rule
    void stack.take('u')
    // @ts-expect-error the store has its own clock
    void single.take('k', { now: 0 })
  })

  test('wait is there where a rule reserves', () => {
    expectTypeOf(single.wait('k', { maxWaitMs: 5 })).toEqualTypeOf<Promise<Decision>>()
    const mixed = createLimiter({ pace: rule, day: quota({ limit: 1, period: 'day' }) }, { name: 'mixed', store })
    expectTypeOf(mixed.wait({ pace: 'k', day: 'k' })).toEqualTypeOf<Promise<Decision>>()
    // @ts-expect-error day is missing
    void mixed.wait({ pace: 'k' })
    const window = createLimiter(slidingLog({ limit: 1, window: '1s' }), { name: 'window', store })
    // @ts-expect-error a log cannot be waited for in a shared store
    void window.wait('k')
    expectTypeOf(window.takeUpTo('k', 5)).toEqualTypeOf<Promise<Decision>>()
    expectTypeOf<ReturnType<typeof window.settle>>().toEqualTypeOf<Promise<number>>()
    // @ts-expect-error the store has its own clock
    void single.takeUpTo('k', 5, { now: 0 })
  })

  test('options that need a remote store are refused without one', () => {
    // @ts-expect-error a memory store is never gone
    createLimiter(rule, { onStoreFailure: 'open' })
    // @ts-expect-error a memory store is never gone
    createLimiter(rule, { store: memoryStore(), storeFailure: { expectedInstances: 2 } })
    // @ts-expect-error a shared limiter has a name
    createLimiter(rule, { store })
    // @ts-expect-error a mode is local, open or closed
    createLimiter(rule, { name: 'api', store, onStoreFailure: 'fail' })
    createLimiter(rule, { onRuleChange: 'reset' })
  })
})
