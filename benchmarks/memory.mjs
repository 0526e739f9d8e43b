import {
  folder,
  machine,
  measure,
  median,
  options,
  prepare,
  progress,
  shuffled,
  versionOf,
  writePart,
} from './lib/bench.mjs'
import { implementations, packages } from './memory/implementations.mjs'
import { judge, report } from './memory/report.mjs'

/** How fast, how large and how even is a decision in memory, beside the libraries people use? */
const { json, quick } = options()
prepare()
process.chdir(folder)

const names = Object.keys(implementations).filter((name) => name !== 'nothing')
const rounds = quick ? 1 : 2
const fills = quick ? 1 : 2
const fillKeys = quick ? 200_000 : 1_000_000
const cells = cellsOf(quick ? [1, 1_000, 100_000] : [1, 1_000, 100_000, 1_000_000])
const job = JSON.stringify({ cells, warmMs: quick ? 25 : 60, runMs: quick ? 15 : 25, repeats: quick ? 2 : 4 })
const total = names.length * (rounds + fills) + packages.length + 1

let done = 0
const speeds = Object.fromEntries(names.map((name) => [name, cells.map(() => [])]))
for (let round = 0; round < rounds; round++) {
  for (const name of shuffled(names)) {
    progress(done++, total, `round ${round + 1}: ${name}`)
    for (const result of measure('memory/worker.mjs', [name, job]).results) {
      speeds[name][cells.findIndex((cell) => sameCell(cell, result))].push(result.ns)
    }
  }
}
const memory = Object.fromEntries(names.map((name) => [name, []]))
for (let round = 0; round < fills; round++) {
  for (const name of shuffled(names)) {
    progress(done++, total, `fill ${round + 1}: ${name}`)
    memory[name].push(measure('memory/fill.mjs', [name, String(fillKeys)], ['--expose-gc']))
  }
}
const imports = {}
for (const name of packages) {
  progress(done++, total, `import: ${name}`)
  const times = Array.from({ length: quick ? 3 : 9 }, () => measure('memory/imports.mjs', [name, '--time']).ms)
  imports[name] = { ms: median(times), ...measure('memory/imports.mjs', [name]) }
}
progress(done++, total, 'flood')
const flood = measure(
  '../packages/catraca/test/contract/flood.case.mjs',
  [String(quick ? 1_500_000 : 5_000_000)],
  ['--expose-gc'],
)
progress(total, total, 'done')

const results = {
  machine: machine(),
  date: new Date().toISOString().slice(0, 10),
  versions: Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
  rounds,
  fillKeys,
  cells: cells.map((cell, index) => ({
    ...cell,
    ns: Object.fromEntries(names.map((name) => [name, median(speeds[name][index])])),
    least: Object.fromEntries(names.map((name) => [name, Math.min(...speeds[name][index])])),
  })),
  memory: Object.fromEntries(names.map((name) => [name, medians(memory[name])])),
  imports,
  flood,
}
results.bars = judge(results)

if (json) console.log(JSON.stringify(results))
else console.log(report(results))
if (!quick && !json) writePart('memory', report(results))

/** Every kind of traffic: how many keys, drawn how, allowed or denied, how many per event-loop turn, awaited or not. */
function cellsOf(keyCounts) {
  const list = []
  for (const keys of keyCounts) {
    for (const zipf of keys === 1 ? [false] : [false, true]) {
      for (const deny of [false, true]) {
        for (const perTurn of [1, 8, 64]) {
          for (const awaited of [false, true]) list.push({ keys, zipf, deny, perTurn, awaited })
        }
      }
    }
  }
  return list
}

function sameCell(a, b) {
  return ['keys', 'zipf', 'deny', 'perTurn', 'awaited'].every((field) => a[field] === b[field])
}

function medians(list) {
  return Object.fromEntries(Object.keys(list[0]).map((field) => [field, median(list.map((one) => one[field]))]))
}
