import { styleText } from 'node:util'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { DrillResult } from '../drill/drill.ts'
import { faults } from '../drill/drill-faults.ts'
import type { Count, Verdict } from '../drill/drill-judge.ts'
import { loadGatewayFile } from './file.ts'

interface DrillFlags {
  readonly config: string
  readonly edges: number
  readonly seconds: [number, number, number]
  readonly redis?: string
  readonly rounds: number
  readonly json?: true
}

const width = 28
const names = Object.keys(faults)
const help = `
Faults:
${Object.entries(faults)
  .map(([name, { words }]) => `  ${name.padEnd(14)}${words}`)
  .join('\n')}
  ${'lease'.padEnd(14)}nothing is taken away: edges hold blocks of units, and the limits hold within the stated bounds
  ${'race'.padEnd(14)}400 calls at once through two instances, counted naively and by the script

Examples:
  catraca drill kill
  catraca drill blackhole -c catraca.yaml --edges 6
  catraca drill pause --seconds 5,10,10 --json | jq '.verdicts[] | {policy, good}'
  catraca drill lease --edges 6
  catraca drill race

The drill starts its own Redis, edges, service and keys, and ends them. Each policy of the file that is enforced in the
shared store is asked under a path of its own. Exit code: 0 when every policy did what the file declares, 1 when one did not.`

/** Adds `catraca drill`. */
export function addDrill(program: Command): void {
  program
    .command('drill')
    .description('Take the store away from real edges and say whether every policy does what the file declares')
    .argument('<fault>', `${names.join(', ')}, lease or race`, readFault)
    .option('-c, --config <file>', 'YAML or JSON', 'catraca.yaml')
    .option('--edges <count>', 'edge processes, 1 to 16', readEdges, 3)
    .option('--seconds <before,during,after>', 'how long each phase lasts, 2 to 600 each', readSeconds, [3, 5, 5])
    .option(
      '--redis <url>',
      'a Redis of your own in place of one that is started: redis://host:port; only for delay, blackhole and reset',
    )
    .addOption(new Option('--rounds <count>', 'rounds of the race, 1 to 100').argParser(readRounds).default(5))
    .option('--json', 'print one JSON object')
    .addHelpText('after', help)
    .action(drill)
}

async function drill(fault: string, flags: DrillFlags, command: Command): Promise<void> {
  if (fault === 'race') {
    await race(flags)
    return
  }
  if (fault === 'lease') {
    await lease(flags)
    return
  }
  if (flags.redis !== undefined && faults[fault]?.onTheWay !== true) {
    command.error(`error: option '--redis' cannot be used with ${fault}, which needs a Redis that the drill may break`)
  }
  const file = await loadGatewayFile(flags.config)
  const signal = stopSignal()
  const { runDrill } = await import('../drill/drill.ts')
  const { edges, seconds, redis, json } = flags
  const result = await runDrill({
    file,
    fault,
    edges,
    seconds,
    ...(redis !== undefined && { redis }),
    onProgress: progress,
    signal,
  }).finally(endProgress)
  if (json) print(JSON.stringify(result))
  else report(result, flags)
  if (!result.good) process.exitCode = 1
}

function report({ fault, words, verdicts, left }: DrillResult, { edges }: DrillFlags): void {
  print(`drill ${fault}: ${words}; ${edges} edges`)
  const longest = Math.max(6, ...verdicts.map(({ policy }) => policy.length))
  if (verdicts.length > 0) print(row(longest, 'policy', 'mode', 'before', 'during', 'after', 'longest', ''))
  for (const verdict of verdicts) {
    const { policy, mode, before, during, after, longestMs, good } = verdict
    print(row(longest, policy, mode, count(before), count(during), count(after), `${longestMs} ms`, mark(good)))
  }
  for (const { policy, why } of left) print(`${policy}: not drilled, ${why}`)
  for (const { policy, wrong } of verdicts) for (const one of wrong) print(`${policy}: ${one}`)
  const bad = verdicts.filter(({ good }) => !good).map(({ policy }) => policy)
  if (verdicts.length === 0) print('no policy of the file is enforced in the shared store')
  else if (bad.length === 0) print(`all ${verdicts.length} policies did what the file declares`)
  else print(`not as declared: ${bad.join(', ')}`)
}

