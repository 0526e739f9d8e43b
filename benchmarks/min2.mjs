import * as c from 'catraca'

const [, , n, mode] = process.argv
const l = c.createLimiter(c.tokenBucket({ limit: 1e9, window: '1h' }))
const keys = Array.from({ length: +n }, (_, i) =>
  Buffer.from(`user:${String(i).padStart(7, '0')}`, 'latin1').latin1Slice(),
)
for (const k of keys) l.take(k)
let s = 0,
  cc = 0
const f = {
  none: (k) => {
    l.take(k)
    return 1
  },
  allowed: (k) => (l.take(k).allowed ? 1 : 0),
  rem: (k) => l.take(k).remaining,
  retry: (k) => l.take(k).retryAfterMs,
  all: (k) => {
    const d = l.take(k)
    return (d.allowed ? 1 : 0) + d.remaining + d.retryAfterMs
  },
}[mode]
function once() {
  return new Promise((r) => {
    let turns = 0
    const T = 1000
    let inner = 0n
    function turn() {
      const a = process.hrtime.bigint()
      for (let j = 0; j < 64; j++) s += f(keys[(cc = (cc * 7 + 13) & 1048575) % keys.length])
      inner += process.hrtime.bigint() - a
      if (++turns < T) setImmediate(turn)
      else r(Number(inner) / (T * 64))
    }
    setImmediate(turn)
  })
}
let b = 1e9
for (let i = 0; i < 80; i++) b = Math.min(b, await once())
console.log(mode, n, b.toFixed(1))
process.exit()
