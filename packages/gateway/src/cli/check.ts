import { styleText } from 'node:util'
import { policyPart, problemLine } from '@catraca/config'
import { budgetOf, findingsOf, type PolicyDocument, readPolicies } from 'catraca/policy'
import type { Command } from 'commander'
import { homeWords, leaseWords, planWords } from '../store/plan-words.ts'
import { type PlannedExplanation, plannedExplanations, type StorePlan, storePlanOf } from '../store/store-plan.ts'
import { readFileOrSay } from './file.ts'

interface CheckFlags {
  readonly json?: true
  readonly notes?: true
}

const examples = `
Examples:
  catraca check catraca.yaml
  catraca check catraca.yaml --notes
  catraca check catraca.yaml --json | jq '.findings[].code'

Exit code: 0 when nothing is found, 1 for a mistake or a warning. A check is switched off in the file: checks: { CODE: off }.`

/** Adds `catraca check`. */
export function addCheck(program: Command): void {
  program
    .command('check')
    .description('Say what is wrong, or probably not meant, in a gateway file')
    .argument('[file]', 'YAML or JSON', 'catraca.yaml')
    .option('--notes', 'also say what is only worth knowing')
    .option('--json', 'print one JSON object')
    .addHelpText('after', examples)
    .action(check)
}

async function check(file: string, { json, notes }: CheckFlags): Promise<void> {
  const read = await readFileOrSay(file)
  if (read.document === undefined) {
    if (json) print(JSON.stringify({ file, problems: read.problems, findings: [] }))
    else for (const problem of read.problems) print(`${mark('error', 'red')} ${problemLine(problem)}`)
    process.exitCode = 1
    return
  }
  const policies = readPolicies(policyPart({ ...read.document }) as unknown as PolicyDocument)
  const context = { authenticated: read.document.auth?.apiKeys !== undefined }
  const findings = findingsOf(policies, context)
    .filter(({ level }) => level === 'warning' || notes === true)
    .map((finding) => ({ ...finding, ...read.locate(finding.place) }))
  const warned = findings.some(({ level }) => level === 'warning')
  const store = storePlanOf(read.document)
  const planned = await plannedExplanations(read.document, { method: 'GET', path: '/' })
  if (json) {
    const homes = planned.map(({ policy, store: home, withoutStore, lease }) => ({
      policy,
      store: home,
      withoutStore,
      lease,
    }))
    print(JSON.stringify({ file, problems: [], findings, budget: budgetOf(policies) ?? null, store, policies: homes }))
  } else {
    for (const { level, line, column, path, message, code, help } of findings) {
      const text = `${file}:${line}:${column}: ${path} ${message} [${code}]`
      print(`${level === 'warning' ? mark(level, 'yellow') : level} ${text}\n        ${help}`)
    }
    if (!warned) print(`${file} is good: ${policies.list.length} policies`)
    for (const line of storeLines(planned, store)) print(line)
  }
  if (warned) process.exitCode = 1
}

/** Where the policies live and what becomes of them without the store; nothing where all is in the memory of one process. */
function storeLines(planned: readonly PlannedExplanation[], store: StorePlan): string[] {
  if (store.kind === 'memory' && store.workers === undefined) return []
  const width = Math.max(...planned.map(({ policy }) => policy.length))
  const lines = planned.flatMap((one) => {
    const lease = leaseWords(one, 'en')
    const leased = lease === undefined ? [] : [`  ${''.padEnd(width)}  leased ${lease}`]
    return [`  ${one.policy.padEnd(width)}  ${homeWords(one, store, 'en')}`, ...leased]
  })
  return [planWords(store, 'en'), ...lines]
}

function mark(text: string, colour: 'red' | 'yellow'): string {
  return process.stdout.isTTY && !process.env['NO_COLOR'] ? styleText(colour, text) : text
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
