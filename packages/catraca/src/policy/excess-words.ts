import type { Split } from './mode.ts'
import type { Strategy } from './overflow.ts'
import { type Language, tongues } from './words.ts'

/**
 * What a request over the limit is answered, in plain words: `waits at most 200 milliseconds, else is refused`. Undefined
 * for a list that only refuses.
 */
export function overflowWords(list: readonly Strategy[], language: Language): string | undefined {
  if (list.length < 2) return undefined
  const otherwise = language === 'pt' ? ', senão ' : ', else '
  return list.map((strategy) => (language === 'pt' ? portuguese(strategy) : english(strategy))).join(otherwise)
}

function english(strategy: Strategy): string {
  switch (strategy.kind) {
    case 'queue':
      return `waits at most ${tongues.en.length(strategy.maxWaitUs)}`
    case 'stale':
      return `gets a copy at most ${tongues.en.length(strategy.maxAgeMs * 1_000)} old`
    case 'degrade':
      return `passes with less at cost ${tongues.en.number(strategy.cost)}`
    case 'accept':
      return 'is done later'
    case 'mark':
      return 'passes, marked'
    default:
      return 'is refused'
  }
}

function portuguese(strategy: Strategy): string {
  switch (strategy.kind) {
    case 'queue':
      return `espera no máximo ${tongues.pt.length(strategy.maxWaitUs)}`
    case 'stale':
      return `recebe uma cópia de no máximo ${tongues.pt.length(strategy.maxAgeMs * 1_000)}`
    case 'degrade':
      return `passa com menos ao custo ${tongues.pt.number(strategy.cost)}`
    case 'accept':
      return 'fica para depois'
    case 'mark':
      return 'passa, marcada'
    default:
      return 'é recusada'
  }
}

/** Clients that are named; of more the number. */
const named = 3

/** For whom a policy is enforced: `enforced for 10 % and acme, observed for the others`. */
export function splitWords({ percent, clients, otherwise }: Split, language: Language): string {
  const pt = language === 'pt'
  const all = [...clients]
  const names = all.length > named ? [...all.slice(0, named), `${all.length - named} ${pt ? 'outros' : 'more'}`] : all
  const who = percent === 0 && names.length > 0 ? names : [`${percent} %`, ...names]
  const list = who.length === 1 ? String(who[0]) : `${who.slice(0, -1).join(', ')} ${pt ? 'e' : 'and'} ${who.at(-1)}`
  if (pt) return `aplicada a ${list}, ${otherwise === 'off' ? 'desligada' : 'só observada'} para os demais`
  return `enforced for ${list}, ${otherwise === 'off' ? 'off' : 'observed'} for the others`
}

/** Beside which policy one is tried. */
export function candidateWords(policy: string, language: Language): string {
  return language === 'pt' ? `candidata a substituir ${policy}, só observada` : `candidate for ${policy}, observed only`
}
