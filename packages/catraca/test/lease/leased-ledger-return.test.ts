import { type Decision, fixedWindow, slidingLog, tokenBucket } from 'catraca'
import { describe, expect, test, vi } from 'vitest'
import { Decision as MadeDecision, type Source } from '../../src/core/decision.ts'
import { LeasedLedger } from '../../src/stores/lease/leased-ledger.ts'
import { FaultyStore } from '../failure/faulty-store.ts'
import { times } from '../redis/support.ts'
import { frozen, hundred, noon, Process, settle, silent } from './setup.ts'

frozen()

/** What the store has left, as a process sees it that holds nothing. */
async function left(one: Process): Promise<number> {
  return (await one.beside().limiter.peek('k')).remaining
}

/** Takes so many units one by one; the last decisions are of units in hand. */
async function use(one: Process, units: number): Promise<Decision[]> {
  const taken: Decision[] = []
  for (let request = 0; request < units; request++) taken.push(await one.limiter.take('k'))
  await settle()
  return taken
}

describe('a refund', () => {
  test('goes back into the hand while the lease lasts, once per receipt', async () => {
    const one = new Process(hundred, { block: 20 })
    const taken = await use(one, 30)
    const before = await left(one)
    const { remaining } = await one.limiter.peek('k')
    one.store.sent.length = 0
    const last = taken.at(-1) as Decision
    expect(last.receipt).not.toBe('')
    expect(await one.limiter.refund(last)).toBe(1)
    expect(await one.limiter.refund(last)).toBe(0)
    expect(one.store.sent).toEqual([])
    expect(await left(one)).toBe(before)
    expect((await one.limiter.peek('k')).remaining).toBe(remaining + 1)
  })

  test('of more than may be in hand goes to the store; all of it is there again', async () => {
    const one = new Process(hundred, { block: 8 })
    const taken = await use(one, 40)
    for (const decision of taken) expect(await one.limiter.refund(decision)).toBe(1)
    expect((await one.limiter.peek('k')).remaining).toBe(100)
    expect(100 - (await left(one))).toBeLessThanOrEqual(11)
  })

  test('after the lease goes to the store', async () => {
    const one = new Process(hundred, { block: 20, ttl: '1s' })
    const taken = await use(one, 30)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await left(one)).toBe(70)
    one.store.sent.length = 0
    expect(await one.limiter.refund(taken.at(-1) as Decision)).toBe(1)
    expect(one.store.sent).toEqual(['refund'])
    expect(await left(one)).toBe(71)
  })

  test('of some of the units leaves the others used', async () => {
    const one = new Process(hundred, { block: 20 })
    await use(one, 30)
    const decision = await one.limiter.take('k', { cost: 5 })
    expect(decision.charged).toBe(5)
    await settle()
    const { remaining } = await one.limiter.peek('k')
    expect(await one.limiter.refund(decision, 2)).toBe(2)
    expect((await one.limiter.peek('k')).remaining).toBe(remaining + 2)
    expect(await one.limiter.refund(decision, 3)).toBe(0)
  })

  test('of a window that is over gives nothing, and asks nobody', async () => {
    const one = new Process(fixedWindow({ limit: 100, window: '1s' }), { block: 20, ttl: '10s' })
    vi.setSystemTime(noon + 500)
    const taken = await use(one, 30)
    vi.setSystemTime(noon + 1_000)
    await one.limiter.take('k')
    one.store.sent.length = 0
    for (const decision of taken) expect(await one.limiter.refund(decision)).toBe(0)
    expect(one.store.sent).toEqual([])
  })

  test('of a bucket gives what did not come back by itself', async () => {
    const one = new Process(tokenBucket({ limit: 100, window: '100s' }), { block: 20, ttl: '1s' })
    const taken = await use(one, 30)
    await vi.advanceTimersByTimeAsync(10_000)
    for (const decision of taken) await one.limiter.refund(decision)
    // Thirty were used and ten came back since. What is given back of charges that drained in part errs against the caller.
    const now = await left(one)
    expect(now).toBeGreaterThan(80)
    expect((await one.beside().limiter.take('k', { cost: now })).allowed).toBe(true)
    expect((await one.beside().limiter.take('k')).allowed).toBe(false)
  })

  test('of a refusal is nothing', async () => {
    const one = new Process(slidingLog({ limit: 3, window: '1h' }), { block: 2 })
    const answers = await use(one, 5)
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, true, false, false])
    expect(await one.limiter.refund(answers[4] as Decision)).toBe(0)
  })
})

