import { concurrency, createLimiter, fixedWindow, quota, tokenBucket } from 'catraca'
import { channelOf, workerStore } from 'catraca/workers'

/**
 * A process that shares its limits with others. Forked by processes.test.ts: the first order opens the limiters, the
 * others ask them; each is answered under its number.
 */
const kinds = { concurrency, fixedWindow, quota, tokenBucket }
const limiters = new Map()
const held = []
let store

process.on('message', ({ order, id, ...rest }) => {
  if (order !== undefined) void Promise.resolve(orders[order](rest)).then((said) => process.send({ id, said }))
})
process.on('disconnect', () => process.exit(0))
process.send({ ready: true })

const orders = {
  open({ workers, plan }) {
    store = workerStore({ channel: channelOf(process), workers })
    for (const { name, rules, mode } of plan) {
      const made = Object.entries(rules).map(([policy, [kind, options]]) => [policy, kinds[kind](options)])
      const limiter = createLimiter(made.length === 1 ? made[0][1] : Object.fromEntries(made), {
        name,
        store,
        onStoreFailure: mode,
        storeFailure: { expectedInstances: workers },
      })
      limiters.set(name, limiter)
    }
    return true
  },
  /** Asks so many times at once. */
  async take({ name, keys, times, cost = 1, hold = false }) {
    const limiter = limiters.get(name)
    const decisions = await Promise.all(Array.from({ length: times }, () => limiter.take(keys, { cost })))
    if (hold) held.push(...decisions.filter(({ allowed }) => allowed))
    return decisions.map(({ allowed, degraded, reason, remaining, policies }) => ({
      allowed,
      degraded,
      reason,
      remaining,
      left: policies.map((policy) => policy.remaining),
    }))
  },
  /** Takes and gives back. */
  async refund({ name, keys, cost }) {
    const limiter = limiters.get(name)
    return limiter.refund(await limiter.take(keys, { cost }))
  },
  async releaseAll({ name }) {
    await Promise.all(held.splice(0).map((decision) => limiters.get(name).release(decision)))
  },
  block: ({ name, keys, ms }) => limiters.get(name).block(keys, ms),
  reset: ({ name, keys }) => limiters.get(name).reset(keys),
}