/** Passed of at most, or passed and answered 503. */
function count({ admitted, most, unavailable }: Count): string {
  const bound = most === undefined || most === Infinity ? '' : ` of ${most}`
  return `${admitted}${bound} passed${unavailable === 0 ? '' : `, ${unavailable} × 503`}`
}

function row(longest: number, policy: string, mode: Verdict['mode'] | 'mode', ...cells: string[]): string {
  const [before = '', during = '', after = '', took = '', good = ''] = cells
  return `${policy.padEnd(longest)}  ${mode.padEnd(6)}  ${before.padEnd(width)}${during.padEnd(width)}${after.padEnd(width)}${took.padEnd(10)}${good}`.trimEnd()
}

/** Aborted when the user stops the command. */
function stopSignal(): AbortSignal {
  const abort = new AbortController()
  const stop = (): void => abort.abort(new Error('stopped'))
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  return abort.signal
}

async function race({ rounds, json }: DrillFlags): Promise<void> {
  const { runRace, raceCalls, raceLimit } = await import('../drill/race.ts')
  const results = await runRace(rounds)
  if (json) print(JSON.stringify({ calls: raceCalls, limit: raceLimit, rounds: results }))
  else {
    print(`${raceCalls} calls at once through two instances, ${raceLimit} per minute may pass`)
    results.forEach(({ naive, script }, round) => {
      print(`round ${round + 1}: read, decide, add lets ${naive} pass; the script ${script}`)
    })
  }
  if (results.some(({ script }) => script !== raceLimit)) process.exitCode = 1
}

async function lease({ edges, json }: DrillFlags): Promise<void> {
  const { runLeaseDrill, leaseBlock, leaseLimit } = await import('../drill/lease.ts')
  const { verdicts, asked, calls, good } = await runLeaseDrill(edges, stopSignal())
  if (json) print(JSON.stringify({ edges, block: leaseBlock, limit: leaseLimit, asked, calls, good, verdicts }))
  else {
    print(`${edges} edges hold blocks of up to ${leaseBlock}; ${leaseLimit} per minute may pass, ${asked} ask`)
    for (const { policy, admitted, atLeast, atMost, good: within } of verdicts) {
      const words = within ? 'within the bound' : 'NOT within the bound'
      print(`${policy.padEnd(12)}  ${admitted} passed, at least ${atLeast} and at most ${atMost}: ${words}`)
    }
    print(`${calls} calls to the store for ${verdicts.length * asked} requests`)
  }
  if (!good) process.exitCode = 1
}

function progress(share: number, words: string): void {
  if (!process.stderr.isTTY) return
  const done = Math.round(share * width)
  process.stderr.write(`\r[${'#'.repeat(done).padEnd(width, '.')}] ${words}\u001b[K`)
}

function endProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
}

function mark(good: boolean): string {
  const text = good ? 'as declared' : 'NOT as declared'
  return process.stdout.isTTY && !process.env['NO_COLOR'] ? styleText(good ? 'green' : 'red', text) : text
}

function readFault(text: string): string {
  const all = [...names, 'lease', 'race']
  if (all.includes(text)) return text
  throw new InvalidArgumentError(`Allowed: ${all.join(', ')}.`)
}

function readEdges(text: string): number {
  return wholeNumber(text, 1, 16)
}

function readRounds(text: string): number {
  return wholeNumber(text, 1, 100)
}

function readSeconds(text: string): [number, number, number] {
  const seconds = text.split(',').map((part) => wholeNumber(part, 2, 600))
  if (seconds.length === 3) return seconds as [number, number, number]
  throw new InvalidArgumentError('Allowed: three whole numbers from 2 to 600, such as 3,5,5.')
}

function wholeNumber(text: string, min: number, max: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new InvalidArgumentError(`Allowed: whole numbers from ${min} to ${max}.`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
