import { concurrency, createLimiter, type Decision, fixedWindow, quota, slidingLog, tokenBucket } from 'catraca'
import { primaryStore } from 'catraca/workers'
import { describe, expect, test } from 'vitest'
import { type AnyLimiter, eventually, hooksOf, limitersOf, times, workersOf } from './support.ts'

const window = '1000d'
const rules = {
  window: fixedWindow({ limit: 100, window }),
  log: slidingLog({ limit: 100, window }),
  bucket: tokenBucket({ limit: 100, window }),
  quota: quota({ limit: 100, period: 'year' }),
  permits: concurrency({ limit: 100, permitTtl: '1h' }),
}

const at = (limiters: readonly AnyLimiter[], index: number): AnyLimiter =>
  limiters[index % limiters.length] as AnyLimiter

function admitted(decisions: readonly Decision[]): number {
  return decisions.filter(({ allowed }) => allowed).length
}

test.each(Object.entries(rules))('%s: four workers admit exactly the limit', async (_, rule) => {
  const limiters = limitersOf(workersOf(4).workers, rule)
  const decisions = await Promise.all(times(400, (index) => at(limiters, index).take('k')))
  expect(admitted(decisions)).toBe(100)
  expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
  expect((await at(limiters, 3).take('other')).remaining).toBe(99)
})

test('a stack is charged all or nothing, and says what each policy said', async () => {
  const { workers } = workersOf(2)
  const [one, other] = workers.map(({ store }) =>
    createLimiter(
      { user: fixedWindow({ limit: 10, window }), tenant: fixedWindow({ limit: 15, window }) },
      { name: 'stack', store, storeFailure: { expectedInstances: 2 } },
    ),
  ) as [ReturnType<typeof createLimiter>, ReturnType<typeof createLimiter>] & never[]
  const ask = (limiter: unknown, user: string): Promise<Decision> =>
    (limiter as { take(keys: object): Promise<Decision> }).take({ user, tenant: 't' })
  const decisions = await Promise.all(times(40, (index) => ask([one, other][index % 2], `u${index % 2}`)))
  expect(admitted(decisions)).toBe(15)
  const refused = await ask(other, 'u0')
  expect(refused.policies.map(({ policy, allowed }) => [policy, allowed])).toEqual([
    ['user', decisions.filter(({ allowed, key }, index) => allowed && index % 2 === 0 && key !== '').length < 10],
    ['tenant', false],
  ])
  // What the tenant refused was not charged to the user.
  const used = decisions.filter(({ allowed }, index) => allowed && index % 2 === 0).length
  expect(refused.policies[0]?.remaining).toBe(10 - used)
})

test('all questions of one turn travel in one message, there and back', async () => {
  const { workers } = workersOf(1)
  const [limiter] = limitersOf(workers, rules.window) as [AnyLimiter]
  await limiter.take('k')
  const before = workers[0]?.sent.length ?? 0
  await Promise.all(times(50, () => limiter.take('k')))
  expect((workers[0]?.sent.length ?? 0) - before).toBe(1)
})

test('what one worker gives back another can use, once', async () => {
  for (const rule of [rules.window, rules.log, rules.quota]) {
    const limiters = limitersOf(workersOf(2).workers, rule)
    const taken = await at(limiters, 0).take('k', { cost: 60 })
    expect((await at(limiters, 1).take('k', { cost: 60 })).allowed).toBe(false)
    expect(await at(limiters, 0).refund(taken, 30)).toBe(30)
    expect(await at(limiters, 0).refund(taken)).toBe(0)
    expect((await at(limiters, 1).peek('k')).remaining).toBe(70)
  }
})

test('nothing comes back of a charge from before a reset', async () => {
  const limiters = limitersOf(workersOf(2).workers, rules.window)
  const taken = await at(limiters, 0).take('k', { cost: 60 })
  await at(limiters, 1).reset('k')
  await at(limiters, 1).take('k', { cost: 90 })
  expect(await at(limiters, 0).refund(taken)).toBe(0)
  expect((await at(limiters, 0).peek('k')).remaining).toBe(10)
})

