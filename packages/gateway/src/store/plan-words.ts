import type { Language } from 'catraca/policy'
import type { PlannedExplanation, StorePlan } from './store-plan.ts'

/** A store in one line. */
export function planWords(plan: StorePlan, language: Language): string {
  const w = words[language]
  if (plan.kind === 'memory') return w.process
  const { kind, address, expectedInstances: instances, ceiling } = plan
  const capped = ceiling === undefined ? '' : `; ${w.ceiling(ceiling[language])}`
  return `${w.store}: ${kind} ${address}, ${instances === 'live' ? w.counted : w.expected(instances)}${capped}`
}

/** Where the state of a policy lives beside a shared store, and what decides without that. Undefined without such a store. */
export function homeWords(one: PlannedExplanation, plan: StorePlan, language: Language): string | undefined {
  if (plan.kind === 'memory') return undefined
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

const words = {
  en: {
    process: 'store: memory of the process',
    store: 'store',
    expected: (instances: number) => `${instances} instances expected`,
    counted: 'instances are counted',
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
  },
  pt: {
    process: 'guarda: memória do processo',
    store: 'guarda',
    expected: (instances: number) => `${instances} instâncias esperadas`,
    counted: 'as instâncias são contadas',
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
  },
} as const
