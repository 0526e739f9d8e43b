import { createLimiter, fixedWindow, gcra, leakyMeter, leakyQueue, tokenBucket } from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Watch } from './watch.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2027, 0, 1) })
})
afterEach(() => {
  vi.useRealTimers()
})

describe.each([
  ['tokenBucket', tokenBucket],
  ['gcra', gcra],
  ['leakyMeter', leakyMeter],
])('wait under %s', (_, rule) => {
  test('acceptance 136: of 100 at once under (90; 10/s) 90 pass, two wait 100 and 200 ms, eight are refused', async () => {
    const limiter = createLimiter(rule({ limit: 10, window: '1s', burst: 90 }))
    const watch = new Watch()
    for (let call = 0; call < 100; call++) watch.on(`${call}`, limiter.wait('k', { maxWaitMs: 200 }))
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.log.filter(({ decision }) => decision.allowed)).toHaveLength(90)
    const refused = watch.log.filter(({ decision }) => !decision.allowed)
    expect(refused).toHaveLength(8)
    expect(refused[0]?.decision).toMatchObject({ reason: 'limited', retryAfterMs: 300, charged: 0 })
    await vi.advanceTimersByTimeAsync(1_000)
    const waited = watch.log.slice(98)
    expect(waited.map(({ name, ms }) => [name, ms])).toEqual([
      ['90', 100],
      ['91', 200],
    ])
    expect(waited.map(({ decision }) => [decision.allowed, decision.delayMs, decision.retryAfterMs])).toEqual([
      [true, 100, 0],
      [true, 200, 0],
    ])
  })

  test.each([
    [20, 20, 30, 4, 50, 6],
    [20, 100, 60, 20, 10, 20],
  ])(
    'acceptance 137: (%i; %i/s), %i at once: %i wait in steps of %i ms, %i are refused',
    async (burst, limit, calls, waits, step, refusals) => {
      const limiter = createLimiter(rule({ limit, window: '1s', burst }))
      const watch = new Watch()
      for (let call = 0; call < calls; call++) watch.on(`${call}`, limiter.wait('k', { maxWaitMs: 200 }))
      await vi.advanceTimersByTimeAsync(1_000)
      expect(watch.log.filter(({ ms, decision }) => ms === 0 && decision.allowed)).toHaveLength(burst)
      expect(watch.log.filter(({ decision }) => !decision.allowed)).toHaveLength(refusals)
      expect(watch.log.filter(({ ms }) => ms > 0).map(({ ms }) => ms)).toEqual(
        Array.from({ length: waits }, (_, place) => (place + 1) * step),
      )
    },
  )
})

test('acceptance 138: sustained abuse fills the queue and is refused again', async () => {
  const run = async (maxWaitMs: number): Promise<[all: number, late: number]> => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 20 }))
    const start = Date.now()
    const refused: number[] = []
    for (let call = 0; call < 400; call++) {
      const ms = Date.now() - start
      void limiter.wait('k', { maxWaitMs }).then(({ allowed }) => (allowed ? 0 : refused.push(ms)))
      await vi.advanceTimersByTimeAsync(25)
    }
    return [refused.length, refused.filter((ms) => ms >= 5_000).length]
  }
  expect(await run(200)).toEqual([279, 150])
  expect(await run(0)).toEqual([281, 150])
})

test('acceptance 139: waiters for one token have each a place, in their order, and sleep once', async () => {
  const limiter = createLimiter(tokenBucket({ limit: 20, window: '1s', burst: 1 }))
  const take = vi.spyOn(limiter, 'take')
  const watch = new Watch()
  for (let call = 0; call < 10; call++) watch.on(`${call}`, limiter.wait('k', { maxWaitMs: 200 }))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(watch.passed).toEqual(['0@0', '1@50', '2@100', '3@150', '4@200'])
  expect(watch.refused).toEqual(['5', '6', '7', '8', '9'].map((name) => `${name}@0 limited`))
  expect(take).not.toHaveBeenCalled()
})

