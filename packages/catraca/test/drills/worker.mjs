import * as catraca from 'catraca'
import { redisStore } from 'catraca/redis'
import { clientOf, ready, stepped } from './worker-client.mjs'
import { Log } from './worker-log.mjs'

/**
 * A process that limits: asks its limiters at a steady pace, whatever becomes of the store, and tells its parent what
 * they said. Forked by fleet.ts; the first message is the order, `go` begins, `stop` ends it.
 */
const tickMs = 5
const failures = []
process.on('unhandledRejection', (reason) => failures.push(`rejection: ${reason?.stack ?? reason}`))
process.on('uncaughtException', (error) => failures.push(`exception: ${error.stack}`))

const order = await message()
const log = new Log(process)
const client = clientOf(order.target)
await ready(client)
const store = redisStore({
  client: order.steppedClock ? stepped(client) : client,
  prefix: order.prefix,
  timeoutMs: order.timeoutMs,
})
const limiters = order.plan.map(limiterOf)
await warm()

let stopping = false
let longestLagMs = 0
const underWay = new Set()
process.send({ ready: true })
await message('go')
const beganMs = performance.now()
let asked = 0
pace()
await message('stop')
stopping = true
while (underWay.size > 0) await Promise.all(underWay)
log.flush()
process.send({ stopped: { failures, longestLagMs } })
for (const { limiter } of limiters) limiter.close()
store.close()
client.disconnect()
process.disconnect()

/** Asks for as many decisions as are due by the clock, so that a late timer costs none. */
function pace() {
  if (stopping) return
  const dueMs = performance.now() + tickMs
  setTimeout(() => {
    longestLagMs = Math.max(longestLagMs, performance.now() - dueMs)
    const due = Math.floor(((performance.now() - beganMs) * order.rate) / 1_000)
    for (let left = Math.min(due - asked, 256); left > 0; left--) {
      asked++
      const one = ask()
        .catch((error) => failures.push(`take: ${error.stack}`))
        .finally(() => underWay.delete(one))
      underWay.add(one)
    }
    pace()
  }, tickMs)
}

async function ask() {
  const { limiter, first, policies, holds } = limiters[asked % limiters.length]
  const hot = Math.random() < 0.5
  const keyIndex = hot
    ? Math.floor(Math.random() * order.hotKeys)
    : order.hotKeys + Math.floor(Math.random() * (order.keys.length - order.hotKeys))
  const cost = !holds && Math.random() < 0.1 ? 2 : 1
  // Times that other clocks are compared with are read from the clock of the machine: that of `performance` begins some
  // milliseconds off where a process is held up at its start.
  const sentMs = Date.now()
  const begun = performance.now()
  const decision = await limiter.take(argumentOf(policies, order.keys[keyIndex]), { cost })
  const tookMs = performance.now() - begun
  let releasedMs = 0
  if (holds && decision.allowed) {
    await sleep(60)
    releasedMs = Date.now()
    await limiter.release(decision)
  }
  decision.stack.forEach((part, index) => {
    const key = policies[index].common ? order.keys.length : keyIndex
    log.decision(first + index, key, decision, part, index === 0, sentMs, tookMs, releasedMs)
  })
}

function limiterOf({ name, mode, policies }, index) {
  const rules = policies.map(({ name, law }) => [name, ruleOf(law)])
  const on = Object.fromEntries(
    ['degraded', 'recovered', 'store.fault', 'store.lost', 'loop.paused', 'clock.step'].map((event) => [
      event,
      (details) => log.event(name, event, details),
    ]),
  )
  const limiter = catraca.createLimiter(rules.length === 1 ? rules[0][1] : Object.fromEntries(rules), {
    name,
    store,
    on,
    onStoreFailure: mode,
    storeFailure: { expectedInstances: order.instances },
  })
  const first = order.plan.slice(0, index).reduce((sum, one) => sum + one.policies.length, 0)
  return { limiter, first, policies, holds: policies[0].law.kind === 'permits' }
}

function ruleOf({ kind, limit, windowMs, burst }) {
  if (kind === 'bucket') return catraca.tokenBucket({ limit, window: windowMs, burst })
  if (kind === 'log') return catraca.slidingLog({ limit, window: windowMs })
  if (kind === 'fixed') return catraca.fixedWindow({ limit, window: windowMs })
  return catraca.concurrency({ limit, permitTtl: windowMs })
}

function argumentOf(policies, key) {
  if (policies.length === 1) return key
  return Object.fromEntries(policies.map(({ name, common }) => [name, common ? order.commonKey : key]))
}

/** Until the store decides for every limiter, and knows the scripts. */
async function warm() {
  for (const { limiter, policies } of limiters) {
    while ((await limiter.peek(argumentOf(policies, order.keys[0]))).degraded) await sleep(20)
  }
}

function message(wanted) {
  return new Promise((resolve) => {
    const listen = (received) => {
      if (wanted !== undefined && received !== wanted) return
      process.off('message', listen)
      resolve(received)
    }
    process.on('message', listen)
  })
}

function sleep(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
