import { readGatewayFile } from '@catraca/config'
import { type Command, Option } from 'commander'
import type { Per } from '../edge/header-identity.ts'
import { Gateway } from '../gateway.ts'
import { type AccessEntry, defaults, documentOf, type GatewayOptions } from '../options.ts'
import { Pool } from '../workers/pool.ts'
import { accessLog, printer } from './access-log.ts'
import {
  type Limit,
  readBurst,
  readLimit,
  readPer,
  readPort,
  readTrust,
  readUpstream,
  readWorkers,
} from './arguments.ts'
import { loadGatewayFile, watchFile } from './file.ts'
import { LiveLine } from './live-line.ts'
import { stopRequested } from './stop.ts'
import { Warnings } from './warnings.ts'

interface UpFlags {
  readonly config?: string
  readonly upstream?: string
  readonly limit: Limit
  readonly burst?: number
  readonly per: Per
  readonly trust: number
  readonly port?: number
  readonly host?: string
  readonly workers?: number
  readonly log?: 'live' | 'text' | 'json' | 'off'
}

const examples = `
Examples:
  600 requests per minute for each address, 120 of them at once; 1000 per second for all together; 5 logins per 15 minutes:
    catraca up --upstream http://127.0.0.1:3000

  Policies, routes, plans and keys from a file, which is read again when it changes:
    catraca up -c catraca.yaml

  5 per second for each API key, on port 9000:
    catraca up --upstream http://127.0.0.1:3000 --limit 5/1s --per header:x-api-key --port 9000

  Behind one load balancer that appends to X-Forwarded-For:
    catraca up --upstream http://127.0.0.1:3000 --trust 1

  Four processes on one port, whose limits hold together:
    catraca up -c catraca.yaml --workers 4

Requests over the limit are answered 429 with Retry-After. Ctrl-C lets running requests end; a second one does not.`

/** Flags that say in words what a file says; with a file they would be ignored. */
const onlyWithoutFile = ['upstream', 'limit', 'burst', 'per', 'trust'] as const

/** Adds `catraca up`. */
export function addUp(program: Command): void {
  const { limit, window } = defaults
  const byDefault: Limit = { limit, window }
  program
    .command('up')
    .description('Start a gateway in front of HTTP services')
    .option('-c, --config <file>', 'policies, routes, upstreams and keys, as YAML or JSON')
    .option('--upstream <origin>', 'where requests go, such as http://127.0.0.1:3000', readUpstream)
    .addOption(
      new Option('--limit <requests/time>', 'requests per time')
        .argParser(readLimit)
        .default(byDefault, `${limit}/${window}`),
    )
    .option('--burst <requests>', 'requests that can pass at once (default: 120, at most the limit)', readBurst)
    .option('--per <what>', 'whom to count: address, or header:<name> by its value', readPer, 'address')
    .option('--trust <proxies>', 'proxies in front whose X-Forwarded-For entries are believed', readTrust, 0)
    .option('--port <port>', 'port to listen on; 0 takes a free one (default: that of the file, else 8080)', readPort)
    .option('--host <address>', 'address to listen on (default: that of the file, else all)')
    .option(
      '--workers <count>',
      'processes that share the port, 1 to 64 (default: that of the file, else 1)',
      readWorkers,
    )
    .addOption(
      new Option('--log <form>', 'what is printed while it runs (default: a live line; with a file, text)').choices([
        'live',
        'text',
        'json',
        'off',
      ]),
    )
    .addHelpText('after', examples)
    .action(up)
}

