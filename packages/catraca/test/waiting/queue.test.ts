import { concurrency, createLimiter, type Decision, fixedWindow, quota, slidingLog, tokenBucket } from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Watch } from './watch.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2027, 0, 1) })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('permits', () => {
  const two = () => createLimiter(concurrency({ limit: 2, permitTtl: '30s' }))

  test('go to who waits in the order of arrival, at the instant of their release, without polling', async () => {
    const limiter = two()
    const [first, second] = [limiter.take('k'), limiter.take('k')]
    const watch = new Watch()
    for (const name of ['a', 'b', 'c']) watch.on(name, limiter.wait('k'))
    const take = vi.spyOn((limiter as unknown as { ledger: { applyOne: () => Decision } }).ledger, 'applyOne')
    await vi.advanceTimersByTimeAsync(5_000)
    expect(take).not.toHaveBeenCalled()
    first.release()
    await vi.advanceTimersByTimeAsync(1_000)
    second.release()
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.passed).toEqual(['a@5000', 'b@6000'])
    watch.log[0]?.decision.release()
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.passed.at(-1)).toBe('c@6000')
  })

  test('acceptance 209: of a holder that vanished go to the first when they expire', async () => {
    const limiter = two()
    limiter.take('k', { cost: 2 })
    const watch = new Watch()
    watch.on('a', limiter.wait('k', { maxWaitMs: 60_000 }))
    await vi.advanceTimersByTimeAsync(29_999)
    expect(watch.passed).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(watch.passed).toEqual(['a@30000'])
  })

  test('acceptance 209: of who gives up while it waits are none: the next is served', async () => {
    const limiter = two()
    const held = limiter.take('k', { cost: 2 })
    const abort = new AbortController()
    const watch = new Watch()
    watch.on('a', limiter.wait('k', { signal: abort.signal }))
    watch.on('b', limiter.wait('k'))
    abort.abort()
    held.release()
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.refused).toEqual(['a@0 aborted'])
    expect(watch.passed).toEqual(['b@0'])
    expect(limiter.peek('k').remaining).toBe(1)
  })

  test('are waited for although they may come back too late, and refused when the time is over', async () => {
    const limiter = two()
    limiter.take('k', { cost: 2 })
    const watch = new Watch()
    watch.on('a', limiter.wait('k', { maxWaitMs: 100 }))
    watch.on('b', limiter.wait('k', { maxWaitMs: 50 }))
    await vi.advanceTimersByTimeAsync(200)
    expect(watch.refused).toEqual(['b@50 concurrency', 'a@100 concurrency'])
    expect(watch.log[1]?.decision.retryAfterMs).toBe(29_900)
    expect(limiter.take('k').allowed).toBe(false)
  })

  test('a large request at the head is not overtaken, by who waits or by take', async () => {
    const limiter = two()
    const [first, second] = [limiter.take('k'), limiter.take('k')]
    const watch = new Watch()
    watch.on('big', limiter.wait('k', { cost: 2 }))
    watch.on('small', limiter.wait('k'))
    first.release()
    await vi.advanceTimersByTimeAsync(10)
    expect(limiter.take('k')).toMatchObject({ allowed: false, reason: 'concurrency', charged: 0 })
    expect(limiter.takeUpTo('k', 5).allowed).toBe(false)
    expect(limiter.peek('k')).toMatchObject({ allowed: false, remaining: 0 })
    expect(limiter.take('other').allowed).toBe(true)
    second.release()
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.passed).toEqual(['big@10'])
    watch.log[0]?.decision.release()
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.passed).toEqual(['big@10', 'small@10'])
    expect(limiter.take('k').allowed).toBe(true)
  })

  test('thousands that pass at once do so in one turn, whatever the stack holds', async () => {
    const limiter = createLimiter(concurrency({ limit: 20_000, permitTtl: '1h' }), { maxWaiting: 20_000 })
    const held = limiter.take('k', { cost: 20_000 })
    const watch = new Watch()
    for (let call = 0; call < 20_000; call++) watch.on('', limiter.wait('k'))
    held.release()
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.passed).toHaveLength(20_000)
  })
})