test('acceptance 145: a bucket says what is excess, a leaky queue when part of it starts', async () => {
  const bucket = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 20 }))
  const queue = createLimiter(leakyQueue({ limit: 10, window: '1s', capacity: 100 }))
  const watch = new Watch()
  const ask = async () => {
    const decision = bucket.take('k')
    return decision.allowed ? decision : queue.wait('k', { maxWaitMs: 500 })
  }
  for (let call = 0; call < 40; call++) watch.on(`${call}`, ask())
  await vi.advanceTimersByTimeAsync(5_000)
  expect(watch.passed).toEqual([
    ...Array.from({ length: 20 }, (_, call) => `${call}@0`),
    ...[100, 200, 300, 400, 500].map((ms, place) => `${20 + place}@${ms}`),
  ])
  expect(watch.refused).toHaveLength(15)
})

describe('a reservation', () => {
  const one = () => createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 1 }))

  test('is charged at once: take comes behind it', () => {
    const limiter = one()
    limiter.take('k')
    void limiter.wait('k')
    expect(limiter.take('k').retryAfterMs).toBe(200)
  })

  test('of many units is not starved by a stream of small ones', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 10 }))
    limiter.take('k', { cost: 10 })
    const watch = new Watch()
    watch.on('big', limiter.wait('k', { cost: 10 }))
    for (let ms = 0; ms < 1_000; ms += 10) {
      expect(limiter.take('k').allowed).toBe(false)
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(watch.passed).toEqual(['big@1000'])
  })

  test('sleeps to the next whole millisecond, never less', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 3, window: '1s', burst: 1 }))
    limiter.take('k')
    const watch = new Watch()
    watch.on('a', limiter.wait('k'))
    watch.on('b', limiter.wait('k'))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['a@334', 'b@667'])
  })

  test('a cost that can never pass is refused at once', async () => {
    const limiter = one()
    expect(await limiter.wait('k', { cost: 2 })).toMatchObject({ allowed: false, reason: 'impossible' })
    expect(limiter.peek('k').remaining).toBe(1)
    expect(vi.getTimerCount()).toBeLessThanOrEqual(1)
  })

  test('a wait longer than allowed is refused at once and reserves nothing', async () => {
    const limiter = one()
    limiter.take('k')
    expect(await limiter.wait('k', { maxWaitMs: 99.999 })).toMatchObject({
      reason: 'limited',
      retryAfterMs: 100,
      charged: 0,
    })
    expect(limiter.peek('k').retryAfterMs).toBe(100)
  })

  test('as many as may wait: the next is refused as queue-full, and those who pass are not counted', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 3 }), { maxWaiting: 2 })
    const watch = new Watch()
    for (let call = 0; call < 7; call++) watch.on(`${call}`, limiter.wait('k'))
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.passed).toEqual(['0@0', '1@0', '2@0'])
    expect(watch.refused).toEqual(['5@0 queue-full', '6@0 queue-full'])
    expect(watch.log.at(-1)?.decision).toMatchObject({ charged: 0, retryAfterMs: 300 })
    await vi.advanceTimersByTimeAsync(150)
    watch.on('late', limiter.wait('k'))
    await vi.advanceTimersByTimeAsync(150)
    expect(watch.passed.slice(3)).toEqual(['3@100', '4@200', 'late@300'])
  })

  test('says how long it waited, and its figures in JSON', async () => {
    const limiter = one()
    limiter.take('k')
    const waiting = limiter.wait('k')
    await vi.advanceTimersByTimeAsync(100)
    const decision = await waiting
    expect(decision).toMatchObject({ allowed: true, delayMs: 100, retryAfterMs: 0, charged: 1 })
    expect(decision.toJSON()).toMatchObject({ delayMs: 100, retryAfterMs: 0 })
    expect(decision.policies[0]).toMatchObject({ allowed: true, retryAfterMs: 0, wouldDeny: false })
  })
})

