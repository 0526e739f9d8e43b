import { concurrency } from '../../algorithms/concurrency/concurrency.ts'
import { fixedWindow } from '../../algorithms/fixed-window/fixed-window.ts'
import { gcra } from '../../algorithms/gcra/gcra.ts'
import { leakyMeter } from '../../algorithms/leaky-meter/leaky-meter.ts'
import { leakyQueue } from '../../algorithms/leaky-queue/leaky-queue.ts'
import { quota } from '../../algorithms/quota/quota.ts'
import { slidingCounter } from '../../algorithms/sliding-counter/sliding-counter.ts'
import { slidingLog } from '../../algorithms/sliding-log/sliding-log.ts'
import { tokenBucket } from '../../algorithms/token-bucket/token-bucket.ts'
import type { Rule } from '../../core/rule.ts'
import type { Rules } from '../../limiter/arguments.ts'
import { createLimiter } from '../../limiter/create-limiter.ts'
import type { SharedLimiter } from '../../limiter/shared-limiter.ts'
import type { RemoteStore } from '../../stores/remote.ts'
import type { Store } from '../../stores/store.ts'
import type { DeclareTest } from '../adapter/app.ts'
import { equal } from '../check.ts'

/** Stores under test, over states of their own that begin empty. */
export interface StoreScene {
  /** The store of one instance, and that of another one over the same states. A memory store has one for both. */
  readonly stores: readonly [Store | RemoteStore, Store | RemoteStore]
  /** Called after the limiters were closed. */
  close(): Promise<void>
}

const window = '1000d'
/** Every rule, with so long a time that nothing comes back during a test. */
const rules: Readonly<Record<string, (limit: number) => Rule>> = {
  'fixed-window': (limit) => fixedWindow({ limit, window }),
  'fixed-window from the first': (limit) => fixedWindow({ limit, window, anchor: 'first' }),
  'sliding-log': (limit) => slidingLog({ limit, window }),
  'sliding-counter': (limit) => slidingCounter({ limit, window }),
  'token-bucket': (limit) => tokenBucket({ limit, window }),
  gcra: (limit) => gcra({ limit, window }),
  'leaky-meter': (limit) => leakyMeter({ limit, window }),
  'leaky-queue': (limit) => leakyQueue({ limit, window, capacity: limit }),
  quota: (limit) => quota({ limit, period: 'year' }),
  concurrency: (limit) => concurrency({ limit, permitTtl: '1h' }),
}

/** Keys that are hard to store: no two are one. */
const keys = [
  '',
  ' ',
  'a',
  'A',
  'a:b',
  'a/b',
  '{a}',
  '{a}{b}',
  '}{',
  'é',
  'e\u0301',
  '\u0000',
  '\n',
  '\ud800',
  '\udfff',
  '💧',
  '__proto__',
  'constructor',
  'x'.repeat(128),
  'x'.repeat(129),
  `${'x'.repeat(10_000)}1`,
  `${'x'.repeat(10_000)}2`,
]

type AnyLimiter<R extends Rules> = Pick<
  SharedLimiter<R>,
  'take' | 'peek' | 'refund' | 'release' | 'reset' | 'block' | 'unblock' | 'close'
>

/** What a test gets: limiters over one instance's store, or over that of another. */
type MakeLimiter = <R extends Rules>(rules: R, name?: string, instance?: 0 | 1) => AnyLimiter<R>

/**
 * Tests that a store keeps its contract, seen through limiters: exact for every rule, also when two instances ask at once;
 * stacks all or nothing; what is given back, forgotten and blocked; no two keys are one. About 60 tests. They say nothing
 * about outages, nor about speed.
 *
 * @param test Declares a test: `test` of vitest, `node:test`, jest.
 * @param start Starts fresh stores.
 */
