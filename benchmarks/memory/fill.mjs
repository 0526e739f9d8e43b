import { implementations } from './implementations.mjs'

/** Fills one implementation with fresh keys: bytes per key, resident growth and the worst pause. Needs --expose-gc. */
const [, , name, countText] = process.argv
const count = Number(countText)
const implementation = await implementations[name](1_000_000_000, count)
const perBlock = 256

for (let index = 0; index < 1_000; index++) await implementation.ask(key(index))
settle()
const before = process.memoryUsage()
let worst = 0
const start = process.hrtime.bigint()
for (let index = 1_000; index < count; ) {
  const blockStart = process.hrtime.bigint()
  if (implementation.promises)
    for (let n = 0; n < perBlock && index < count; n++) await implementation.ask(key(index++))
  else for (let n = 0; n < perBlock && index < count; n++) implementation.ask(key(index++))
  const ms = Number(process.hrtime.bigint() - blockStart) / 1e6
  if (ms > worst) worst = ms
}
const nsPerKey = Number(process.hrtime.bigint() - start) / (count - 1_000)
const resident = process.memoryUsage().rss
settle()
const after = process.memoryUsage()
const used = (usage) => usage.heapUsed + usage.arrayBuffers
console.log(
  JSON.stringify({
    bytesPerKey: (used(after) - used(before)) / (count - 1_000),
    residentPerKey: (resident - before.rss) / (count - 1_000),
    worstPauseMs: worst,
    nsPerKey,
  }),
)
// Read once more, so that nothing of it was collected before it was measured.
await implementation.ask(key(0))
process.exit(0)

/** A flat string that nobody else holds, as a server cuts it from a request. */
function key(index) {
  return Buffer.from(`user:${String(index).padStart(7, '0')}`, 'latin1').latin1Slice()
}

function settle() {
  globalThis.gc()
  globalThis.gc()
}
