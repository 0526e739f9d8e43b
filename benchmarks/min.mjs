import { implementations } from './memory/implementations.mjs'

const [, , name, n, deny, per] = process.argv
const im = await implementations[name](deny === '1' ? 1 : 1e9, +n)
const keys = Array.from({ length: +n }, (_, i) =>
  Buffer.from(`user:${String(i).padStart(7, '0')}`, 'latin1').latin1Slice(),
)
for (const k of keys) await im.awaited(k)
const P = +per
let best = 1e9
let s = 0
let c = 0
function once() {
  return new Promise((r) => {
    const t = process.hrtime.bigint()
    let turns = 0
    const T = Math.ceil(60000 / P)
    let inner = 0n
    function turn() {
      const a = process.hrtime.bigint()
      for (let j = 0; j < P; j++) s += im.take(keys[(c = (c * 7 + 13) & 1048575) % keys.length])
      inner += process.hrtime.bigint() - a
      if (++turns < T) setImmediate(turn)
      else r([Number(inner) / (T * P), Number(process.hrtime.bigint() - t) / (T * P)])
    }
    setImmediate(turn)
  })
}
let b2 = 1e9
for (let i = 0; i < 60; i++) {
  const [a, b] = await once()
  best = Math.min(best, a)
  b2 = Math.min(b2, b)
}
console.log(name, n, deny, per, 'inner', best.toFixed(1), 'total', b2.toFixed(1))
process.exit()