describe('units go back', () => {
  test('that nobody uses, within two lease times; then no timer is left', async () => {
    const one = new Process(hundred, { block: 20, ttl: '10s' })
    await use(one, 30)
    expect(await left(one)).toBeLessThan(70)
    await vi.advanceTimersByTimeAsync(21_000)
    expect(await left(one)).toBe(70)
    // Looks are so many per lease time; another timer sweeps the memory of the store.
    await vi.advanceTimersByTimeAsync(30_000)
    const timers = vi.spyOn(globalThis, 'setTimeout')
    await vi.advanceTimersByTimeAsync(30_000)
    expect(timers.mock.calls.filter(([, ms]) => ms !== undefined && ms <= 500)).toEqual([])
    vi.restoreAllMocks()
  })

  test('at the end: another process can then take everything', async () => {
    const one = new Process(hundred, { block: 20 })
    await use(one, 30)
    const other = one.beside({ block: 20 })
    one.limiter.close()
    await settle()
    expect(await other.limiter.take('k', { cost: 70 })).toMatchObject({ allowed: true, remaining: 0 })
    await expect(one.limiter.take('k')).rejects.toMatchObject({ code: 'CATRACA_LIMITER_CLOSED' })
    one.limiter.close()
  })

  test('at the end also those that come later, and callers under way are answered', async () => {
    const one = new Process(hundred, { block: 20 })
    await use(one, 30)
    const other = one.beside()
    let answer = (): void => {}
    one.store.until = new Promise<void>((resolve) => {
      answer = resolve
    })
    const waiting = times(40, () => one.limiter.take('k'))
    one.limiter.close()
    answer()
    const answers = await Promise.all(waiting)
    await settle()
    const admitted = answers.filter(({ allowed, degraded }) => allowed && !degraded).length
    expect((await other.limiter.peek('k')).remaining).toBe(70 - admitted)
  })

  test('before a key is reset; then all of the limit is there', async () => {
    const one = new Process(hundred, { block: 20 })
    await use(one, 30)
    await one.limiter.reset('k')
    await settle()
    expect(await left(one)).toBe(100)
    expect((await one.limiter.peek('k')).remaining).toBe(100)
    const answers = await Promise.all(times(120, () => one.limiter.take('k')))
    expect(answers.filter(({ allowed }) => allowed).length).toBe(100)
  })
})

describe('a new list of policies', () => {
  const failure = { expectedInstances: 1 } as const
  const issuer = { release: () => {} }
  const lease = { block: 20, ttlUs: 10_000_000 }
  const leased = (name: string, rule = hundred): Source => ({ name, rule, issuer, lease })

  function opened(policies: readonly Source[]): { store: FaultyStore; ledger: LeasedLedger } {
    const store = new FaultyStore()
    return { store, ledger: new LeasedLedger(store, 'api', policies, silent, failure) }
  }

  const take = (ledger: LeasedLedger, member: number, cost = 1): Promise<Decision> =>
    ledger.apply([member], ['k'], undefined, [cost], true)
  /** What passes by the store and what is in hand here, which is nothing after a change. */
  const peek = async (ledger: LeasedLedger, member: number): Promise<number> =>
    (await ledger.apply([member], ['k'], undefined, [1], false)).remaining

  test('finds what was used, and nothing is held any more', async () => {
    const { store, ledger } = opened([leased('a'), leased('b')])
    for (let request = 0; request < 30; request++) await take(ledger, 0)
    await settle()
    ledger.replace([leased('b'), leased('a', slidingLog({ limit: 200, window: '1h' }))], failure)
    await settle()
    expect(await peek(ledger, 1)).toBe(170)
    store.asked.length = 0
    expect(await take(ledger, 1)).toMatchObject({ allowed: true, policy: 'a', limit: 200 })
    expect(store.asked).toEqual([{ key: 'k', least: 1, most: 1 }])
  })

  test('answers who waits, where the policy stays and where it is gone', async () => {
    const { store, ledger } = opened([leased('a'), leased('gone')])
    let answer = (): void => {}
    store.until = new Promise<void>((resolve) => {
      answer = resolve
    })
    const stays = times(5, () => take(ledger, 0))
    const gone = times(5, () => take(ledger, 1))
    // The store of the test finds a policy by its place when it answers, so this one keeps its own.
    ledger.replace([leased('a'), leased('b')], failure)
    answer()
    store.until = Promise.resolve()
    const answers = await Promise.all([...stays, ...gone])
    expect(answers.every((one) => one instanceof MadeDecision)).toBe(true)
    await settle()
    const admitted = (await Promise.all(stays)).filter(({ allowed, degraded }) => allowed && !degraded).length
    expect(admitted).toBeGreaterThan(0)
    expect(await peek(ledger, 0)).toBe(100 - admitted)
  })

  test('a charge from before can be given back after it', async () => {
    const { ledger } = opened([leased('a')])
    const taken: Decision[] = []
    for (let request = 0; request < 30; request++) taken.push(await take(ledger, 0))
    ledger.replace([leased('a', slidingLog({ limit: 200, window: '1h' }))], failure)
    await settle()
    expect(await ledger.refund(taken.at(-1) as Decision, 1)).toBe(1)
    expect(await peek(ledger, 0)).toBe(171)
  })

  test('may end the lease of a policy, or begin one', async () => {
    const { store, ledger } = opened([leased('a'), { name: 'b', rule: hundred, issuer }])
    for (let request = 0; request < 30; request++) await take(ledger, 0)
    ledger.replace([{ name: 'a', rule: hundred, issuer }, leased('b')], failure)
    await settle()
    store.sent.length = 0
    expect(await take(ledger, 0)).toMatchObject({ allowed: true, remaining: 69 })
    expect(store.sent).toEqual(['apply'])
    for (let request = 0; request < 3; request++) await take(ledger, 1)
    await settle()
    expect(ledger.tryApply([1], ['k'], undefined, [1])?.allowed).toBe(true)
  })
})
