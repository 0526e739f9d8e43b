import {
  candidateWords,
  type Language,
  overflowWords,
  type Policy,
  type PolicyDocument,
  readPolicies,
  ruleWords,
  splitWords,
} from 'catraca/policy'

/** What each policy allows and whom it counts, in plain words, one line each. */
export function documentWords(document: PolicyDocument, language: Language = 'en'): string[] {
  const pt = language === 'pt'
  return readPolicies(document)
    .list.filter(({ mode }) => mode !== 'off')
    .map((policy) => {
      const { name, parts, entry, base } = policy
      const whom = parts.map(({ text }) => partWords(text, language)).join(pt ? ' e ' : ' and ')
      const routes = entry.match?.routes === undefined ? '' : ` (${entry.match.routes.join(', ')})`
      const mode = modeWords(policy, language)
      const over = overflowWords(base.overflow, language)
      const excess = over === undefined ? '' : `; ${pt ? 'acima disso' : 'over it'} ${over}`
      return `${name}: ${ruleWords(base.rule, language)}, ${whom}${routes}${mode === '' ? '' : `, ${mode}`}${excess}`
    })
}

function modeWords({ mode, split, candidateOf }: Policy, language: Language): string {
  if (candidateOf !== undefined) return candidateWords(candidateOf, language)
  if (split !== undefined) return splitWords(split, language)
  if (mode !== 'observe') return ''
  return language === 'pt' ? 'só observada' : 'observed only'
}

const names: Readonly<Record<string, readonly [en: string, pt: string]>> = {
  address: ['for each address', 'por endereço'],
  client: ['for each client', 'por cliente'],
  user: ['for each user', 'por usuário'],
  tenant: ['for each tenant', 'por inquilino'],
  service: ['for all together', 'para todos juntos'],
}

function partWords(part: string, language: Language): string {
  const known = names[part]
  if (known !== undefined) return known[language === 'pt' ? 1 : 0]
  return language === 'pt' ? `por ${part}` : `for each ${part}`
}
