import {
  concurrency,
  createLimiter,
  type Decision,
  type Keys,
  type Limiter,
  memoryStore,
  type SomeKeys,
  tokenBucket,
} from 'catraca'
import { describe, expectTypeOf, test } from 'vitest'

const rule = tokenBucket({ limit: 5, window: '1m' })
const single = createLimiter(rule)
const stack = createLimiter({ user: rule, tenant: rule })
const withStore = createLimiter({ user: rule }, { name: 'api', store: memoryStore({ maxKeys: 10, seed: 1 }) })

type Single = Limiter<typeof rule>
type Stack = typeof stack
type Pair = { readonly user: string; readonly tenant: string }

describe('a limiter of one rule takes a text', () => {
  test('and nothing else', () => {
    expectTypeOf<Parameters<Single['take']>[0]>().toEqualTypeOf<string>()
    expectTypeOf<Parameters<Single['tryTake']>[0]>().toEqualTypeOf<string>()
    expectTypeOf<Parameters<Single['peek']>[0]>().toEqualTypeOf<string>()
    expectTypeOf<Parameters<Single['reset']>[0]>().toEqualTypeOf<string>()
    // @ts-expect-error an object is for stacks
    single.take({ user: 'u' })
    // @ts-expect-error a number is no key
    single.take(7)
    // @ts-expect-error a key may be missing
    single.take(undefined as string | undefined)
    // @ts-expect-error a block needs its duration
    single.block('k')
  })
})

describe('a stack takes a text for each of its names', () => {
  test('all of them and no others where it decides', () => {
    expectTypeOf<Parameters<Stack['take']>[0]>().toEqualTypeOf<Pair>()
    expectTypeOf<Parameters<Stack['tryTake']>[0]>().toEqualTypeOf<Pair>()
    expectTypeOf<Parameters<Stack['peek']>[0]>().toEqualTypeOf<Pair>()
    stack.take({ user: 'u', tenant: 't' })
    withStore.take({ user: 'u' })
    // @ts-expect-error tenant is missing
    stack.take({ user: 'u' })
    // @ts-expect-error tennant is misspelt
    stack.take({ user: 'u', tennant: 't' })
    // @ts-expect-error extra is unknown
    stack.take({ user: 'u', tenant: 't', extra: 'x' })
    // @ts-expect-error a text is for one rule
    stack.take('u')
    // @ts-expect-error a number is no key
    stack.take({ user: 'u', tenant: 7 })
    // @ts-expect-error tenant is missing
    stack.peek({ user: 'u' })
    // @ts-expect-error tenant is missing
    stack.tryTake({ user: 'u' })
  })

  test('some of them where it manages', () => {
    expectTypeOf<Parameters<Stack['reset']>[0]>().toEqualTypeOf<Partial<Pair>>()
    expectTypeOf<SomeKeys<typeof rule>>().toEqualTypeOf<string>()
    stack.reset({ user: 'u' })
    stack.block({ tenant: 't' }, '5m')
    stack.unblock({})
    // @ts-expect-error usr is misspelt
    stack.reset({ usr: 'u' })
    // @ts-expect-error a text is for one rule
    stack.unblock('u')
  })

  test('names come from the literal, without as const', () => {
    expectTypeOf<Keys<{ a: typeof rule; b: typeof rule }>>().toEqualTypeOf<{ readonly a: string; readonly b: string }>()
    expectTypeOf<Keys<typeof rule>>().toEqualTypeOf<string>()
  })
})

describe('answers', () => {
  test('of a memory store are there at once', () => {
    expectTypeOf(single.take('k')).toEqualTypeOf<Decision>()
    expectTypeOf(stack.take({ user: 'u', tenant: 't' })).toEqualTypeOf<Decision>()
    expectTypeOf(single.tryTake('k')).toEqualTypeOf<Decision | undefined>()
    expectTypeOf(single.refund(single.take('k'))).toEqualTypeOf<number>()
    expectTypeOf<ReturnType<Single['release']>>().toEqualTypeOf<void>()
    expectTypeOf(single.on('decision', () => {})).toEqualTypeOf<() => void>()
  })

  test('are promised by wait alone', () => {
    expectTypeOf(single.wait('k')).toEqualTypeOf<Promise<Decision>>()
    expectTypeOf(single.wait('k', { cost: 2, maxWaitMs: 10, signal: new AbortController().signal })).toEqualTypeOf<
      Promise<Decision>
    >()
    expectTypeOf(single.takeUpTo('k', 5, { now: 0 })).toEqualTypeOf<Decision>()
    expectTypeOf(single.settle(single.take('k'), 0)).toEqualTypeOf<number>()
    // @ts-expect-error wait goes by the clock
    void single.wait('k', { now: 0 })
    // @ts-expect-error tenant is missing
    void stack.wait({ user: 'u' })
    // @ts-expect-error a number of units is needed
    single.takeUpTo('k')
  })

  test('can be used with using', () => {
    const inFlight = createLimiter(concurrency({ limit: 1 }))
    expectTypeOf(inFlight.take('k')).toExtend<Disposable & AsyncDisposable>()
  })
})

describe('options', () => {
  test('of a question are cost and now', () => {
    single.take('k', { cost: 3, now: 0 })
    // @ts-expect-error costs are numbers
    single.take('k', { cost: '3' })
    // @ts-expect-error csot is misspelt
    single.take('k', { csot: 3 })
    // @ts-expect-error times are numbers
    single.take('k', { now: new Date() })
  })

  test('of a limiter are name, store and on', () => {
    // @ts-expect-error stor is misspelt
    createLimiter(rule, { stor: memoryStore() })
    // @ts-expect-error a store is made by memoryStore()
    createLimiter(rule, { store: {} })
    // @ts-expect-error decison is misspelt
    createLimiter(rule, { on: { decison: () => {} } })
    // @ts-expect-error listeners are functions
    createLimiter(rule, { on: { decision: 'x' } })
    // @ts-expect-error maxkeys is misspelt
    memoryStore({ maxkeys: 1 })
  })

  test('rules are rules', () => {
    // @ts-expect-error options are no rule
    createLimiter({ limit: 5, window: '1m' })
    // @ts-expect-error a factory is no rule
    createLimiter({ user: tokenBucket })
    // @ts-expect-error the rules are missing
    createLimiter()
  })

  test('a limiter can be named as a type', () => {
    expectTypeOf(single).toExtend<Limiter<typeof rule>>()
    expectTypeOf(stack).not.toExtend<Limiter<typeof rule>>()
  })
})