async function up(flags: UpFlags, command: Command): Promise<void> {
  const { config, upstream, limit, burst, per, trust } = flags
  // Not left to commander, which would report it before an unknown flag, and so hide `--upsteam`.
  if (upstream === undefined && config === undefined)
    command.error(
      "error: required option '--upstream <origin>' not specified, nor a file with -c; see catraca up --help",
    )
  const clash = onlyWithoutFile.find((name) => config !== undefined && command.getOptionValueSource(name) === 'cli')
  if (clash !== undefined) command.error(`error: option '--${clash}' cannot be used with -c; say it in ${config}`)
  const warnings = new Warnings((line) => live.note(line))
  const onWarning = (line: string): void => warnings.say(line)
  const document = config === undefined ? undefined : await loadGatewayFile(config)
  const log = flags.log ?? document?.log ?? (document === undefined ? 'live' : 'text')
  const form = log === 'text' || log === 'json' ? log : undefined
  const options: GatewayOptions = {
    ...(document === undefined
      ? { upstream: upstream as string, ...limit, ...(burst !== undefined && { burst }), per, trust }
      : { document }),
    onWarning,
  }
  const { gateway, end } = made(options, flags.workers ?? document?.workers ?? 1, form)
  const live = new LiveLine(gateway)
  const stop = stopRequested()
  const host = flags.host ?? document?.listen?.host
  const url = await listen(gateway, flags.port, host).catch(async (error: unknown) => {
    await gateway.close(0)
    throw error
  })
  const unwatch =
    config === undefined ? () => {} : watchFile(config, () => void reload(gateway, config, (line) => live.note(line)))
  process.stdout.write(introduction(gateway, url))
  // Tells a parent process that started this one with a channel.
  if (process.connected) process.send?.({ ready: url })
  if (log === 'live') live.start()
  void gateway.probeUpstreams().then((wrong) => wrong.forEach(onWarning))
  await stop
  unwatch()
  await gateway.close()
  live.stop()
  await end()
  const { admitted, refused } = gateway.stats
  process.stdout.write(`stopped; ${admitted} admitted, ${refused} refused\n`)
  if (process.connected) process.disconnect()
}

/** A gateway in this process, or in several; `end` resolves when all lines for requests are printed. */
function made(
  options: GatewayOptions,
  workers: number,
  log: 'text' | 'json' | undefined,
): { gateway: Gateway | Pool; end: () => Promise<void> | undefined } {
  if (workers === 1) {
    const access = log === undefined ? undefined : accessLog(log)
    const onAccess = access === undefined ? {} : { onAccess: (entry: AccessEntry) => access.write(entry) }
    const gateway = new Gateway(documentOf(options), { ...options, ...onAccess })
    return { gateway, end: () => access?.end() }
  }
  const print = printer()
  let printed: Promise<void> | undefined
  const gateway = new Pool({
    ...options,
    workers,
    ...(log !== undefined && { log }),
    print: (lines) => {
      printed = print(lines)
    },
  })
  return { gateway, end: () => printed }
}

function introduction(gateway: Gateway | Pool, url: string): string {
  const { origins, summary, adminPort, store } = gateway
  const lines = [
    `catraca listens on ${url}`,
    ...origins.map((origin) => `  upstream  ${origin}`),
    ...(adminPort === undefined ? [] : [`  admin     http://localhost:${adminPort}`]),
    ...(store.kind === 'memory' ? [] : [`  store     ${store.kind} at ${store.address}`]),
    ...(gateway instanceof Pool ? [`  workers   ${gateway.workers}${gateway.instanceWords}`] : []),
    ...summary.map((line) => `  limit     ${line}`),
  ]
  return `${lines.join('\n')}\n`
}

/** Goes by the file as it is now; one that is wrong is reported, and the last good one stays. */
async function reload(gateway: Gateway | Pool, file: string, say: (line: string) => void): Promise<void> {
  try {
    const read = await readGatewayFile(file)
    if (read.document === undefined) {
      await loadGatewayFile(file)
      return
    }
    await gateway.reload(read.document)
    say(`${file} was read again`)
  } catch (error) {
    say(`${file} was not taken, the last good one stays: ${(error as Error).message}`)
  }
}

/** Gives the address to call. */
async function listen(gateway: Gateway | Pool, port: number | undefined, host: string | undefined): Promise<string> {
  try {
    const actual = await gateway.listen({ ...(port !== undefined && { port }), ...(host !== undefined && { host }) })
    return `http://${host === undefined ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${actual}`
  } catch (error) {
    throw new Error(listenFailure(error as NodeJS.ErrnoException & { port?: number }, host), { cause: error })
  }
}

function listenFailure(error: NodeJS.ErrnoException & { port?: number }, host: string | undefined): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `port ${error.port} is already in use; choose another with --port`
    case 'EACCES':
      return `port ${error.port} may not be used by this user; choose one above 1023 with --port`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine; choose another with --host`
    default:
      return `cannot listen (${error.code ?? error.message})`
  }
}