describe('an aborted wait', () => {
  test('before it begins asks nothing', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 1, window: '1s' }))
    const decision = await limiter.wait('k', { signal: AbortSignal.abort() })
    expect(decision).toMatchObject({ allowed: false, reason: 'aborted', charged: 0, policy: 'default' })
    expect(limiter.refund(decision)).toBe(0)
    expect(limiter.peek('k').remaining).toBe(1)
  })

  test('costs nothing, and who came later keeps the time it was given', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 5 }))
    limiter.take('k', { cost: 5 })
    const watch = new Watch()
    const abort = new AbortController()
    watch.on('a', limiter.wait('k'))
    watch.on('b', limiter.wait('k', { cost: 2, signal: abort.signal }))
    watch.on('c', limiter.wait('k'))
    await vi.advanceTimersByTimeAsync(20)
    abort.abort()
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.refused).toEqual(['b@20 aborted'])
    // 5 + 1 + 1 were charged, 0.2 are drained: the next unit is due when 3 are.
    expect(limiter.take('k').retryAfterMs).toBe(280)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['a@100', 'c@400'])
  })

  test('of all at once, in the order in which they came, leaves nothing of the line', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 2 }))
    limiter.take('k', { cost: 2 })
    const aborts = Array.from({ length: 50 }, () => new AbortController())
    const watch = new Watch()
    for (const { signal } of aborts) watch.on('', limiter.wait('k', { signal }))
    expect(limiter.peek('k').retryAfterMs).toBe(5_100)
    for (const abort of aborts) abort.abort()
    expect(limiter.peek('k').retryAfterMs).toBe(100)
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.refused).toHaveLength(50)
    expect(vi.getTimerCount()).toBe(1)
  })

  test('of a burst of one gives back only what nobody stands behind, so that no time is given twice', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 1 }))
    limiter.take('k')
    const [a, b] = [new AbortController(), new AbortController()]
    void limiter.wait('k', { signal: a.signal })
    void limiter.wait('k', { signal: b.signal })
    a.abort()
    expect(limiter.peek('k').retryAfterMs).toBe(300)
    b.abort()
    expect(limiter.peek('k').retryAfterMs).toBe(100)
  })

  test('leaves no listener on its signal, however it ends', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 1 }))
    const { signal } = new AbortController()
    const counts = { added: 0, removed: 0 }
    const spied = {
      aborted: false,
      addEventListener: (type: 'abort', listener: () => void) => {
        counts.added++
        signal.addEventListener(type, listener)
      },
      removeEventListener: (type: 'abort', listener: () => void) => {
        counts.removed++
        signal.removeEventListener(type, listener)
      },
    }
    const all = [0, 100, 50].map((maxWaitMs) => limiter.wait('k', { maxWaitMs, signal: spied }))
    await vi.advanceTimersByTimeAsync(200)
    expect((await Promise.all(all)).map(({ allowed }) => allowed)).toEqual([true, true, false])
    expect(counts).toEqual({ added: 1, removed: 1 })
  })
})

describe('a stack', () => {
  const keys = { rate: 'k', quota: 'k' }
  const stack = () =>
    createLimiter({
      rate: tokenBucket({ limit: 10, window: '1s', burst: 1 }),
      quota: fixedWindow({ limit: 2, window: '1h' }),
    })

  test('reserves where it waits longest, and takes the rest when the time comes', async () => {
    const limiter = stack()
    limiter.take(keys)
    const watch = new Watch()
    watch.on('a', limiter.wait(keys))
    expect(limiter.peek(keys).policies.map(({ remaining }) => remaining)).toEqual([0, 1])
    await vi.advanceTimersByTimeAsync(100)
    expect(watch.passed).toEqual(['a@100'])
    expect(watch.log[0]?.decision).toMatchObject({ charged: 1, delayMs: 100 })
    expect(watch.log[0]?.decision.policies.map(({ policy, allowed }) => [policy, allowed])).toEqual([
      ['rate', true],
      ['quota', true],
    ])
    expect(limiter.peek(keys).policies.map(({ remaining }) => remaining)).toEqual([0, 0])
  })

  test('whose rest refuses then is refused, and the reservation is given back', async () => {
    const limiter = stack()
    limiter.take(keys)
    const watch = new Watch()
    watch.on('a', limiter.wait(keys))
    watch.on('b', limiter.wait(keys, { maxWaitMs: 1_000 }))
    await vi.advanceTimersByTimeAsync(100)
    expect(watch.passed).toEqual(['a@100'])
    await vi.advanceTimersByTimeAsync(100)
    expect(watch.refused).toEqual(['b@200 limited'])
    const { decision } = watch.log[1] as { decision: { policy: string; charged: number; policies: unknown[] } }
    expect(decision).toMatchObject({ policy: 'quota', charged: 0 })
    expect(limiter.peek(keys).policies.map(({ remaining }) => remaining)).toEqual([1, 0])
  })

  test('refunds and settles both policies of what waited', async () => {
    const limiter = stack()
    limiter.take(keys)
    const waiting = limiter.wait(keys)
    await vi.advanceTimersByTimeAsync(100)
    expect(limiter.refund(await waiting)).toBe(1)
    expect(limiter.peek(keys).policies.map(({ remaining }) => remaining)).toEqual([1, 1])
  })
})