test('a block holds for all workers and keeps what was used; a reset ends it', async () => {
  const limiters = limitersOf(workersOf(2).workers, rules.window)
  await at(limiters, 0).take('k', { cost: 40 })
  await at(limiters, 0).block('k', '1h')
  const blocked = await at(limiters, 1).take('k')
  expect([blocked.allowed, blocked.reason, blocked.remaining]).toEqual([false, 'blocked', 0])
  expect(blocked.retryAfterMs).toBeGreaterThan(3_500_000)
  expect((await at(limiters, 1).take('k', { cost: 101 })).reason).toBe('impossible')
  expect((await at(limiters, 1).take('other')).allowed).toBe(true)
  await at(limiters, 1).unblock('k')
  expect((await at(limiters, 0).peek('k')).remaining).toBe(60)
  await at(limiters, 0).block('k', '1h')
  await at(limiters, 1).reset('k')
  expect((await at(limiters, 0).take('k')).remaining).toBe(99)
})

test('a long key and one that looks like its stored form are themselves for all workers', async () => {
  const limiters = limitersOf(workersOf(2).workers, fixedWindow({ limit: 1, window }))
  for (const key of ['x'.repeat(5_000), `\u0000${'0'.repeat(64)}`, '', '\ud800 alone', 'plain']) {
    expect((await at(limiters, 0).take(key)).allowed).toBe(true)
    const refused = await at(limiters, 1).take(key)
    expect([refused.allowed, refused.key]).toEqual([false, key])
    await at(limiters, 1).block(key, '1h')
    expect((await at(limiters, 0).take(key)).reason).toBe('blocked')
  }
})

describe('permits', () => {
  test('are free for others when released, once', async () => {
    const limiters = limitersOf(workersOf(2).workers, concurrency({ limit: 2, permitTtl: '1h' }))
    const [first] = [await at(limiters, 0).take('k'), await at(limiters, 0).take('k')]
    const refused = await at(limiters, 1).take('k')
    expect([refused.allowed, refused.reason]).toEqual([false, 'concurrency'])
    await at(limiters, 0).release(first)
    await at(limiters, 0).release(first)
    expect((await at(limiters, 1).peek('k')).remaining).toBe(1)
  })

  test('are renewed as long as they are held, and stay the same for who releases them', async () => {
    const limiters = limitersOf(workersOf(2).workers, concurrency({ limit: 2, permitTtl: '1500ms' }))
    const [kept, lost] = [await at(limiters, 0).take('k'), await at(limiters, 0).take('k')]
    for (let turn = 0; turn < 5; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 400))
      expect(await at(limiters, 0).renew(kept)).toBe(true)
    }
    expect((await at(limiters, 1).peek('k')).remaining).toBe(1)
    expect(await at(limiters, 0).renew(lost)).toBe(false)
    await at(limiters, 0).release(lost)
    expect((await at(limiters, 1).peek('k')).remaining).toBe(1)
    await at(limiters, 0).release(kept)
    expect(await at(limiters, 0).renew(kept)).toBe(false)
    expect((await at(limiters, 1).peek('k')).remaining).toBe(2)
  })

  test('of a worker that is gone come back; those of others, and what was used, stay', async () => {
    const { workers } = workersOf(2)
    const permits = limitersOf(workers, concurrency({ limit: 5, permitTtl: '1h' }))
    const windows = limitersOf(workers, rules.window, { name: 'window' })
    for (const index of [0, 0, 0, 1]) await at(permits, index).take('k')
    await at(windows, 0).take('k', { cost: 70 })
    expect((await at(permits, 1).peek('k')).remaining).toBe(1)
    workers[0]?.cut()
    await eventually('they are back', async () => (await at(permits, 1).peek('k')).remaining === 4)
    expect((await at(windows, 1).peek('k')).remaining).toBe(30)
  })

  test('that are renewed while more are held than a new limit allows stay counted', async () => {
    const { workers } = workersOf(1)
    const [worker] = workers
    const issuer = { release: () => {} }
    const hooks = hooksOf()
    const wide = [{ name: 'p', rule: concurrency({ limit: 4, permitTtl: '1h' }), issuer }]
    const ledger = worker?.store.open('guard', wide, hooks, { expectedInstances: 1 })
    if (ledger === undefined) throw new Error('no ledger')
    const held = await Promise.all(times(4, () => ledger.apply([0], ['k'], undefined, [1], true)))
    ledger.replace([{ name: 'p', rule: concurrency({ limit: 2, permitTtl: '1h' }), issuer }], { expectedInstances: 1 })
    for (const one of held) expect(await ledger.renew(one)).toBe(true)
    await ledger.refund(held[2] as Decision, 1)
    await ledger.refund(held[3] as Decision, 1)
    expect((await ledger.apply([0], ['k'], undefined, [1], false)).allowed).toBe(false)
    await ledger.refund(held[0] as Decision, 1)
    expect((await ledger.apply([0], ['k'], undefined, [1], false)).remaining).toBe(1)
  })
})