describe('windows', () => {
  test.each([
    ['fixedWindow', fixedWindow({ limit: 2, window: '1s' })],
    ['slidingLog', slidingLog({ limit: 2, window: '1s' })],
    ['quota', quota({ limit: 2, period: 'day' })],
  ])('%s: those who wait are served in their order as soon as their units pass', async (_, rule) => {
    const limiter = createLimiter(rule)
    limiter.take('k', { cost: 2 })
    const { retryAfterMs } = limiter.peek('k')
    const watch = new Watch()
    const options = { maxWaitMs: 4 * 86_400_000 }
    watch.on('a', limiter.wait('k', options))
    watch.on('b', limiter.wait('k', { ...options, cost: 2 }))
    watch.on('c', limiter.wait('k', options))
    await vi.advanceTimersByTimeAsync(4 * retryAfterMs)
    expect(watch.passed).toEqual([`a@${retryAfterMs}`, `b@${2 * retryAfterMs}`, `c@${3 * retryAfterMs}`])
  })

  test('a wait longer than allowed is refused at once, behind others too', async () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1s' }))
    limiter.take('k')
    expect(await limiter.wait('k', { maxWaitMs: 999 })).toMatchObject({ reason: 'limited', retryAfterMs: 1_000 })
    const watch = new Watch()
    watch.on('a', limiter.wait('k', { maxWaitMs: 1_000 }))
    watch.on('b', limiter.wait('k', { maxWaitMs: 999 }))
    watch.on('c', limiter.wait('k', { maxWaitMs: 1_500 }))
    await vi.advanceTimersByTimeAsync(3_000)
    expect(watch.passed).toEqual(['a@1000'])
    expect(watch.refused).toEqual(['b@0 limited', 'c@1000 limited'])
    expect(watch.log.at(-1)?.decision.retryAfterMs).toBe(1_000)
  })

  test('a refund serves who waits for it', async () => {
    const limiter = createLimiter(fixedWindow({ limit: 2, window: '1h' }))
    const taken = limiter.take('k', { cost: 2 })
    const watch = new Watch()
    watch.on('a', limiter.wait('k', { maxWaitMs: 3_600_000 }))
    watch.on('b', limiter.wait('k', { maxWaitMs: 3_600_000 }))
    limiter.settle(taken, 1)
    await vi.advanceTimersByTimeAsync(10)
    expect(watch.passed).toEqual(['a@0'])
    limiter.refund(watch.log[0]?.decision as Decision)
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.passed).toEqual(['a@0', 'b@10'])
  })

  test('more than may wait: queue-full', async () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1s' }), { maxWaiting: 1 })
    limiter.take('k')
    const watch = new Watch()
    watch.on('a', limiter.wait('k'))
    watch.on('b', limiter.wait('k'))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['a@1000'])
    expect(watch.refused).toEqual(['b@0 queue-full'])
  })
})

describe('a key that is', () => {
  test('blocked is not waited for', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s' }))
    limiter.block('k', '10ms')
    expect(await limiter.wait('k')).toMatchObject({ allowed: false, reason: 'blocked' })
  })

  test('reset: those who wait are asked for anew, in their order', async () => {
    const bucket = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 2 }))
    const window = createLimiter(fixedWindow({ limit: 2, window: '1h' }))
    bucket.take('k', { cost: 2 })
    window.take('k', { cost: 2 })
    const watch = new Watch()
    for (const name of ['a', 'b', 'c']) {
      watch.on(name, bucket.wait('k'))
      watch.on(`w${name}`, window.wait('k', { maxWaitMs: 3_600_000 }))
    }
    await vi.advanceTimersByTimeAsync(50)
    bucket.reset('k')
    window.reset('k')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(watch.passed).toEqual(['a@50', 'b@50', 'wa@50', 'wb@50', 'c@150'])
    window.close()
  })
})

describe('close', () => {
  test('ends all waits as aborted, and leaves no timer', async () => {
    const watch = new Watch()
    for (const rule of [tokenBucket({ limit: 1, window: '1s' }), concurrency({ limit: 1 })]) {
      const limiter = createLimiter(rule)
      limiter.take('k')
      for (let call = 0; call < 3; call++) watch.on('', limiter.wait('k'))
      limiter.close()
      await expect(limiter.wait('k')).rejects.toMatchObject({ code: 'CATRACA_LIMITER_CLOSED' })
    }
    await vi.advanceTimersByTimeAsync(0)
    expect(watch.refused).toEqual(Array.from({ length: 6 }, () => '@0 aborted'))
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('options of wait', () => {
  const limiter = createLimiter(tokenBucket({ limit: 1, window: '1s' }))
  test.each([
    [{ maxWaitMs: -1 }, 'CATRACA_OPTION_INVALID', 'options.maxWaitMs'],
    [{ maxWaitMs: Number.NaN }, 'CATRACA_OPTION_INVALID', 'options.maxWaitMs'],
    [{ maxWaitMs: 2 ** 31 }, 'CATRACA_OPTION_INVALID', 'options.maxWaitMs'],
    [{ maxWaitMs: '1s' }, 'CATRACA_OPTION_INVALID', 'options.maxWaitMs'],
    [{ signal: {} }, 'CATRACA_OPTION_INVALID', 'options.signal'],
    [{ signal: null }, 'CATRACA_OPTION_INVALID', 'options.signal'],
    [{ now: 1 }, 'CATRACA_OPTION_UNKNOWN', 'options.now'],
    [{ maxWait: 1 }, 'CATRACA_OPTION_UNKNOWN', 'options.maxWait'],
    [{ cost: 0 }, 'CATRACA_COST_INVALID', 'cost'],
    [null, 'CATRACA_OPTION_INVALID', 'options'],
  ])('%j is refused with its code and path', async (options, code, path) => {
    await expect(limiter.wait('k', options as never)).rejects.toMatchObject({ code, path })
    expect(limiter.peek('k').remaining).toBe(1)
  })

  test('a key that is no text rejects, the empty one is an ordinary key', async () => {
    await expect(limiter.wait(7 as never)).rejects.toMatchObject({ code: 'CATRACA_KEY_INVALID' })
    expect((await limiter.wait('')).allowed).toBe(true)
  })

  test.each([0, 1.5, -1, Number.NaN, '3', 1e7])('maxWaiting %s is refused', (maxWaiting) => {
    expect(() => createLimiter(tokenBucket({ limit: 1, window: '1s' }), { maxWaiting } as never)).toThrow(
      expect.objectContaining({ code: 'CATRACA_OPTION_INVALID', path: 'options.maxWaiting' }),
    )
  })
})
