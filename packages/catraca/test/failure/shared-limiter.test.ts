import {
  concurrency,
  createLimiter,
  type Decision,
  type Events,
  fixedWindow,
  isCatracaError,
  memoryStore,
  slidingLog,
} from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Expected, expectFailure } from '../contract/failure.ts'
import { FaultyStore } from './faulty-store.ts'

const noon = Date.UTC(2027, 0, 1, 12)

beforeEach(() => vi.useFakeTimers({ now: noon }))
afterEach(() => vi.useRealTimers())

const wrong = (value: unknown) => value as never
const ten = fixedWindow({ limit: 10, window: '1h' })
const two = { storeFailure: { expectedInstances: 2 } } as const

async function expectRejection(call: () => Promise<unknown>, expected: Expected): Promise<void> {
  const error: unknown = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expectFailure(() => {
    throw error
  }, expected)
}

describe('a limiter on a shared store', () => {
  test('promises decisions of the store, and of the share of 10 ÷ 2 without it', async () => {
    const store = new FaultyStore()
    const limiter = createLimiter(ten, { name: 'api', store, ...two })
    expect(await limiter.take('k', { cost: 3 })).toMatchObject({
      allowed: true,
      remaining: 7,
      degraded: false,
      policy: 'api',
    })
    expect((await limiter.peek('k')).remaining).toBe(7)
    expect(limiter.tryTake('k')).toBeUndefined()
    expect(limiter.health).toBe('healthy')
    store.fault = 'refuses'
    expect(await limiter.take('k', { cost: 2 })).toMatchObject({ allowed: true, remaining: 3, degraded: true })
    expect(limiter.health).toBe('degraded')
    expect(limiter.tryTake('k')).toMatchObject({ remaining: 2, degraded: true })
    expect((await limiter.peek('k')).remaining).toBe(2)
  })

  test('refunds once, in every policy of a stack, whoever decided', async () => {
    const store = new FaultyStore()
    const limiter = createLimiter({ user: ten, tenant: ten }, { name: 'api', store, ...two })
    for (const fault of [undefined, 'refuses'] as const) {
      store.fault = fault
      const decision = await limiter.take({ user: 'u', tenant: 't' }, { cost: 4 })
      expect(await limiter.refund(decision, 3)).toBe(3)
      expect(await limiter.refund(decision)).toBe(0)
      const { policies } = await limiter.peek({ user: 'u', tenant: 't' })
      expect(policies.map(({ remaining }) => remaining)).toEqual(fault === undefined ? [9, 9] : [4, 4])
    }
  })

  test('refunds nothing of what was not charged', async () => {
    const store = new FaultyStore()
    const limiter = createLimiter(ten, { name: 'api', store, onStoreFailure: 'open' })
    store.fault = 'gone'
    expect(await limiter.refund(await limiter.take('k'))).toBe(0)
  })

  test('says what all policies gave back, but for permits that were released before', async () => {
    const store = new FaultyStore()
    const limiter = createLimiter({ jobs: concurrency({ limit: 20 }), rate: ten }, { name: 'api', store, ...two })
    for (const fault of [undefined, 'refuses'] as const) {
      store.fault = fault
      const decision = await limiter.take({ jobs: 'k', rate: 'k' }, { cost: 4 })
      await limiter.release(decision)
      expect(await limiter.refund(decision)).toBe(4)
    }
    const jobs = createLimiter(concurrency({ limit: 20 }), { name: 'jobs', store, ...two })
    const held = await jobs.take('k', { cost: 4 })
    await jobs.release(held)
    expect(await jobs.refund(held)).toBe(0)
  })

  test('releases and renews permits', async () => {
    const store = new FaultyStore()
    const limiter = createLimiter({ jobs: concurrency({ limit: 2 }), rate: ten }, { name: 'api', store, ...two })
    store.fault = 'refuses'
    const keys = { jobs: 'k', rate: 'k' }
    const held = await limiter.take(keys)
    expect((await limiter.take(keys)).reason).toBe('concurrency')
    expect(await limiter.renew(held)).toBe(true)
    await limiter.release(held)
    await limiter.release(held)
    const next = await limiter.take(keys)
    expect(next.allowed).toBe(true)
    next.release()
    await vi.advanceTimersByTimeAsync(0)
    expect((await limiter.take(keys)).allowed).toBe(true)
    const plain = createLimiter(ten, { name: 'plain', store, ...two })
    expect(await plain.renew(await plain.take('k'))).toBe(false)
  })

  test('tells by events what became of the store', async () => {
    const store = new FaultyStore()
    const seen: [string, unknown][] = []
    const note =
      <Name extends keyof Events>(name: Name) =>
      (event: Events[Name]): void =>
        void seen.push([name, event])
    const limiter = createLimiter(ten, {
      name: 'api',
      store,
      ...two,
      on: { degraded: note('degraded'), recovered: note('recovered'), 'store.fault': note('store.fault') },
    })
    const cause = expect.any(Error) as unknown
    store.unfit.add('bad')
    await limiter.take('bad')
    store.fault = 'refuses'
    await limiter.take('k')
    store.fault = undefined
    await vi.advanceTimersByTimeAsync(500)
    expect(seen).toEqual([
      ['store.fault', { policy: 'api', key: 'bad', cause }],
      ['degraded', { cause }],
      ['recovered', { durationMs: 500, decisions: 1 }],
    ])
  })

  test('emits decision and nearLimit as a memory store does, for take and an answered tryTake only', async () => {
    const store = new FaultyStore()
    const seen: Decision[] = []
    const near: number[] = []
    const limiter = createLimiter(ten, { name: 'api', store, ...two })
    limiter.on('nearLimit', ({ usedShare }) => near.push(usedShare))
    const stop = limiter.on('decision', ({ decision }) => seen.push(decision))
    const decisions: (Decision | undefined)[] = [await limiter.take('k', { cost: 8 })]
    await limiter.peek('k')
    limiter.tryTake('k')
    store.fault = 'refuses'
    decisions.push(await limiter.take('k'), limiter.tryTake('k'))
    expect(seen).toEqual(decisions)
    expect(near).toEqual([0.8])
    stop()
    await limiter.take('k')
    expect(seen.length).toBe(3)
  })

  test('says once when nobody said how many instances there are, and one key is empty', async () => {
    const codes: string[] = []
    const on = { diagnosis: ({ code }: Events['diagnosis']) => void codes.push(code) }
    const store = new FaultyStore()
    const limiter = createLimiter(ten, { name: 'api', store, on })
    for (let call = 0; call < 3; call++) await limiter.take('')
    expect(codes).toEqual(['CATRACA_INSTANCES_UNSTATED', 'CATRACA_KEY_EMPTY'])
    store.fault = 'refuses'
    expect((await limiter.take('k')).remaining).toBe(9)
    codes.length = 0
    createLimiter(ten, { name: 'b', store, on, ...two })
    createLimiter(ten, { name: 'c', store, on, onStoreFailure: 'closed' })
    expect(codes).toEqual([])
  })

  test('passes mode, rule change, ceiling and instances on to the store', async () => {
    const store = new FaultyStore()
    const open = vi.spyOn(store, 'open')
    createLimiter(
      { a: ten, b: ten },
      {
        name: 'api',
        store,
        onStoreFailure: 'closed',
        onRuleChange: 'reset',
        storeFailure: { expectedInstances: 'live', ceiling: { limit: 5, window: '1s' } },
      },
    )
    const [name, policies, , failure] = open.mock.calls[0] as unknown as [string, object[], unknown, unknown]
    expect(name).toBe('api')
    const expected = { onStoreFailure: 'closed', onRuleChange: 'reset' }
    expect(policies).toMatchObject([
      { name: 'a', ...expected },
      { name: 'b', ...expected },
    ])
    expect(failure).toEqual({ expectedInstances: 'live', ceiling: { limit: 5, windowUs: 1_000_000 } })
  })

  test('sends the key of the policy that is the tag as the tag of all', async () => {
    const store = new FaultyStore()
    const limiter = createLimiter({ user: ten, tenant: ten }, { name: 'api', store, tag: 'tenant', ...two })
    const ledger = limiter['ledger']
    const [apply, reset] = [vi.spyOn(ledger, 'apply'), vi.spyOn(ledger, 'reset')]
    await limiter.take({ user: 'u', tenant: 't' })
    expect(apply.mock.calls[0]?.slice(0, 4)).toEqual([
      [0, 1],
      ['u', 't'],
      ['t', 't'],
      [1, 1],
    ])
    await limiter.reset({ user: 'u' }, { tag: 't' })
    await limiter.reset({ tenant: 't2', user: 'u' })
    expect(reset.mock.calls).toEqual([
      [0, 'u', 't'],
      [0, 'u', 't2'],
      [1, 't2', 't2'],
    ])
    const says = ['undefined', 'a text']
    await expectRejection(() => limiter.reset({ user: 'u' }), {
      code: 'CATRACA_KEY_INVALID',
      path: 'keys.tenant',
      says,
    })
  })

  test('resets and blocks in the store, and rejects where it does not answer', async () => {
    const store = new FaultyStore()
    const limiter = createLimiter(ten, { name: 'api', store, ...two })
    await limiter.take('k', { cost: 10 })
    await limiter.reset('k')
    expect((await limiter.take('k')).remaining).toBe(9)
    await limiter.block('k', '1m')
    await limiter.unblock('k')
    expect(store.sent).toEqual(['apply', 'reset', 'apply', 'block', 'block'])
    for (const fault of ['gone', 'refuses'] as const) {
      store.fault = fault
      for (const call of [() => limiter.reset('k'), () => limiter.block('k', '1m'), () => limiter.unblock('k')]) {
        await expectRejection(call, { code: 'CATRACA_STORE_UNAVAILABLE', says: ['did not answer a'] })
      }
    }
  })

  test('after close rejects questions and sends nothing', async () => {
    const store = new FaultyStore()
    const limiter = createLimiter(concurrency({ limit: 2 }), { name: 'api', store, ...two })
    limiter.close()
    limiter.close()
    const expected = { code: 'CATRACA_LIMITER_CLOSED', says: ['"api"'] } as const
    await expectRejection(() => limiter.take('k'), expected)
    await expectRejection(() => limiter.peek('k'), expected)
    await expectRejection(() => limiter.reset('k'), expected)
    expectFailure(() => limiter.tryTake('k'), expected)
    expect(store.sent).toEqual([])
    expect(() => createLimiter(ten, { name: 'api', store, ...two })).not.toThrow()
  })
})

