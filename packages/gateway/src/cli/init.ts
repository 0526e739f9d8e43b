import { readFile, writeFile } from 'node:fs/promises'
import { type Command, Option } from 'commander'

const presets = ['edge', 'strict', 'partner', 'login'] as const

interface InitFlags {
  readonly preset: (typeof presets)[number]
  readonly force?: true
}

const examples = `
Presets:
  edge     10 per second for each address with bursts of 20, a limit for all together, few logins
  strict   little for anonymous callers, plans for clients with a key
  partner  plans, expensive routes with a budget of their own, a daily quota, a limit on requests in flight
  login    few tries on login, codes and recovery; closed while the store does not answer

Examples:
  catraca init --preset edge
  catraca init --preset partner gateway/catraca.yaml`

/** Adds `catraca init`. */
export function addInit(program: Command): void {
  program
    .command('init')
    .description('Write a commented gateway file to begin with')
    .argument('[file]', 'where to write', 'catraca.yaml')
    .addOption(new Option('--preset <preset>', 'what to begin with').choices(presets).default('edge'))
    .option('--force', 'write over a file that is there')
    .addHelpText('after', examples)
    .action(init)
}

async function init(file: string, { preset, force }: InitFlags): Promise<void> {
  const text = await readFile(new URL(`../../presets/${preset}.yaml`, import.meta.url), 'utf8')
  try {
    await writeFile(file, text, { flag: force === true ? 'w' : 'wx' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new Error(`${file} is there already; --force writes over it`, { cause: error })
    throw new Error(`${file} cannot be written (${code})`, { cause: error })
  }
  process.stdout.write(
    `wrote ${file} (preset ${preset})\n  next: catraca check ${file}\n        catraca up -c ${file}\n`,
  )
}
