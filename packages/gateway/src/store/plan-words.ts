import type { Language } from 'catraca/policy'
import type { PlannedExplanation, StorePlan } from './store-plan.ts'

/** A store in one line. */
export function planWords(plan: StorePlan, language: Language): string {
  const w = words[language]
  if (plan.kind === 'memory') return plan.workers === undefined ? w.process : `${w.process}, ${w.among(plan.workers)}`
  const { kind, address, expectedInstances: instances, workers, ceiling } = plan
  const capped = ceiling === undefined ? '' : `; ${w.ceiling(ceiling[language])}`
  const each = workers === undefined ? '' : `, ${w.perGateway(workers)}`
  return `${w.store}: ${kind} ${address}, ${instances === 'live' ? w.counted : w.expected(instances)}${each}${capped}`
}

/** Where the state of a policy lives beside a shared store, and what decides without that. Undefined without such a store. */
export function homeWords(one: PlannedExplanation, plan: StorePlan, language: Language): string | undefined {
  if (plan.kind === 'memory') return plan.workers === undefined ? undefined : workerWords(one, plan.workers, language)
  const { store, withoutStore, algorithm, cost } = one
  const { expectedInstances: instances } = plan
  const w = words[language]
  const each = instances === 'live' ? w.live : w.each(instances)
  if (store === 'memory' || withoutStore === undefined) return `${w.memory} ${each}`
  const { mode, share, neverFits } = withoutStore
  const begin = `${w.shared} ${mode}: `
  if (mode !== 'local') return `${begin}${w[mode]}`
  const fraction = instances === 'live' ? w.fraction : `1/${instances}`
  const part = algorithm === 'quota' ? w.left(fraction) : (share?.[language] ?? w.ofIt(fraction))
  return `${begin}${part}, ${each}${neverFits === true ? `; ${w.never(cost)}` : ''}`
}

/** How instances hold units of a policy, and by how much that can be wrong. Undefined without a lease. */
export function leaseWords({ lease }: PlannedExplanation, language: Language): string | undefined {
  if (lease === undefined) return undefined
  const { block, bounds, instances } = lease
  const w = words[language]
  const who = instances === undefined ? w.live : w.each(instances)
  const each = instances === undefined ? `, ${w.one}` : ''
  return `${w.blocks(block, bounds.held)} ${who}; ${w.over(bounds.over)}; ${w.under(bounds.under)}${each}`
}

/** How a policy lives in several processes that share their memory. */
function workerWords({ store, lease }: PlannedExplanation, workers: number, language: Language): string {
  const w = words[language]
  if (store === 'memory') return w.parts(workers)
  return `${w.among(workers)}; ${lease === undefined ? w.asked : w.leased(lease.bounds.held)}`
}

const words = {
  en: {
    process: 'store: memory of the process',
    store: 'store',
    expected: (instances: number) => `${instances} instances expected`,
    counted: 'instances are counted',
    perGateway: (workers: number) => `${workers} of them in each gateway`,
    among: (workers: number) => `shared by ${workers} workers`,
    parts: (workers: number) => `a part in each of ${workers} workers, since verification waits for it`,
    asked: 'asked for each time',
    leased: (held: number) => `each may hold ${held} of a key`,
    ceiling: (limit: string) => `without it each lets pass at most ${limit}, over all keys`,
    memory: 'memory, also beside the shared store: counted',
    shared: 'shared; without it',
    each: (instances: number) => `in each of ${instances} instances`,
    live: 'in each instance',
    fraction: '1/(instances last counted)',
    left: (fraction: string) => `${fraction} of what it had left when it last answered`,
    ofIt: (fraction: string) => `${fraction} of the limit`,
    open: 'all pass',
    closed: 'none pass, 503',
    never: (cost: number) => `a request costs ${cost}, which never fits`,
    one: 'for each instance',
    blocks: (block: number, held: number) => `in blocks of up to ${block}, at most ${held} of a key`,
    over: (units: number) => (units === 0 ? 'never more than the rule' : `at most ${units} more than the rule`),
    under: (units: number) => `refused while others hold at most ${units}`,
  },
  pt: {
    process: 'guarda: memória do processo',
    store: 'guarda',
    expected: (instances: number) => `${instances} instâncias esperadas`,
    counted: 'as instâncias são contadas',
    perGateway: (workers: number) => `${workers} delas em cada gateway`,
    among: (workers: number) => `compartilhada por ${workers} processos`,
    parts: (workers: number) => `uma parte em cada um de ${workers} processos, pois a verificação espera por ela`,
    asked: 'perguntada a cada vez',
    leased: (held: number) => `cada um pode reter ${held} de uma chave`,
    ceiling: (limit: string) => `sem ela cada uma deixa passar no máximo ${limit}, sobre todas as chaves`,
    memory: 'memória, também ao lado do armazenamento compartilhado: contada',
    shared: 'compartilhado; sem ele',
    each: (instances: number) => `em cada uma de ${instances} instâncias`,
    live: 'em cada instância',
    fraction: '1/(instâncias da última contagem)',
    left: (fraction: string) => `${fraction} do que restava na última resposta`,
    ofIt: (fraction: string) => `${fraction} do limite`,
    open: 'todas passam',
    closed: 'nenhuma passa, 503',
    never: (cost: number) => `uma requisição custa ${cost}, o que nunca cabe`,
    one: 'para cada instância',
    blocks: (block: number, held: number) => `em blocos de até ${block}, no máximo ${held} de uma chave`,
    over: (units: number) => (units === 0 ? 'nunca mais que a regra' : `no máximo ${units} a mais que a regra`),
    under: (units: number) => `recusada enquanto as outras têm no máximo ${units}`,
  },
} as const