describe('wrong arguments', () => {
  const make = () => createLimiter({ user: ten }, { name: 'api', store: new FaultyStore(), ...two })

  test.each([
    { keys: 'k', options: undefined, code: 'CATRACA_KEY_INVALID', path: 'keys', says: ['"k"'] },
    { keys: { user: 7 }, options: undefined, code: 'CATRACA_KEY_INVALID', path: 'keys.user', says: ['7'] },
    { keys: { user: 'u' }, options: { cost: 0 }, code: 'CATRACA_COST_INVALID', path: 'cost', says: ['0'] },
    {
      keys: { user: 'u' },
      options: { csot: 1 },
      code: 'CATRACA_OPTION_UNKNOWN',
      path: 'options.csot',
      says: ['cost?'],
    },
    {
      keys: { user: 'u' },
      options: { now: 0 },
      code: 'CATRACA_OPTION_INVALID',
      path: 'options.now',
      says: ['memory stores only'],
    },
  ] as const)('$keys $options reject with $code, as a Limiter throws', async ({ keys, options, code, path, says }) => {
    const limiter = make()
    await expectRejection(() => limiter.take(wrong(keys), wrong(options)), { code, path, says })
    await expectRejection(() => limiter.peek(wrong(keys), wrong(options)), { code, path, says })
    expectFailure(() => limiter.tryTake(wrong(keys), wrong(options)), { code, path, says })
  })

  test('a decision of another limiter is refused', async () => {
    const decision = await make().take({ user: 'u' })
    const limiter = make()
    const expected = { code: 'CATRACA_DECISION_FOREIGN', says: ['another limiter'] } as const
    await expectRejection(() => limiter.refund(decision), expected)
    await expectRejection(() => limiter.release(decision), expected)
    await expectRejection(() => limiter.renew(decision), expected)
  })

  test('a stack with a duration that is none is refused before anything is sent', async () => {
    const limiter = make()
    await expect(limiter.block({ user: 'u' }, wrong('x'))).rejects.toSatisfy(isCatracaError)
  })
})

