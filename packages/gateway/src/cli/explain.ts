import { candidateWords, type Language } from 'catraca/policy'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { homeWords, leaseWords, planWords } from '../store/plan-words.ts'
import { type PlannedExplanation, plannedExplanations, type StorePlan, storePlanOf } from '../store/store-plan.ts'
import { loadGatewayFile } from './file.ts'

interface ExplainFlags {
  readonly config: string
  readonly method: string
  readonly path: string
  readonly client?: string
  readonly plan?: string
  readonly user?: string
  readonly tenant?: string
  readonly address: string
  readonly attribute: Record<string, string>
  readonly language: Language
  readonly all?: true
  readonly json?: true
}

const examples = `
Examples:
  catraca explain --method GET --path /events
  catraca explain -c catraca.yaml --method POST --path /api/holds --client acme --plan pro --attribute body:eventId=7
  catraca explain --path /login --language pt`

/** Adds `catraca explain`. */
export function addExplain(program: Command): void {
  program
    .command('explain')
    .description('Say which policies speak about a request, and what each allows; counts nothing')
    .option('-c, --config <file>', 'YAML or JSON', 'catraca.yaml')
    .option('--method <method>', 'request method', (text) => text.toUpperCase(), 'GET')
    .requiredOption('--path <path>', 'request path')
    .option(
      '--client <client>',
      'the client that asks; its plan is that of its key in the file, unless --plan is given',
    )
    .option('--plan <plan>', 'its plan')
    .option('--user <user>', 'the user that asks')
    .option('--tenant <tenant>', 'its tenant')
    .option('--address <address>', 'its address', '192.0.2.1')
    .option(
      '--attribute <name=value>',
      'header:<name>, cookie:<name>, query:<name>, body:<field> or api-key with its value; can be repeated',
      readAttribute,
      {},
    )
    .addOption(new Option('--language <language>', 'language of the words').choices(['en', 'pt']).default('en'))
    .option('--all', 'also the policies that do not speak, and why')
    .option('--json', 'print one JSON object')
    .addHelpText('after', examples)
    .action(explain)
}

function readAttribute(text: string, before: Record<string, string>): Record<string, string> {
  const [, name, value] = /^((?:header|cookie|query|body):[^=]+|api-key)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) {
    throw new InvalidArgumentError(
      'Allowed: header:<name>=<value>, cookie:<name>=<value>, query:<name>=<value>, body:<field>=<value> or api-key=<value>.',
    )
  }
  return { ...before, [name.startsWith('header:') ? name.toLowerCase() : name]: value }
}

async function explain(flags: ExplainFlags): Promise<void> {
  const { method, path, client, user, tenant, address, attribute, language } = flags
  const document = await loadGatewayFile(flags.config)
  const key = document.auth?.apiKeys?.keys.find((one) => one.client === client)
  const plan = flags.plan ?? key?.plan
  const known = { client, plan, user, tenant: tenant ?? key?.tenant }
  const attributes = { ...known, ...attribute, address }
  const found = await plannedExplanations(document, { method, path, attributes })
  const store = storePlanOf(document)
  const shown = flags.all ? found : found.filter(({ applies }) => applies)
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ method, path, store, policies: shown })}\n`)
    return
  }
  const lines = shown.flatMap((one) => describe(one, store, language))
  if ((store.kind !== 'memory' || store.workers !== undefined) && lines.length > 0)
    lines.push(planWords(store, language))
  process.stdout.write(`${lines.length === 0 ? words[language].none : lines.join('\n')}\n`)
}

const words = {
  en: {
    none: 'No policy speaks about this request.',
    key: 'key',
    stage: 'stage',
    allows: 'allows',
    cost: 'each request costs',
    most: 'at most',
    once: 'at one instant',
    any: 'in any window',
    tick: 'tick',
    silent: 'not asked',
    observed: 'observed only',
    mode: 'mode',
    over: 'over it',
    left: 'left now',
    missing: '(missing)',
    store: 'store',
    lease: 'leased',
    without: 'without the store',
  },
  pt: {
    none: 'Nenhuma política fala desta requisição.',
    key: 'chave',
    stage: 'estágio',
    allows: 'permite',
    cost: 'cada requisição custa',
    most: 'no máximo',
    once: 'em um instante',
    any: 'em qualquer janela',
    tick: 'passo',
    silent: 'não perguntada',
    observed: 'só observada',
    mode: 'modo',
    over: 'acima',
    left: 'restam agora',
    missing: '(ausente)',
    store: 'guarda',
    lease: 'reserva',
    without: 'sem o armazenamento',
  },
} as const

function describe(one: PlannedExplanation, plan: StorePlan, language: Language): string[] {
  const w = words[language]
  if (!one.applies) return [`${one.policy}: ${w.silent} (${one.notAsked})`]
  const key = one.key.map(({ part, value }) => `${part}=${value ?? w.missing}`).join(' ')
  const { atOnce, perWindow } = one.bounds
  const bounds = perWindow === undefined ? '' : `, ${perWindow} ${w.any}`
  const home = homeWords(one, plan, language)
  const lease = leaseWords(one, language)
  const { candidateOf, enforcedFor, overflow } = one
  const mode = candidateOf === undefined ? enforcedFor?.[language] : candidateWords(candidateOf, language)
  return [
    `${one.policy}${one.mode === 'observe' ? ` (${w.observed})` : ''}`,
    `  ${w.allows.padEnd(8)} ${one.rule[language]}${one.variant === 'default' ? '' : ` (${one.variant})`}`,
    `  ${w.key.padEnd(8)} ${key}`,
    `  ${w.stage.padEnd(8)} ${one.stage}; ${w.most} ${atOnce} ${w.once}${bounds}; ${w.tick} ${one.tickUs} µs`,
    ...(one.cost === 1 ? [] : [`  ${w.cost} ${one.cost}`]),
    ...(mode === undefined ? [] : [`  ${w.mode.padEnd(8)} ${mode}`]),
    ...(overflow === undefined ? [] : [`  ${w.over.padEnd(8)} ${overflow[language]}`]),
    ...(home === undefined ? [] : [`  ${w.store.padEnd(8)} ${home}`]),
    ...(lease === undefined ? [] : [`  ${w.lease.padEnd(8)} ${lease}`]),
    // What is left in a shared store is not asked.
    ...(home === undefined ? [`  ${one.says.remaining} ${w.left}; ${w.without}: ${one.onStoreFailure}`] : []),
  ]
}