describe('policies that are replaced', () => {
  const issuer = { release: () => {} }
  const source = (limit: number, name = 'p') => ({ name, rule: fixedWindow({ limit, window }), issuer })

  function ledgers(count: number) {
    const { workers, primary } = workersOf(count)
    const opened = workers.map(({ store }) =>
      store.open('guard', [source(10)], hooksOf(), { expectedInstances: count }),
    )
    const take = (index: number, cost = 1, charge = true): Promise<Decision> =>
      (opened[index] as (typeof opened)[number]).apply([0], ['k'], undefined, [cost], charge)
    return { workers, primary, opened, take }
  }

  test('one worker after the other, keep what was used', async () => {
    const { opened, take } = ledgers(2)
    expect((await take(0, 4)).remaining).toBe(6)
    opened[0]?.replace([source(20)], { expectedInstances: 2 })
    // The old list and the new one side by side.
    expect((await take(0, 1)).remaining).toBe(15)
    expect((await take(1, 1)).remaining).toBe(4)
    expect((await take(0, 1)).remaining).toBe(13)
    opened[1]?.replace([source(20)], { expectedInstances: 2 })
    expect((await take(1, 13)).remaining).toBe(0)
    expect((await take(0, 1)).allowed).toBe(false)
  })

  test('with equal ones change nothing', async () => {
    const { opened, take } = ledgers(2)
    const before = await take(0, 4)
    opened[1]?.replace([source(10)], { expectedInstances: 2 })
    expect((await take(1, 1)).remaining).toBe(5)
    expect(await opened[0]?.refund(before, 4)).toBe(4)
  })

  test('a charge of before is given back after it', async () => {
    const { opened, take } = ledgers(1)
    const before = await take(0, 4)
    opened[0]?.replace([source(20)], { expectedInstances: 1 })
    expect((await take(0, 1)).remaining).toBe(15)
    expect(await opened[0]?.refund(before, 4)).toBe(4)
    expect((await take(0, 1, false)).remaining).toBe(19)
  })

  test('a charge of before is given back to its own policy, wherever that stands now', async () => {
    const { opened } = ledgers(1)
    const [ledger] = opened as [(typeof opened)[number]]
    ledger.replace([source(10, 'p'), source(10, 'q')], { expectedInstances: 1 })
    const { stack } = await ledger.apply([0, 1], ['k', 'k'], undefined, [4, 7], true)
    ledger.replace([source(10, 'q'), source(10, 'p')], { expectedInstances: 1 })
    expect(await ledger.refund(stack[0] as Decision, 4)).toBe(4)
    const { stack: left } = await ledger.apply([0, 1], ['k', 'k'], undefined, [1, 1], false)
    expect(left.map(({ policy, remaining }) => [policy, remaining])).toEqual([
      ['q', 3],
      ['p', 10],
    ])
  })

  test('a name that is gone from all is forgotten, with its blocks', async () => {
    const { opened, take } = ledgers(1)
    await take(0, 4)
    await opened[0]?.block(0, 'k', undefined, 1e12)
    opened[0]?.replace([source(10, 'q')], { expectedInstances: 1 })
    expect((await take(0)).remaining).toBe(9)
    opened[0]?.replace([source(10)], { expectedInstances: 1 })
    expect((await take(0)).remaining).toBe(9)
  })

  test('the last worker that dies leaves what was used to its successor; the last that closes does not', async () => {
    const primary = primaryStore()
    const first = workersOf(1, { primary }).workers
    const [limiter] = limitersOf(first, rules.window) as [AnyLimiter]
    await limiter.take('k', { cost: 70 })
    first[0]?.cut()
    const second = workersOf(1, { primary }).workers
    const [next] = limitersOf(second, rules.window) as [AnyLimiter]
    expect((await next.peek('k')).remaining).toBe(30)
    const [other] = limitersOf(second, rules.window, { name: 'other' }) as [AnyLimiter]
    next.close()
    // What is said on one channel is heard in order.
    await other.peek('k')
    other.close()
    const [last] = limitersOf(workersOf(1, { primary }).workers, rules.window) as [AnyLimiter]
    expect((await last.peek('k')).remaining).toBe(100)
  })
})

