import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from '../../scripts/build.mjs'
import { run, setup } from '../../scripts/setup.mjs'

export const folder = fileURLToPath(new URL('..', import.meta.url))
const page = join(folder, '../docs/benchmarks.md')

/** What every bench takes: `--json` prints data only, `--quick` measures coarsely and writes no page. */
export function options(command = 'bench:memory') {
  const known = ['--json', '--quick', '--help']
  const unknown = process.argv.slice(2).find((option) => !known.includes(option))
  if (unknown !== undefined) {
    console.error(`unknown option ${unknown}; allowed: ${known.join(', ')}`)
    process.exit(2)
  }
  if (process.argv.includes('--help')) {
    console.log(`usage: npm run ${command} [-- --json] [-- --quick]`)
    process.exit(0)
  }
  return { json: process.argv.includes('--json'), quick: process.argv.includes('--quick') }
}

/** Installs the product and the peers, and builds. */
export function prepare() {
  setup()
  build()
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (!Object.keys(dependencies).every((name) => existsSync(join(folder, 'node_modules', name)))) {
    run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel', 'error'], { cwd: folder })
  }
}

/** Runs a script in a process of its own, on the second core where there is `taskset`, and reads the JSON it prints. */
export function measure(script, args, nodeOptions = []) {
  const node = [process.execPath, ...nodeOptions, join(folder, script), ...args]
  const pinned = cpus().length > 1 && spawnSync('taskset', ['-V']).status === 0 ? ['taskset', '-c', '1', ...node] : node
  const { status, stdout, stderr } = spawnSync(pinned[0], pinned.slice(1), {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 1e8,
  })
  if (status !== 0) throw new Error(`${script} ${args[0]} failed:\n${stderr}`)
  return JSON.parse(stdout)
}

/** A line that is rewritten on a terminal; nothing elsewhere. */
export function progress(done, total, what) {
  if (!process.stderr.isTTY) return
  const width = 24
  const bar = '#'.repeat(Math.round((done / total) * width)).padEnd(width, '.')
  process.stderr.write(`\r[${bar}] ${done}/${total} ${what}\u001b[K${done === total ? '\n' : ''}`)
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
}

/** A new order each time, so that no implementation always runs after the same one. */
export function shuffled(values) {
  const list = [...values]
  for (let index = list.length - 1; index > 0; index--) {
    const other = Math.floor(Math.random() * (index + 1))
    ;[list[index], list[other]] = [list[other], list[index]]
  }
  return list
}

export function versionOf(name) {
  const manifest = join(folder, 'node_modules', name, 'package.json')
  return JSON.parse(readFileSync(manifest, 'utf8')).version
}

export function machine() {
  const [{ model }] = cpus()
  return `${cpus().length} × ${model.trim()}, Node ${process.versions.node}, ${process.platform}`
}

export function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** Puts a bench's part on the page, between its own markers. */
export function writePart(name, markdown) {
  const text = existsSync(page) ? readFileSync(page, 'utf8') : ''
  const part = `<!-- bench: ${name} -->\n${markdown}\n<!-- end -->`
  const pattern = new RegExp(`<!-- bench: ${name} -->[\\s\\S]*?<!-- end -->`)
  writeFileSync(page, pattern.test(text) ? text.replace(pattern, () => part) : `${text.trimEnd()}\n\n${part}\n`)
}
