import { type Decision, fixedWindow, slidingLog, tokenBucket } from 'catraca'
import { describe, expect, test, vi } from 'vitest'
import { leaseBounds } from '../../src/stores/lease/terms.ts'
import { type Notes, notes, times } from '../redis/support.ts'
import { frozen, hundred, Process, settle } from './setup.ts'

frozen()

type Mode = 'local' | 'open' | 'closed'

/** A process with some units in hand. */
async function holding(mode: Mode = 'local', noted: Notes = notes()): Promise<Process> {
  const one = new Process(hundred, { block: 10, ttl: '10s' }, { onStoreFailure: mode, on: noted.on })
  for (let request = 0; request < 20; request++) await one.limiter.take('k')
  await settle()
  return one
}

/** Takes what is in hand. */
async function spend({ limiter }: Process): Promise<Decision[]> {
  const held: Decision[] = []
  for (;;) {
    const decision = await limiter.take('k')
    if (decision.degraded) return held
    held.push(decision)
  }
}

describe.each(['gone', 'slow', 'refuses'] as const)('the store is %s', (fault) => {
  test.each([
    // A share of 100 among two, less the one that the last request of `spend` took.
    ['local', 49],
    ['open', 60],
    ['closed', 0],
  ] as const)('what is in hand is used first, then mode %s decides', async (mode, passes) => {
    const noted = notes()
    const one = await holding(mode, noted)
    one.store.fault = fault
    const held = await spend(one)
    expect(held.length).toBeGreaterThan(0)
    expect(held.length).toBeLessThanOrEqual(13)
    expect(held.every(({ allowed, charged }) => allowed && charged === 1)).toBe(true)
    const answers = await Promise.all(times(60, () => one.limiter.take('k')))
    expect(answers.every(({ degraded }) => degraded)).toBe(true)
    expect(answers.filter(({ allowed }) => allowed).length).toBe(passes)
    expect(noted.of('degraded').length).toBe(1)
    expect(one.limiter.health).not.toBe('healthy')
  })

  test('and is there again: it decides, with what it knew', async () => {
    const noted = notes()
    const one = await holding('closed', noted)
    one.store.fault = fault
    const held = await spend(one)
    await Promise.all(times(60, () => one.limiter.take('k')))
    one.store.fault = undefined
    await vi.advanceTimersByTimeAsync(2_000)
    expect(noted.of('recovered').length).toBe(1)
    expect(await one.limiter.take('k')).toMatchObject({ allowed: true, degraded: false })
    await vi.advanceTimersByTimeAsync(30_000)
    expect((await one.beside().limiter.peek('k')).remaining).toBe(100 - 20 - held.length - 1)
  })
})

test('callers who wait when the store fails are all answered, by its mode', async () => {
  const one = await holding('closed')
  let answer = (): void => {}
  one.store.until = new Promise<void>((resolve) => {
    answer = resolve
  })
  while (one.limiter.tryTake('k') !== undefined);
  one.store.fault = 'slow'
  const waiting = times(10, () => one.limiter.take('k'))
  await settle()
  answer()
  const answers = await Promise.all(waiting)
  expect(answers.map(({ degraded, reason }) => [degraded, reason])).toEqual(times(10, () => [true, 'store-closed']))
})

test('one answer that fails costs the callers under way their mode, and the next ask again', async () => {
  const one = new Process(hundred, { block: 10 }, { onStoreFailure: 'open' })
  one.store.nextFaults.push('slow')
  expect(await one.limiter.take('k')).toMatchObject({ allowed: true, degraded: true })
  expect(await one.limiter.take('k')).toMatchObject({ allowed: true, degraded: false, remaining: 99 })
})

test('a key that the store cannot answer for goes by its mode, and is told of', async () => {
  const noted = notes()
  const one = new Process(hundred, { block: 10 }, { onStoreFailure: 'closed', on: noted.on })
  one.store.unfit.add('bad')
  expect(await one.limiter.take('bad')).toMatchObject({ allowed: false, reason: 'store-closed', degraded: true })
  expect(await one.limiter.take('good')).toMatchObject({ allowed: true, degraded: false })
  expect(noted.of('store.fault').map(({ key }) => key)).toEqual(['bad'])
  expect(one.limiter.health).toBe('healthy')
})

test('units in hand that end while the store is gone are not used', async () => {
  const one = await holding('closed')
  one.store.fault = 'gone'
  await vi.advanceTimersByTimeAsync(30_000)
  expect(await one.limiter.take('k')).toMatchObject({ allowed: false, degraded: true })
})

