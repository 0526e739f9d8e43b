import { readFileSync } from 'node:fs'
import { isCatracaError } from 'catraca'
import { Command, CommanderError } from 'commander'
import { addCheck } from './check.ts'
import { addDrill } from './drill.ts'
import { addExplain } from './explain.ts'
import { addInit } from './init.ts'
import { addUp } from './up.ts'

/** Exit codes: 1 when the work failed, 2 when the command line is wrong. */
const exit = { ok: 0, failure: 1, usage: 2 } as const

const examples = `
Examples:
  catraca up --upstream http://127.0.0.1:3000
  catraca init --preset edge
  catraca check catraca.yaml
  catraca explain --method POST --path /login
  catraca up -c catraca.yaml

More: catraca up --help`

/** Runs the command line `argv` (as in `process.argv`) to its end and gives the exit code. */
export async function run(argv: readonly string[]): Promise<number> {
  const program = new Command('catraca')
    .description('A turnstile for HTTP services: limits requests per caller and passes the rest on.')
    .version(version(), '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .addHelpText('after', examples)
    .exitOverride()
  addUp(program)
  addInit(program)
  addCheck(program)
  addExplain(program)
  addDrill(program)
  try {
    await program.parseAsync(argv)
    return Number(process.exitCode ?? exit.ok)
  } catch (error) {
    // Commander has printed its message already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exit.ok : exit.usage
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`)
    return isCatracaError(error) ? exit.usage : exit.failure
  }
}

function version(): string {
  const file = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