describe('wrong options', () => {
  const shared = (options: object) => () =>
    createLimiter(wrong({ user: ten }), wrong({ name: 'api', store: new FaultyStore(), ...options }))
  const instances = ['1 to 100000', '"live"']

  test.each([
    { options: { name: '' }, path: 'options.name', says: ['""'] },
    {
      options: { onStoreFailure: 'fail' },
      path: 'options.onStoreFailure',
      says: ['"fail"', '"local", "open", "closed"'],
    },
    { options: { onRuleChange: 'drop' }, path: 'options.onRuleChange', says: ['"drop"', '"keep"'] },
    { options: { storeFailure: 6 }, path: 'options.storeFailure', says: ['6', 'an object'] },
    {
      options: { storeFailure: {} },
      path: 'options.storeFailure.expectedInstances',
      says: ['undefined', ...instances],
    },
    ...[0, 1.5, NaN, 100_001, '6'].map((expectedInstances) => ({
      options: { storeFailure: { expectedInstances } },
      path: 'options.storeFailure.expectedInstances',
      says: instances,
    })),
    {
      options: { storeFailure: { expectedInstances: 1, ceiling: { limit: 0, window: '1s' } } },
      path: 'options.storeFailure.ceiling.limit',
      says: ['0', '1 to'],
    },
    { options: { tag: 'tenant' }, path: 'options.tag', says: ['"tenant"', 'user'] },
  ])('$options are refused', ({ options, path, says }) => {
    expectFailure(shared(options), { code: 'CATRACA_OPTION_INVALID', path, says })
  })

  test('unknown ones are refused with the one that was probably meant', () => {
    const says = ['did you mean expectedInstances?']
    const path = 'options.storeFailure.expectedInstance'
    expectFailure(shared({ storeFailure: { expectedInstance: 1 } }), { code: 'CATRACA_OPTION_UNKNOWN', path, says })
  })

  test('a tag needs a stack', () => {
    const call = () => createLimiter(ten, { name: 'api', store: new FaultyStore(), tag: 'api' })
    expectFailure(call, { code: 'CATRACA_OPTION_INVALID', path: 'options.tag', says: ['only with a stack'] })
  })

  test.each(['onStoreFailure', 'storeFailure', 'tag'])('%s is refused with a memory store', (option) => {
    for (const store of [undefined, memoryStore()]) {
      const options = { ...(store !== undefined && { store }), [option]: 'local' }
      expectFailure(() => createLimiter(ten, wrong(options)), {
        code: 'CATRACA_OPTION_INVALID',
        path: `options.${option}`,
        says: ['remote store'],
      })
    }
  })

  test('onRuleChange is passed on to a memory store', () => {
    const limiter = createLimiter(slidingLog({ limit: 1, window: '1s' }), { onRuleChange: 'proportional' })
    expect(limiter.policies[0]?.onRuleChange).toBe('proportional')
  })
})