describe('a leaky queue', () => {
  const queue = () => createLimiter(leakyQueue({ limit: 10, window: '1s', capacity: 10 }))

  test('waits for the delay of its place', async () => {
    const limiter = queue()
    const watch = new Watch()
    for (const name of ['a', 'b', 'c']) watch.on(name, limiter.wait('k'))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['a@100', 'b@200', 'c@300'])
    expect(watch.log.map(({ decision }) => decision.delayMs)).toEqual([100, 200, 300])
  })

  test('refuses what would start too late, says when it would not, and takes no place', async () => {
    const limiter = queue()
    for (let call = 0; call < 4; call++) limiter.take('k')
    expect(await limiter.wait('k', { maxWaitMs: 350 })).toMatchObject({
      reason: 'limited',
      retryAfterMs: 150,
      charged: 0,
    })
    expect(await limiter.wait('k', { maxWaitMs: 99 })).toMatchObject({ reason: 'impossible', retryAfterMs: Infinity })
    expect(limiter.peek('k').remaining).toBe(6)
    await vi.advanceTimersByTimeAsync(149)
    expect((await limiter.wait('k', { maxWaitMs: 350 })).allowed).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    const watch = new Watch()
    watch.on('a', limiter.wait('k', { maxWaitMs: 350 }))
    await vi.advanceTimersByTimeAsync(400)
    expect(watch.passed).toEqual(['a@350'])
  })

  test('that is full refuses until a place is free', async () => {
    const limiter = queue()
    limiter.take('k', { cost: 10 })
    expect(await limiter.wait('k')).toMatchObject({ reason: 'limited', retryAfterMs: 100 })
  })

  test('gets back the places of who gave up, the last first', () => {
    const limiter = queue()
    const abort = new AbortController()
    for (let call = 0; call < 5; call++) void limiter.wait('k', { signal: abort.signal })
    abort.abort()
    expect(limiter.peek('k').remaining).toBe(10)
  })
})

describe('many waiters', () => {
  test('5,000 of them arm one timer', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 1_000, window: '1s', burst: 1 }))
    const armed = vi.spyOn(globalThis, 'setTimeout')
    let woken = 0
    for (let call = 0; call < 5_001; call++) void limiter.wait('k').then(() => woken++)
    expect(armed).toHaveBeenCalledTimes(1 + 1)
    expect(vi.getTimerCount()).toBe(2)
    await vi.advanceTimersByTimeAsync(2_500)
    expect(woken).toBe(2_501)
    await vi.advanceTimersByTimeAsync(2_500)
    expect(woken).toBe(5_001)
    armed.mockRestore()
  })

  test('a sleep longer than a timer can be armed for goes on after it', async () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '24d' }))
    limiter.take('k')
    const armed = vi.spyOn(globalThis, 'setTimeout')
    void limiter.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    expect(armed.mock.calls.every(([, ms]) => (ms as number) <= 2 ** 31 - 1)).toBe(true)
    armed.mockRestore()
    limiter.close()
  })
})