test('a refund while the store is gone goes into the hand, else nowhere', async () => {
  const one = await holding('closed')
  const decision = await one.limiter.take('k')
  one.store.fault = 'gone'
  expect(await one.limiter.refund(decision)).toBe(1)
  const [first] = (await spend(one)) as [Decision]
  await vi.advanceTimersByTimeAsync(30_000)
  expect(await one.limiter.refund(first)).toBe(0)
})

describe('the store lost its memory', () => {
  const lose = ({ store }: Process, kind: 'flush' | 'restart' | 'failover'): void => store.hooks[0]?.lost(kind, 3)

  test.each(['flush', 'restart'] as const)('by a %s: what was used and is held is charged anew', async (kind) => {
    const noted = notes()
    const one = await holding('local', noted)
    const held = 80 - (await one.beside().limiter.peek('k')).remaining
    await one.limiter.take('once')
    lose(one, kind)
    await settle()
    expect(one.store.charged).toEqual([
      { key: 'k', units: 20 + held },
      { key: 'once', units: 1 },
    ])
    expect(noted.of('store.lost')).toEqual([{ name: 'store.lost', kind, decisionsAtRisk: 3 }])
  })

  test('is at most the limit', async () => {
    const rule = tokenBucket({ limit: 2, window: '1s', burst: 4 })
    const one = new Process(rule, { block: 2, ttl: '1s' })
    for (let request = 0; request < 100; request++) {
      await one.limiter.take('k')
      await vi.advanceTimersByTimeAsync(10)
    }
    lose(one, 'flush')
    await settle()
    expect(one.store.charged).toEqual([{ key: 'k', units: 4 }])
  })

  test('is charged once it takes it, after the last of several losses', async () => {
    const one = await holding('closed')
    one.store.fault = 'refuses'
    const held = await spend(one)
    lose(one, 'flush')
    lose(one, 'restart')
    await settle()
    expect(one.store.charged).toEqual([])
    one.store.fault = undefined
    await vi.advanceTimersByTimeAsync(2_000)
    expect(one.store.charged).toEqual([{ key: 'k', units: 20 + held.length }])
  })

  test('nothing is charged where a lease outlasts the rule, of which the store then thinks as used up', async () => {
    const one = new Process(slidingLog({ limit: 100, window: '10s' }), { block: 10, ttl: '10s' })
    for (let request = 0; request < 20; request++) await one.limiter.take('k')
    lose(one, 'flush')
    await settle()
    expect(one.store.charged).toEqual([])
  })

  test('by a failover: nothing is charged, and units are asked for as ever', async () => {
    const one = await holding()
    lose(one, 'failover')
    await settle()
    expect(one.store.charged).toEqual([])
    one.store.asked.length = 0
    while (one.limiter.tryTake('k') !== undefined) await settle()
    expect(one.store.asked[0]?.most).toBe(10)
  })

  test('for one lease time only what callers wait for is asked for', async () => {
    const one = await holding()
    lose(one, 'flush')
    one.store.asked.length = 0
    while (one.limiter.tryTake('k') !== undefined) await settle()
    expect(one.store.asked).toEqual([])
    await Promise.all(times(3, () => one.limiter.take('k')))
    expect(one.store.asked.map(({ least, most }) => [least, most])).toEqual([
      [1, 1],
      [1, 2],
    ])
    await vi.advanceTimersByTimeAsync(10_000)
    one.store.asked.length = 0
    for (let request = 0; request < 20; request++) await one.limiter.take('k')
    expect(Math.max(...one.store.asked.map(({ most }) => most))).toBeGreaterThan(1)
  })
})

test('a store that was closed answers nobody, and gets nothing back', async () => {
  const one = await holding()
  one.store.sent.length = 0
  one.store.hooks[0]?.closed()
  await settle()
  expect(one.store.sent).toEqual([])
  await expect(one.limiter.take('k')).rejects.toMatchObject({ code: 'CATRACA_LIMITER_CLOSED' })
})

test('the bounds of a lease: H, N × H where units are kept, 0 where they end with a window', () => {
  const terms = { block: 10 }
  expect(leaseBounds(hundred, terms, 3)).toEqual({ held: 13, over: 39, under: 26 })
  expect(leaseBounds(fixedWindow({ limit: 100, window: '1m' }), terms, 3)).toEqual({ held: 13, over: 0, under: 26 })
  expect(leaseBounds(hundred, { block: 1 }, 1)).toEqual({ held: 2, over: 2, under: 0 })
})
