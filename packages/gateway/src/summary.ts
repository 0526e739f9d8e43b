import { type Language, type PolicyDocument, readPolicies, ruleWords } from 'catraca/policy'

/** What each policy allows and whom it counts, in plain words, one line each. */
export function documentWords(document: PolicyDocument, language: Language = 'en'): string[] {
  return readPolicies(document)
    .list.filter(({ mode }) => mode !== 'off')
    .map(({ name, parts, entry, base, mode }) => {
      const whom = parts.map(({ text }) => partWords(text, language)).join(language === 'pt' ? ' e ' : ' and ')
      const routes = entry.match?.routes === undefined ? '' : ` (${entry.match.routes.join(', ')})`
      const watched = mode === 'observe' ? (language === 'pt' ? ', só observada' : ', observed only') : ''
      return `${name}: ${ruleWords(base.rule, language)}, ${whom}${routes}${watched}`
    })
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