export function storeSuite(test: DeclareTest, start: () => Promise<StoreScene>): void {
  const declare = (name: string, run: (make: MakeLimiter) => Promise<void>): void => {
    test(name, async () => {
      const scene = await start()
      const limiters: { close(): void }[] = []
      try {
        await run((what, name = 'suite', instance = 0) => {
          const limiter = limiterOf(what, name, scene.stores[instance])
          limiters.push(limiter)
          return limiter
        })
      } finally {
        for (const limiter of limiters) limiter.close()
        await scene.close()
      }
    })
  }
  for (const [kind, rule] of Object.entries(rules)) ruleTests(declare, kind, rule)
  stackTests(declare)
  keyTests(declare)
}

type Declare = (name: string, run: (make: MakeLimiter) => Promise<void>) => void

function ruleTests(declare: Declare, kind: string, rule: (limit: number) => Rule): void {
  declare(`${kind}: passes its limit, says what is left, refuses the rest`, async (make) => {
    const limiter = make(rule(3))
    for (const [allowed, remaining] of [
      [true, 2],
      [true, 1],
      [true, 0],
      [false, 0],
      [false, 0],
    ]) {
      const decision = await limiter.take('a')
      equal([decision.allowed, decision.remaining, decision.limit], [allowed, remaining, 3], 'a decision')
      if (decision.allowed !== decision.retryAfterMs > 0) continue
      throw new Error(
        `a decision that is ${decision.allowed ? 'allowed' : 'refused'} waits ${decision.retryAfterMs} ms`,
      )
    }
    equal((await limiter.take('b')).remaining, 2, 'left for another key')
  })

  declare(`${kind}: of 40 that ask at once on two instances its limit passes`, async (make) => {
    const first = make(rule(7))
    const second = twin(make, first, rule(7))
    const asked = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? first : second).take('a'))
    equal((await Promise.all(asked)).filter(({ allowed }) => allowed).length, 7, 'admitted')
  })

  declare(`${kind}: a cost passes whole or not at all`, async (make) => {
    const limiter = make(rule(10))
    const take = async (cost: number) => {
      const { allowed, remaining, reason } = await limiter.take('a', { cost })
      return [allowed, remaining, reason]
    }
    equal(await take(7), [true, 3, 'ok'], 'seven of ten')
    equal((await take(4))[0], false, 'four of three')
    equal(await take(3), [true, 0, 'ok'], 'three of three')
    equal((await take(11))[2], 'impossible', 'more than there ever is')
  })

  declare(`${kind}: peek counts nothing`, async (make) => {
    const limiter = make(rule(2))
    for (let index = 0; index < 3; index++) equal((await limiter.peek('a')).allowed, true, 'a look')
    equal((await limiter.take('a')).remaining, 1, 'left after one request')
    equal((await limiter.peek('a')).remaining, 1, 'left, as a look says')
  })

  declare(`${kind}: what is refunded is there again, once`, async (make) => {
    const limiter = make(rule(5))
    const decision = await limiter.take('a', { cost: 4 })
    // A bucket gives back what has not come back by itself meanwhile.
    equal(Math.round(await limiter.refund(decision)), 4, 'units given back')
    equal(await limiter.refund(decision), 0, 'units given back again')
    equal((await limiter.take('a', { cost: 5 })).allowed, true, 'all of them')
  })

  declare(`${kind}: a reset forgets what was used`, async (make) => {
    const limiter = make(rule(2))
    await limiter.take('a', { cost: 2 })
    await limiter.take('b', { cost: 2 })
    await limiter.reset('a')
    equal((await limiter.peek('a')).remaining, 2, 'left of what was reset')
    equal((await limiter.peek('b')).remaining, 0, 'left of the other')
  })

  declare(`${kind}: a blocked key is refused until the block ends`, async (make) => {
    const limiter = make(rule(2))
    await limiter.block('a', '1h')
    const { allowed, reason } = await limiter.take('a')
    equal([allowed, reason], [false, 'blocked'], 'a decision')
    equal((await limiter.take('b')).allowed, true, 'another key')
    await limiter.unblock('a')
    equal((await limiter.take('a')).remaining, 1, 'left after the block')
  })
}

