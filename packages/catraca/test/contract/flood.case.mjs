import { createLimiter, memoryStore, tokenBucket } from 'catraca'

/** Five million callers, one request each, against a store for one million keys; prints JSON. Needs --expose-gc. */
const count = Number(process.argv[2] ?? 5_000_000)
const store = memoryStore({ seed: 1 })
const limiter = createLimiter(tokenBucket({ limit: 10, window: '1h' }), { store })
const limited = Array.from({ length: 1_000 }, (_, index) => key('limited', index))
for (const one of limited) limiter.take(one, { cost: 10 })

globalThis.gc()
const before = process.memoryUsage().rss
let resident = before
let mostKeys = 0
const start = process.hrtime.bigint()
for (let index = 0; index < count; index++) {
  limiter.take(key('user', index))
  if (index % 65_536 !== 0) continue
  resident = Math.max(resident, process.memoryUsage().rss)
  mostKeys = Math.max(mostKeys, store.stats().keys)
}
const nsPerKey = Number(process.hrtime.bigint() - start) / count
const stillRefused = limited.filter((one) => !limiter.take(one).allowed).length
const { evicted, evictedLimited } = store.stats()
const residentMB = (resident - before) / 1e6
console.log(JSON.stringify({ count, mostKeys, residentMB, stillRefused, evicted, evictedLimited, nsPerKey }))

/** A fresh flat string, as a server cuts it from a request. */
function key(kind, index) {
  return Buffer.from(`${kind}:${String(index).padStart(7, '0')}`, 'latin1').latin1Slice()
}