test('a limiter that is closed with its store is closed there too', async () => {
  const primary = primaryStore()
  const { workers } = workersOf(2, { primary })
  const [limiter] = limitersOf(workers.slice(0, 1), rules.window) as [AnyLimiter]
  await limiter.take('k', { cost: 70 })
  limiter.close()
  workers[0]?.store.close()
  const [other] = limitersOf(workers.slice(1), rules.window, { name: 'other' }) as [AnyLimiter]
  await eventually('it is forgotten', async () => {
    await other.peek('k')
    const [again] = limitersOf(workersOf(1, { primary }).workers, rules.window) as [AnyLimiter]
    const { remaining } = await again.peek('k')
    return remaining === 100
  })
})

test('what comes back after a limiter was closed does not make the store look ill', async () => {
  const { workers } = workersOf(1)
  const [permits] = limitersOf(workers, concurrency({ limit: 2, permitTtl: '1h' })) as [AnyLimiter]
  const [other] = limitersOf(workers, rules.window, { name: 'other' }) as [AnyLimiter]
  const held = await permits.take('k')
  permits.close()
  await permits.release(held)
  expect(await permits.renew(held)).toBe(false)
  expect((await other.take('k')).degraded).toBe(false)
  expect(other.health).toBe('healthy')
})

describe('grants', () => {
  const issuer = { release: () => {} }

  test('as many as pass, at least the least, else a refusal of it', async () => {
    const { workers } = workersOf(1)
    const rule = fixedWindow({ limit: 10, window })
    const ledger = workers[0]?.store.open('guard', [{ name: 'p', rule, issuer }], hooksOf(), { expectedInstances: 1 })
    if (ledger === undefined) throw new Error('no ledger')
    const grant = async (least: number, most: number) => {
      const { allowed, cost, charged, remaining } = await ledger.grant(0, 'k', undefined, least, most)
      return { allowed, cost, charged, remaining }
    }
    expect(await grant(2, 4)).toEqual({ allowed: true, cost: 4, charged: 4, remaining: 6 })
    const part = await ledger.grant(0, 'k', undefined, 1, 100)
    expect([part.allowed, part.cost, part.remaining]).toEqual([true, 6, 0])
    expect(await grant(1, 4)).toEqual({ allowed: false, cost: 1, charged: 0, remaining: 0 })
    expect(await ledger.refund(part, 5)).toBe(5)
    expect(await grant(6, 8)).toEqual({ allowed: false, cost: 6, charged: 0, remaining: 5 })
    expect(await grant(5, 8)).toEqual({ allowed: true, cost: 5, charged: 5, remaining: 0 })
    expect((await ledger.grant(0, 'k', undefined, 11, 11)).reason).toBe('impossible')
    await ledger.block(0, 'other', undefined, 1e9)
    expect((await ledger.grant(0, 'other', undefined, 1, 5)).reason).toBe('blocked')
    await ledger.charge(0, 'third', undefined, 25)
    expect((await ledger.grant(0, 'third', undefined, 1, 5)).allowed).toBe(false)
  })
})
