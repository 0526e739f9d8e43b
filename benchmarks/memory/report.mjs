import { table } from '../lib/bench.mjs'

const us = 'catraca'
const ours = ['catraca', 'catraca slidingCounter']
const flexible = 'rate-limiter-flexible'

/** The bars, each with the worst figure found and the cells that miss it. Cells of one decision per turn have none. */
export function judge({ cells, memory, imports }) {
  const judged = cells.filter(({ perTurn }) => perTurn > 1)
  const sync = judged.filter(({ awaited }) => !awaited)
  const waited = judged.filter(({ awaited }) => awaited)
  const large = sync.filter(({ keys }) => keys >= 100_000)
  const toFastest = ({ ns }) => Math.min(...peers(ns).map((name) => ns[name])) / ns[us]
  const toFlexible = ({ ns }) => ns[flexible] / ns[us]
  return [
    bar('faster than every peer', sync, toFastest, 1),
    bar('2 × the fastest peer at 100k and 1M keys', large, toFastest, 2),
    bar(
      `4 × ${flexible}, allowed`,
      sync.filter(({ deny }) => !deny),
      toFlexible,
      4,
    ),
    bar(
      `12 × ${flexible}, denied`,
      sync.filter(({ deny }) => deny),
      toFlexible,
      12,
    ),
    bar(
      `2.5 × ${flexible}, allowed, awaited`,
      waited.filter(({ deny }) => !deny),
      toFlexible,
      2.5,
    ),
    bar(
      `8 × ${flexible}, denied, awaited`,
      waited.filter(({ deny }) => deny),
      toFlexible,
      8,
    ),
    most('90 bytes per key at most', memory[us].bytesPerKey, 90, 'B'),
    most('worst pause while filling 6 ms at most', memory[us].worstPauseMs, 6, 'ms'),
    most('import 5 ms at most', imports[us].ms, 5, 'ms'),
    most('60 kB loaded at most', imports[us].bytes / 1_000, 60, 'kB'),
  ]
}

function bar(name, cells, ratio, least) {
  const misses = cells.filter((cell) => ratio(cell) < least)
  const worst = cells.toSorted((a, b) => ratio(a) - ratio(b))[0]
  const figure = worst === undefined ? '–' : `${ratio(worst).toFixed(2)} × at worst (${describe(worst)})`
  return {
    name,
    figure,
    met: cells.length - misses.length,
    of: cells.length,
    misses: misses.map((cell) => `${describe(cell)}: ${ratio(cell).toFixed(2)} ×`),
  }
}

function most(name, value, limit, unit) {
  return { name, figure: `${value.toFixed(1)} ${unit}`, met: value <= limit ? 1 : 0, of: 1, misses: [] }
}

function peers(ns) {
  return Object.keys(ns).filter((name) => !ours.includes(name))
}

function describe({ keys, zipf, deny, perTurn, awaited }) {
  const draw = keys === 1 ? '' : zipf ? ' Zipf' : ' uniform'
  return `${short(keys)}${draw}, ${deny ? 'denied' : 'allowed'}, ${perTurn} per turn${awaited ? ', awaited' : ''}`
}

function short(keys) {
  return keys === 1 ? '1 key' : keys >= 1_000_000 ? `${keys / 1_000_000}M keys` : `${keys / 1_000}k keys`
}

function millions(count) {
  return (count / 1_000_000).toFixed(count % 1_000_000 === 0 ? 0 : 1)
}

/** The whole part of the page. */
export function report(results) {
  const { cells, memory, imports, flood, bars, versions, rounds, fillKeys } = results
  const names = Object.keys(cells[0].ns)
  const parts = [
    '## Decisions in memory',
    `${results.machine}; ${results.date}; ${Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}. ` +
      `Medians of ${rounds} rounds, each implementation in a process of its own, in shuffled order. ` +
      'Every decision reads whether it is allowed, what remains and when to come back. The event-loop turn and the reading of the key are measured empty and taken off; ' +
      'of a peer that only answers with a promise the await is part of the figure. `catraca` is `tokenBucket`. Ratios count; absolute times of a shared machine do not.',
    table(
      ['bar', 'figure', 'cells that meet it'],
      bars.map(({ name, figure, met, of }) => [name, figure, met === of ? `${met} of ${of}` : `**${met} of ${of}**`]),
    ),
  ]
  for (const { name, misses } of bars) {
    if (misses.length > 0) parts.push(`Short of "${name}": ${misses.join('; ')}.`)
  }
  for (const awaited of [false, true]) {
    for (const perTurn of [64, 8, 1]) {
      const columns = cells.filter((cell) => cell.awaited === awaited && cell.perTurn === perTurn)
      parts.push(`### ns per decision, ${perTurn} per turn, ${awaited ? 'awaited' : 'synchronous'}`)
      parts.push(
        table(
          [
            '',
            ...columns.map(({ keys, zipf, deny }) =>
              `${short(keys)}${keys === 1 ? '' : zipf ? ' Zipf' : ''} ${deny ? 'denied' : ''}`.trim(),
            ),
          ],
          names.map((name) => [name, ...columns.map(({ ns }) => ns[name].toFixed(0))]),
        ),
      )
    }
  }
  parts.push(`### Memory and pauses, ${short(fillKeys)}`)
  parts.push(
    table(
      ['', 'bytes per key', 'resident bytes per key', 'worst pause in 256 insertions, ms', 'ns per insertion'],
      names.map((name) => {
        const { bytesPerKey, residentPerKey, worstPauseMs, nsPerKey } = memory[name]
        return [name, bytesPerKey.toFixed(0), residentPerKey.toFixed(0), worstPauseMs.toFixed(1), nsPerKey.toFixed(0)]
      }),
    ),
  )
  parts.push('### More callers than the bound')
  parts.push(
    `${millions(flood.count)} million callers, one request each, against \`memoryStore()\` with its bound of a million keys, after 1,000 ` +
      `callers have used up their limit: at most ${flood.mostKeys.toLocaleString('en')} keys in memory, ${flood.residentMB.toFixed(0)} MB more resident at the peak ` +
      `(states, keys, and what was forgotten and not yet collected), ${flood.nsPerKey.toFixed(0)} ns per request. ` +
      `${flood.stillRefused.toLocaleString('en')} of the 1,000 are still refused; ${flood.evicted.toLocaleString('en')} keys were forgotten at the bound, ` +
      `${flood.evictedLimited} of them over their limit.`,
  )
  parts.push('### Import')
  parts.push(
    table(
      ['', 'ms', 'kB of code loaded', 'files'],
      Object.entries(imports).map(([name, { ms, bytes, files }]) => [
        name,
        ms.toFixed(1),
        (bytes / 1_000).toFixed(0),
        String(files),
      ]),
    ),
  )
  return parts.join('\n\n')
}
