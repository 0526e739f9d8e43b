// Before the library, which keeps the clock that it finds.
import './worker-clock.mjs'
import * as catraca from 'catraca'
import { redisStore } from 'catraca/redis'
import { clientOf, ready, stepped } from './worker-client.mjs'
import { machineMs, wasMoved } from './worker-clock.mjs'
import { Log } from './worker-log.mjs'

/**
 * A process that limits: asks its limiters at a steady pace, whatever becomes of the store, and tells its parent what
 * they said. Forked by fleet.ts; the first message is the order, `go` begins, `stop` ends it.
 */
const tickMs = 5
/** So few that a block of each is used during a lease. */
const calmKeys = 6
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
const leases = order.plan.some(({ lease }) => lease !== undefined)
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
if (leases && wasMoved()) failures.push('the clock of the machine was moved')
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
    // A process that is killed has told what it decided but for the last moment.
    if (leases) log.flush()
    pace()
  }, tickMs)
}

async function ask() {
  const { limiter, first, policies, holds, lease } = limiters[asked % limiters.length]
  const keyIndex = lease === undefined ? steadyKey() : surgingKey()
  const cost = !holds && Math.random() < 0.1 ? 2 : 1
  // Times that other clocks are compared with are read from the clock of the machine: that of `performance` begins some
  // milliseconds off where a process is held up at its start.
  const sentMs = machineMs()
  const begun = performance.now()
  const decision = await limiter.take(argumentOf(policies, order.keys[keyIndex]), { cost })
  const tookMs = performance.now() - begun
  let releasedMs = 0
  if (holds && decision.allowed) {
    await sleep(60)
    releasedMs = machineMs()
    await limiter.release(decision)
  }
  decision.stack.forEach((part, index) => {
    const key = policies[index].common ? order.keys.length : keyIndex
    const takenUs = lease === undefined || !decision.allowed ? 0 : takenAt(part, lease, begun, tookMs)
    log.decision(first + index, key, decision, part, takenUs, index === 0, sentMs, tookMs, releasedMs)
  })
}

/** Half of the load is for few keys. */
function steadyKey() {
  const { hotKeys, keys } = order
  return Math.random() < 0.5 ? below(hotKeys) : hotKeys + below(keys.length - hotKeys)
}

/**
 * Leases are attacked where all processes hold units of a key that is asked for now and then, and all at once ask for
 * more of it than there is: half of the load is for another such key each second.
 */
function surgingKey() {
  const { hotKeys } = order
  const draw = Math.random()
  if (draw < 0.5) return hotKeys + (Math.floor(machineMs() / 1_000) % calmKeys)
  return draw < 0.75 ? below(hotKeys) : hotKeys + below(calmKeys)
}

function below(count) {
  return Math.floor(Math.random() * count)
}

/**
 * When a unit in hand was taken, by the monotonic clock, which must be during the call; 0 where the caller waited for the
 * store: then the unit counts when the store charged it, which is what the decision says.
 */
function takenAt(part, { block }, begun, tookMs) {
  // More than a block is asked for by itself.
  if (part.degraded || part.cost > block) return 0
  const { grant } = part.lot ?? {}
  if (grant === undefined) {
    failures.push('an admission without a unit of a lease')
    return 0
  }
  const sinceUs = part.nowUs - grant.decision.nowUs
  if (sinceUs === 0) return 0
  const takenUs = grant.sentUs + sinceUs
  if (takenUs < Math.floor(begun * 1_000) || takenUs > (begun + tookMs) * 1_000) {
    failures.push(`an admission at ${takenUs} us of a call from ${begun} ms for ${tookMs} ms`)
  }
  return takenUs
}

function limiterOf({ name, mode, policies, lease }, index) {
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
    ...(lease !== undefined && { lease }),
  })
  const first = order.plan.slice(0, index).reduce((sum, one) => sum + one.policies.length, 0)
  return { limiter, first, policies, lease, holds: policies[0].law.kind === 'permits' }
}

function ruleOf({ kind, limit, windowMs, burst }) {
  if (kind === 'bucket') return catraca.tokenBucket({ limit, window: windowMs, burst })
  if (kind === 'log') return catraca.slidingLog({ limit, window: windowMs })
  if (kind === 'fixed') return catraca.fixedWindow({ limit, window: windowMs })
  if (kind === 'first') return catraca.fixedWindow({ limit, window: windowMs, anchor: 'first' })
  if (kind === 'counter') return catraca.slidingCounter({ limit, window: windowMs })
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