function stackTests(declare: Declare): void {
  const stack = () => ({ loose: fixedWindow({ limit: 5, window }), tight: tokenBucket({ limit: 2, window }) })
  const both = { loose: 'k', tight: 'k' }

  declare('a stack is charged all or nothing', async (make) => {
    const limiter = make(stack())
    const answers: boolean[] = []
    for (let index = 0; index < 4; index++) answers.push((await limiter.take(both)).allowed)
    equal(answers, [true, true, false, false], 'admitted')
    const { policies } = await limiter.peek(both)
    equal(
      policies.map(({ remaining }) => remaining),
      [3, 0],
      'left of each',
    )
  })

  declare('a stack that many ask at once passes what its tightest policy does, and charges no more', async (make) => {
    const limiter = make(stack())
    const asked = await Promise.all(Array.from({ length: 20 }, () => limiter.take(both)))
    equal(asked.filter(({ allowed }) => allowed).length, 2, 'admitted')
    equal((await limiter.peek(both)).policies[0]?.remaining, 3, 'left of the loose one')
  })

  declare('a refund gives back to the whole stack', async (make) => {
    const limiter = make(stack())
    const decision = await limiter.take(both, { cost: 2 })
    equal(Math.round(await limiter.refund(decision)), 2, 'units given back')
    const { policies } = await limiter.peek(both)
    equal(
      policies.map(({ remaining }) => remaining),
      [5, 2],
      'left of each',
    )
  })

  declare('permits come back when they are released, each once', async (make) => {
    const limiter = make(concurrency({ limit: 2, permitTtl: '1h' }))
    const [first, second] = [await limiter.take('a'), await limiter.take('a')]
    equal((await limiter.take('a')).allowed, false, 'a third')
    await limiter.release(first)
    await limiter.release(first)
    equal((await limiter.peek('a')).remaining, 1, 'left after one was released twice')
    await limiter.release(second)
    equal((await limiter.peek('a')).remaining, 2, 'left after both were')
  })

  declare('limiters of other names have states of their own', async (make) => {
    const rule = fixedWindow({ limit: 1, window })
    const [one, other] = [make(rule, 'one'), make(rule, 'other')]
    equal([(await one.take('a')).allowed, (await other.take('a')).allowed], [true, true], 'admitted')
    const policies = make({ a: rule, b: rule }, 'stack')
    equal((await policies.take({ a: 'a', b: 'a' })).allowed, true, 'admitted by two policies of one limiter')
  })
}

function keyTests(declare: Declare): void {
  declare('no two keys are one', async (make) => {
    const limiter = make(fixedWindow({ limit: 1, window }))
    for (const key of keys) equal((await limiter.take(key)).allowed, true, `the first request of ${shown(key)}`)
    for (const key of keys) equal((await limiter.take(key)).allowed, false, `the second request of ${shown(key)}`)
  })

  declare('thousands of keys are told apart', async (make) => {
    const limiter = make(fixedWindow({ limit: 1, window }))
    const ask = () => Promise.all(Array.from({ length: 2_000 }, (_, index) => limiter.take(`key:${index}`)))
    equal((await ask()).filter(({ allowed }) => allowed).length, 2_000, 'admitted of the first requests')
    equal((await ask()).filter(({ allowed }) => allowed).length, 0, 'admitted of the second')
  })
}

function shown(key: string): string {
  return JSON.stringify(key.slice(0, 30))
}

/** A limiter of the same name on the other instance; a memory store has no other one. */
function twin<R extends Rules>(make: MakeLimiter, first: AnyLimiter<R>, rules: R): AnyLimiter<R> {
  try {
    return make(rules, 'suite', 1)
  } catch (error) {
    if ((error as { code?: string }).code === 'CATRACA_NAME_TAKEN') return first
    throw error
  }
}

function limiterOf<R extends Rules>(what: R, name: string, store: Store | RemoteStore): AnyLimiter<R> {
  const make = createLimiter as unknown as (rules: R, options: object) => AnyLimiter<R>
  return make(what, { name, store, ...('remote' in store && { storeFailure: { expectedInstances: 2 } }) })
}
