import { type Command, Option } from 'commander'
import type { Per } from '../edge/partition.ts'
import { createGateway, type Gateway } from '../gateway.ts'
import { defaults } from '../options.ts'
import { type Limit, readBurst, readLimit, readPer, readPort, readTrust, readUpstream } from './arguments.ts'
import { LiveLine } from './live-line.ts'
import { stopRequested } from './stop.ts'
import { Warnings } from './warnings.ts'

interface UpFlags {
  readonly upstream?: string
  readonly limit: Limit
  readonly burst?: number
  readonly per: Per
  readonly trust: number
  readonly port: number
  readonly host?: string
}

const examples = `
Examples:
  600 requests per minute for each address, 120 of them at once:
    catraca up --upstream http://127.0.0.1:3000

  5 per second for each API key, on port 9000:
    catraca up --upstream http://127.0.0.1:3000 --limit 5/1s --per header:x-api-key --port 9000

  Behind one load balancer that appends to X-Forwarded-For:
    catraca up --upstream http://127.0.0.1:3000 --trust 1

Requests over the limit are answered 429 with Retry-After. Ctrl-C lets running requests end; a second one does not.`

/** Adds `catraca up`. */
export function addUp(program: Command): void {
  const { limit, window } = defaults
  const byDefault: Limit = { limit, window }
  program
    .command('up')
    .description('Start a gateway in front of an HTTP service')
    .option('--upstream <origin>', 'where requests go, such as http://127.0.0.1:3000 (required)', readUpstream)
    .addOption(
      new Option('--limit <requests/time>', 'requests per time')
        .argParser(readLimit)
        .default(byDefault, `${limit}/${window}`),
    )
    .option('--burst <requests>', 'requests that can pass at once (default: 120, at most the limit)', readBurst)
    .option('--per <what>', 'whom to count: address, or header:<name> by its value', readPer, 'address')
    .option('--trust <proxies>', 'proxies in front whose X-Forwarded-For entries are believed', readTrust, 0)
    .option('--port <port>', 'port to listen on; 0 takes a free one', readPort, 8080)
    .option('--host <address>', 'address to listen on (default: all)')
    .addHelpText('after', examples)
    .action(up)
}

async function up(flags: UpFlags, command: Command): Promise<void> {
  const { upstream, limit, burst, per, trust } = flags
  // Not left to commander, which would report it before an unknown flag, and so hide `--upsteam`.
  if (upstream === undefined)
    command.error("error: required option '--upstream <origin>' not specified; see catraca up --help")
  const warnings = new Warnings((line) => live.note(line))
  const onWarning = (line: string): void => warnings.say(line)
  const gateway = createGateway({ upstream, ...limit, ...(burst !== undefined && { burst }), per, trust, onWarning })
  const live = new LiveLine(() => gateway.stats)
  const stop = stopRequested()
  const url = await listen(gateway, flags)
  process.stdout.write(`catraca listens on ${url}\n  upstream  ${upstream}\n  limit     ${gateway.summary}\n`)
  // Tells a parent process that started this one with a channel.
  if (process.connected) process.send?.({ ready: url })
  live.start()
  void gateway.probeUpstream().then((wrong) => {
    if (wrong !== undefined) onWarning(`upstream ${upstream} ${wrong}; requests are answered 502 or 504 until it works`)
  })
  await stop
  await gateway.close()
  live.stop()
  const { admitted, refused } = gateway.stats
  process.stdout.write(`stopped; ${admitted} admitted, ${refused} refused\n`)
  if (process.connected) process.disconnect()
}

/** Gives the address to call. */
async function listen(gateway: Gateway, { port, host }: UpFlags): Promise<string> {
  try {
    const actual = await gateway.listen({ port, ...(host !== undefined && { host }) })
    return `http://${host === undefined ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${actual}`
  } catch (error) {
    throw new Error(listenFailure(error as NodeJS.ErrnoException, port, host), { cause: error })
  }
}

function listenFailure(error: NodeJS.ErrnoException, port: number, host: string | undefined): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `port ${port} is already in use; choose another with --port`
    case 'EACCES':
      return `port ${port} may not be used by this user; choose one above 1023 with --port`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine; choose another with --host`
    default:
      return `cannot listen on port ${port} (${error.code ?? error.message})`
  }
}
