import { implementations } from './implementations.mjs'

/** Measures one implementation in a process of its own: `worker.mjs NAME JSON-of-cells`; prints JSON. */
const [, , name, job] = process.argv
const { cells, warmMs, runMs, repeats } = JSON.parse(job)
const draws = new Map()
const sink = { value: 0 }
const results = []

for (const keys of new Set(cells.map((cell) => cell.keys))) {
  const names = keyNames(keys)
  for (const deny of [false, true]) {
    const wanted = cells.filter((cell) => cell.keys === keys && cell.deny === deny)
    if (wanted.length === 0) continue
    const implementation = await implementations[name](deny ? 1 : 1_000_000_000, keys)
    const nothing = await implementations.nothing()
    for (const key of names) await implementation.ask(key)
    for (const cell of wanted) {
      const loop = cell.awaited || implementation.promises ? turnsAwaited : turnsSync
      const order = drawOrder(keys, cell.zipf)
      await loop(implementation, names, order, cell.perTurn, warmMs)
      // The least of several short runs is what the code costs when nothing else disturbs it. The turn itself and the
      // reading of the key are measured empty and taken off; an await stays, as users pay for it.
      let [empty, full] = [Infinity, Infinity]
      for (let repeat = 0; repeat < repeats; repeat++) {
        empty = Math.min(empty, await turnsSync(nothing, names, order, cell.perTurn, runMs / 2))
        full = Math.min(full, await loop(implementation, names, order, cell.perTurn, runMs))
      }
      results.push({ ...cell, ns: Math.max(full - empty, 0.1) })
    }
  }
}
console.log(JSON.stringify({ results, sink: sink.value > 0 }))
process.exit(0)

function turnsSync({ ask, read }, names, order, perTurn, ms) {
  return new Promise((resolve) => {
    const start = process.hrtime.bigint()
    const end = start + BigInt(Math.round(ms * 1e6))
    let count = 0
    let sum = 0
    function turn() {
      for (let index = 0; index < perTurn; index++) sum += read(ask(names[order[count++ & 0xfffff]]))
      if ((count & 1023) < perTurn && process.hrtime.bigint() >= end) {
        sink.value += sum
        resolve(Number(process.hrtime.bigint() - start) / count)
      } else setImmediate(turn)
    }
    setImmediate(turn)
  })
}

function turnsAwaited({ ask, read }, names, order, perTurn, ms) {
  return new Promise((resolve) => {
    const start = process.hrtime.bigint()
    const end = start + BigInt(Math.round(ms * 1e6))
    let count = 0
    let sum = 0
    async function turn() {
      for (let index = 0; index < perTurn; index++) {
        try {
          sum += read(await ask(names[order[count++ & 0xfffff]]))
        } catch (denied) {
          sum += read(denied)
        }
      }
      if ((count & 1023) < perTurn && process.hrtime.bigint() >= end) {
        sink.value += sum
        resolve(Number(process.hrtime.bigint() - start) / count)
      } else setImmediate(turn)
    }
    setImmediate(turn)
  })
}

/** Flat strings of 12 characters, as a server cuts them from a request. */
function keyNames(count) {
  return Array.from({ length: count }, (_, index) =>
    Buffer.from(`user:${String(index).padStart(7, '0')}`, 'latin1').latin1Slice(),
  )
}

/** 2^20 indices: uniform, or Zipf with s = 1 over shuffled ranks; the same in every process. */
function drawOrder(keys, zipf) {
  const id = `${keys} ${zipf}`
  if (draws.has(id)) return draws.get(id)
  let state = 1_234_567
  const random = () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
  const order = new Int32Array(1 << 20)
  if (!zipf) for (let index = 0; index < order.length; index++) order[index] = Math.floor(random() * keys)
  else {
    const ranks = Int32Array.from({ length: keys }, (_, index) => index)
    for (let index = keys - 1; index > 0; index--) {
      const other = Math.floor(random() * (index + 1))
      ;[ranks[index], ranks[other]] = [ranks[other], ranks[index]]
    }
    const sums = new Float64Array(keys)
    let sum = 0
    for (let index = 0; index < keys; index++) sums[index] = sum += 1 / (index + 1)
    for (let index = 0; index < order.length; index++) {
      const target = random() * sum
      let [low, high] = [0, keys - 1]
      while (low < high) {
        const middle = (low + high) >> 1
        if (sums[middle] < target) low = middle + 1
        else high = middle
      }
      order[index] = ranks[low]
    }
  }
  draws.set(id, order)
  return order
}
