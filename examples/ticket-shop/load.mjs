// An open-loop load: requests leave at their times, whether or not earlier ones were answered. `--help` says more.
import { help, parseOptions, UsageError } from './load/options.mjs'
import { resultOf, showProgress, table } from './load/report.mjs'
import { schedule } from './load/schedule.mjs'
import { Sender } from './load/sender.mjs'

/** How long the last answers are waited for. */
const patienceMs = 5_000

process.exit(await main(process.argv.slice(2)))

/** Gives the exit code: 0, 1 when nothing was answered, 2 for a wrong flag, 130 after Ctrl-C. */
async function main(args) {
  const options = readOptions(args)
  if (options === undefined) return 2
  if (options.help) {
    process.stdout.write(help)
    return 0
  }
  const interrupt = new AbortController()
  process.once('SIGINT', () => interrupt.abort())
  process.once('SIGTERM', () => interrupt.abort())

  const sender = new Sender(options)
  const hideProgress = showProgress(sender, options.count)
  const start = performance.now()
  await schedule({ ...options, send: (index) => sender.send(index), signal: interrupt.signal })
  const elapsedMs = performance.now() - start
  await sender.idle(patienceMs, interrupt.signal)
  hideProgress()

  const result = resultOf(sender, elapsedMs)
  process.stdout.write(options.json ? `${JSON.stringify(result)}\n` : table(result))
  if (interrupt.signal.aborted) return 130
  return sender.statuses.size > 0 ? 0 : 1
}

function readOptions(args) {
  try {
    return parseOptions(args)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`load: ${error.message}; --help shows all flags\n`)
    return undefined
  }
}
