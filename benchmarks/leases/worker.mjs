// One load and one size of block: decisions of 64 callers who arrive in one turn of the event loop, as in a busy server.
// Prints JSON: for each way of asking, decisions per second, trips per decision, the share that waited for the store.
import { createLimiter, tokenBucket } from 'catraca'
import { redisStore } from 'catraca/redis'
import { Redis } from 'ioredis'

const [load, block, ttlMsText, msText, portText] = process.argv.slice(2)
const [ttlMs, ms] = [ttlMsText, msText].map(Number)
const callers = 64
const client = new Redis(Number(portText))
await client.ping()

const options = {
  name: 'a',
  store: redisStore({ client, prefix: 'bench', timeoutMs: 5_000 }),
  storeFailure: { expectedInstances: 1 },
}
// A limit that is never reached: what is measured is the way, not the refusals.
const rule = tokenBucket({ limit: 1e9, window: '1h' })
const limiter = createLimiter(
  rule,
  block === 'exact' ? options : { ...options, lease: { block: Number(block), ttl: ttlMs } },
)

/** Keys in the order in which they are asked for: of rank r one in r times as often as the first. */
function drawn(count) {
  const names = Array.from({ length: count }, (_, index) => `user:${String(index).padStart(6, '0')}`)
  if (count === 1) return names
  const sums = []
  let sum = 0
  for (let rank = 1; rank <= count; rank++) sums.push((sum += 1 / rank))
  let state = 12_345
  return Array.from({ length: 2 ** 20 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const wanted = (state / 2 ** 32) * sum
    let [low, high] = [0, count - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle] < wanted) low = middle + 1
      else high = middle
    }
    return names[low]
  })
}

const keys = drawn({ 'one hot key': 1, '1k Zipf': 1_000, '100k Zipf': 100_000 }[load])
let turn = 0
let waited = 0
let free = callers

/** In every turn of the event loop each caller who does not wait asks once; who must wait asks again when it was answered. */
async function run(ask, forMs) {
  let decisions = 0
  waited = 0
  const before = await calls()
  const began = performance.now()
  await new Promise((resolve) => {
    const next = () => {
      if (performance.now() - began < forMs) setImmediate(next)
      else if (free === callers) {
        resolve()
        return
      } else {
        setImmediate(next)
        return
      }
      for (let asking = free; asking > 0; asking--) {
        decisions++
        ask(keys[turn++ % keys.length])
      }
    }
    next()
  })
  const tookMs = performance.now() - began
  const trips = (await calls()) - before
  return { perSecond: (decisions / tookMs) * 1_000, trips: trips / decisions, waiting: waited / decisions }
}

function wait(key) {
  free--
  waited++
  void limiter.take(key).then(() => free++)
}

/** Takes the answer at once where there is one. */
function tryFirst(key) {
  if (limiter.tryTake(key) === undefined) wait(key)
}

async function calls() {
  const stats = await client.info('commandstats')
  return [...stats.matchAll(/cmdstat_evalsha:calls=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0)
}

await run(tryFirst, block === 'exact' ? 500 : ttlMs)
const results = { tryTake: [], awaited: [] }
for (let part = 0; part < 3; part++) {
  results.tryTake.push(await run(tryFirst, ms))
  results.awaited.push(await run(wait, ms))
}
console.log(JSON.stringify(results))
process.exit(0)
